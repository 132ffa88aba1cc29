"""Runs what the site publishes wherever pytest is started: `pytest docs/zh/days/dpo.md` runs one page."""

pytest_plugins = ["tests.site.published"]
