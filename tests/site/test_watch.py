"""`make watch` runs again what a saved file changes, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.site.sandbox import Pool
from tests.site.test_published import plant
from tests.site.watch import Watch

PAGE = """# Page

```python
--8<-- "snippets/one.py"
```
<!--pytest-codeblocks:expected-output-->
```text
--8<-- "snippets/one.out"
```

```python
from tiny import half
assert half(4) == 2
```
"""


def test_a_saved_file_runs_its_blocks_again(tmp_path: Path) -> None:
    root = plant(tmp_path, {"snippets/one.py": "print(1)\n", "snippets/one.out": "1\n", "page.md": PAGE})
    with Pool(root, [], workers=1) as pool:
        watch = Watch(root, ["mkdocs.yml"], pool)
        assert watch.save(set())[:-1] == ["docs/page.md: 2 of 2 blocks run, 0 wrong"]

        (root / "snippets/one.py").write_text("print(2)\n", encoding="utf-8")
        assert watch.save({"snippets/one.py"})[:-1] == [
            "snippets/one.out:1: output: the block prints 2",
            "docs/page.md: 1 of 2 blocks run, 1 wrong",
        ]
        (root / "snippets/one.out").write_text("2\n", encoding="utf-8")
        assert watch.save({"snippets/one.out"})[:-1] == ["docs/page.md: 0 of 2 blocks run, 0 wrong"]

        (root / "tiny/__init__.py").write_text("def half(x):\n    return x\n", encoding="utf-8")
        assert watch.save({"tiny/__init__.py"})[:-1] == [
            "docs/page.md:13: AssertionError",
            "docs/page.md: 1 of 2 blocks run, 1 wrong",
        ]
        (root / "docs/page.md").write_text(PAGE.replace("assert half(4) == 2", "oops"), encoding="utf-8")
        assert "docs/page.md:13: NameError: name 'oops' is not defined" in watch.save({"docs/page.md"})
