"""What the site needs and Markdown does not bring: embeds, formulas, figures, a live server. No torch."""
