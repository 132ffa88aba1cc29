r"""Chinese or English: every sentence of the command line stands in the code in both."""

from __future__ import annotations

import locale
import os

from practice.catalogue import LANGUAGES, Text

_language = "en"
_options = ""


def speak(language: str | None = None) -> str:
    r"""Choose the language; by the locale where none is given.

    Raises:
        ValueError: If it is neither `zh` nor `en`.
    """
    global _language
    if language is None:
        found = next(
            (os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), ""
        )
        language = (
            "zh" if (found or locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"
        )
    if language not in LANGUAGES:
        raise ValueError(f"{language=} must be one of {', '.join(LANGUAGES)}")
    _language = language
    return language


def language() -> str:
    r"""Return the language that is spoken."""
    return _language


def say(en: str, zh: str) -> str:
    r"""Return the sentence in the language that is spoken."""
    return zh if _language == "zh" else en


def program() -> str:
    r"""Return how the reader called us, for the commands that are suggested."""
    return os.environ.get("PRACTICE_PROGRAM", "python -m practice") + _options


def called_with(options: str) -> None:
    r"""Let `program` repeat what every further command needs."""
    global _options
    _options = f" {options}" if options else ""


def of(text: Text) -> str:
    r"""Return the words of an exercise in the language that is spoken."""
    return text[_language]
