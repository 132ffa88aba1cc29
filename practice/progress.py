r"""What a reader has done, in one file of the workspace, and when to do it again (`fsrs` decides)."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from practice.catalogue import Exercise, exercises
from practice.source import untouched

STATES = ("todo", "started", "passed", "due")


class ProgressError(ValueError):
    r"""A file of progress that cannot be read; the message names it."""


class Workspace:
    r"""The reader's folder: one file an exercise, older ones in `old/`, `progress.json`.

    Args:
        folder: Made when something is written.

    Raises:
        ProgressError: If its `progress.json` is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "progress.json"
        try:
            data = json.loads(self.file.read_text(encoding="utf-8")) if self.file.exists() else {}
            self.exercises: dict[str, dict[str, Any]] = data.get("exercises", {})
            self.cards: dict[str, dict[str, Any]] = data.get("cards", {})
            self.sessions: list[dict[str, Any]] = data.get("sessions", [])
            for known in self.exercises.values():
                if not all(isinstance(known[count], int) for count in ("checks", "hints")):
                    raise TypeError(f"{known} has no counts")
            for card in self.cards.values():
                datetime.fromisoformat(card["due"])
            if not all(isinstance(session["kind"], str) for session in self.sessions):
                raise TypeError("a session without a kind")
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            raise ProgressError(f"{self.file} cannot be read ({error}); mend it or move it away") from error

    def path(self, exercise: Exercise) -> Path:
        r"""Return where the answer to an exercise is."""
        return self.folder / f"{exercise.name.replace('-', '_')}.py"

    def of(self, exercise: Exercise) -> dict[str, Any]:
        r"""Return what is known about an exercise: checks, hints taken, when it was started and passed."""
        return self.exercises.setdefault(exercise.name, {"checks": 0, "hints": 0})

    def state(self, exercise: Exercise) -> str:
        r"""Return one of STATES."""
        known = self.exercises.get(exercise.name, {})
        begun = self._begun(exercise)
        if known.get("passed") and not (begun and known.get("started", "") > known["passed"]):
            return "due" if self.is_due(f"exercise:{exercise.name}") else "passed"
        return "started" if begun else "todo"

    def _begun(self, exercise: Exercise) -> bool:
        r"""Tell whether there is an answer that somebody has worked on."""
        try:
            text = self.path(exercise).read_text(encoding="utf-8-sig")
            return len(untouched(text, exercise.symbols)) < len(exercise.symbols)
        except OSError:
            return False
        except (SyntaxError, ValueError):
            return True

    def put_away(self, exercise: Exercise) -> Path | None:
        r"""Move an answer to `old/`, under a name that is free; return where it is now."""
        path = self.path(exercise)
        if not path.exists():
            return None
        old = self.folder / "old"
        old.mkdir(parents=True, exist_ok=True)
        stamp = f"{now():%Y-%m-%d}"
        names = (f"{path.stem}_{stamp}{'' if n == 1 else f'_{n}'}.py" for n in range(1, 10_000))
        target = next(old / name for name in names if not (old / name).exists())
        path.rename(target)
        return target

    def rate(self, key: str, rating: int) -> datetime:
        r"""Note how well something was known, 1 (not) to 4 (at once); return when it is due again."""
        from fsrs import Card, Rating, Scheduler

        card = Card.from_dict(self.cards[key]) if key in self.cards else Card()  # type: ignore[arg-type]
        scheduler = Scheduler(learning_steps=(), relearning_steps=())  # days, not minutes
        card, _ = scheduler.review_card(card, Rating(rating), now())
        self.cards[key] = dict(card.to_dict())
        return card.due

    def is_due(self, key: str) -> bool:
        r"""Tell whether something is to be done again by now."""
        return key in self.cards and datetime.fromisoformat(self.cards[key]["due"]) <= now()

    def due(self) -> list[str]:
        r"""Return the keys of all that is due, the longest due first."""
        keys = [key for key in self.cards if self.is_due(key)]
        known = exercises()
        keys = [k for k in keys if not k.startswith("exercise:") or k.removeprefix("exercise:") in known]
        return sorted(keys, key=lambda key: self.cards[key]["due"])

    def save(self) -> None:
        r"""Write the file, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = {"exercises": self.exercises, "cards": self.cards, "sessions": self.sessions}
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        new.replace(self.file)


def now() -> datetime:
    r"""Return the time; `PRACTICE_NOW` (ISO, UTC) stands in for it."""
    given = os.environ.get("PRACTICE_NOW")
    return datetime.fromisoformat(given).replace(tzinfo=UTC) if given else datetime.now(UTC)
