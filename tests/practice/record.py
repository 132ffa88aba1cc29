r"""Writes again what `python -m practice check gqa` says to a wrong answer, for the page on practising.

python -m tests.practice.record
"""

import contextlib
import io
import os
import tempfile
from pathlib import Path

from practice.__main__ import main
from practice.catalogue import find
from practice.source import wrong_answer

if __name__ == "__main__":
    here = Path(__file__).parent.absolute()
    exercise = find("gqa")
    wrong = next(each for each in exercise.wrong if each.name == "tiled")
    for language in ("en", "zh"):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            Path("workspace").mkdir()
            Path("workspace/gqa.py").write_text(wrong_answer(exercise, wrong), encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                main(["check", "gqa", "--lang", language])
            os.chdir(here)
        (here / f"verdict.{language}.txt").write_text(
            f"$ python -m practice check gqa\n{said.getvalue()}", encoding="utf-8"
        )
