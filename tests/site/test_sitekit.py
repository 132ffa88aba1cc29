"""What the site is built with: embeds by name, formulas, the two configurations and the live server."""

import ast
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree

import pytest
from markdown import Markdown
from markdown.treeprocessors import Treeprocessor
from material.plugins.search.plugin import Parser
from mkdocs.commands.build import build
from mkdocs.config import load_config

from sitekit import formulas, serve
from sitekit.definitions import DefinitionError, DefinitionPreprocessor, cut
from sitekit.formulas import as_text, render
from sitekit.pages import ROOT, PageError

MODULES = sorted(path.stem for path in (ROOT / "llmcore").glob("*.py") if path.stem != "__init__")


# ---- embeds by name ----

MODULE = '''\
"""A module."""

from __future__ import annotations

import math
import os.path as osp

from torch import Tensor, nn

from .masks import expand_mask, unused
from package.softmax import softmax

LIMIT = 2

# Not this one.

# About attention,
# two lines.
@decorate
def attention(query: Tensor, osp=None) -> Tensor:
    """Doc."""
    nn = [math.sqrt(q) for q in expand_mask(query)]
    return softmax(nn) * LIMIT


class Layer(nn.Module):
    # above
    @property
    def width(self) -> Layer:
        """First,
    and last."""
        return Layer(attention(self))


def decorate(function):
    return function
'''


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "attention.py").write_text(MODULE, encoding="utf-8")
    return folder / "attention.py"


def test_a_function_comes_with_what_it_uses_and_where_each_line_came_from(package):
    assert cut(package, "attention") == [
        ("import math", 5),
        ("", 8),
        ("from torch import Tensor", 8),
        ("", 10),
        ("from package.masks import expand_mask", 10),
        ("from package.softmax import softmax", 11),
        ("from package.attention import LIMIT, decorate", 13),
        ("", 17),
        ("", 17),
        ("# About attention,", 17),
        ("# two lines.", 18),
        ("@decorate", 19),
        ("def attention(query: Tensor, osp=None) -> Tensor:", 20),
        ('    """Doc."""', 21),
        ("    nn = [math.sqrt(q) for q in expand_mask(query)]", 22),
        ("    return softmax(nn) * LIMIT", 23),
    ]


def test_a_method_is_dedented_and_imports_its_own_class(package):
    assert [text for text, _ in cut(package, "Layer.width")] == [
        "from package.attention import Layer, attention",
        "",
        "",
        "# above",
        "@property",
        "def width(self) -> Layer:",
        '    """First,',
        'and last."""',
        "    return Layer(attention(self))",
    ]


def test_a_class_that_names_itself_keeps_postponed_annotations(package):
    assert cut(package, "Layer")[0] == ("from __future__ import annotations", 3)


def test_a_constant_is_a_definition(package):
    assert cut(package, "LIMIT") == [("LIMIT = 2", 13)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "attention.py has no definition 'nothing' (it has: LIMIT, Layer, attention, decorate)"),
        ("Layer.depth", "attention.py has no definition 'Layer.depth' (it has: width)"),
        ("attention.query", "attention.py has no definition 'attention.query' (it has: nothing)"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(package, name, message):
    with pytest.raises(DefinitionError, match=re.escape(message)):
        cut(package, name)


def test_two_definitions_of_one_name_are_refused(package):
    package.write_text("def f(): ...\n\n\ndef f(): ...\n", encoding="utf-8")
    with pytest.raises(DefinitionError, match=r"defines 'f' more than once \(lines 1, 4\)"):
        cut(package, "f")


def test_a_script_cannot_be_imported_from(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def f():\n    return 1\n\n\ndef g():\n    return f()\n", encoding="utf-8")
    assert [number for _, number in cut(script, "f")] == [1, 2]
    with pytest.raises(DefinitionError, match="'g' uses f of the same file, which is no module"):
        cut(script, "g")


@pytest.mark.parametrize("module", MODULES)
def test_every_definition_of_llmcore_runs_alone(module):
    """Each block that a page can show defines its name in an empty namespace; methods too."""
    path = ROOT / "llmcore" / f"{module}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    methods = [
        f"{node.name}.{child.name}"
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, ast.FunctionDef)
        and not any("setter" in ast.unparse(d) for d in child.decorator_list)
    ]
    names = [node.name for node in nodes] + methods
    assert names
    source = path.read_text(encoding="utf-8").splitlines()
    for name in names:
        lines = cut(path, name)
        namespace = {"__name__": "__main__"}
        exec(compile("\n".join(text for text, _ in lines), str(path), "exec"), namespace)
        assert name.rsplit(".", 1)[-1] in namespace
        for text, number in lines:
            assert text.startswith(("from ", "import ")) or text.strip() in source[number - 1]


class Page(Treeprocessor):
    """Stands where MkDocs puts the processor that knows the page."""

    def __init__(self, path):
        super().__init__()
        self.file = SimpleNamespace(abs_src_path=str(path))

    def run(self, root):
        return None


@pytest.fixture
def convert(tmp_path):
    """Convert a page as MkDocs does: Markdown does not see the front matter, line numbers must."""

    def run(body, root=tmp_path):
        path = tmp_path / "page.md"
        path.write_text("---\ntitle: T\n---\n\n" + body, encoding="utf-8")
        md = Markdown(
            extensions=[
                "attr_list",
                "tables",
                "toc",
                "pymdownx.superfences",
                "sitekit.definitions",
                "sitekit.formulas",
                "pymdownx.snippets",
            ],
            extension_configs={
                "sitekit.definitions": {"base_path": str(root)},
                "pymdownx.snippets": {"base_path": [str(root)], "check_paths": True},
            },
        )
        md.treeprocessors.register(Page(path), "relpath", 0)
        html = md.convert(body)
        return SimpleNamespace(html=html, toc=getattr(md, "toc_tokens", []))

    return run


def test_an_embed_keeps_its_indent_and_leaves_the_rest_to_snippets(convert, package):
    (package.parent / "whole.py").write_text("x = 1\n", encoding="utf-8")
    page = convert(
        '- item\n\n    ```python\n    --8<-- "package/attention.py:decorate"\n    --8<-- "package/whole.py"\n'
        "    ```\n"
        '\n```text\n;--8<-- "shown as it is"\n```\n'
    )
    text = re.sub(r"<[^>]+>", "", page.html)
    assert "def decorate(function):\n    return function\nx = 1" in text
    assert '--8&lt;-- "shown as it is"' in text


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        ('--8<-- "package/attention.py:nothing"', "has no definition 'nothing'"),
        ('--8<-- "package/nothing.py"', "no such file: package/nothing.py"),
        ('--8<-- "package/nothing.py:f"', "no such file: package/nothing.py"),
        ('--8<-- "../outside.py"', "../outside.py lies outside the repository"),
        ('--8<-- "package/attention.py:3:5"', "never lines or sections"),
        ('--8<-- "package/notes.txt:part"', "never lines or sections"),
        ("--8<-- “package/attention.py”", "an embed is one line"),
        ("--8<-- package/attention.py", "an embed is one line"),
        ("--8<--", "an embed is one line"),
        ('--8<-- "package/bom.py"', "starts with a byte-order mark"),
        ('--8<-- "package/again.md"', "again.md:2 embeds again"),
        ('--8<-- "package/broken.py:f"', "broken.py:1: "),
    ],
)
def test_a_wrong_embed_fails_with_page_and_line(convert, package, tmp_path, embed, message):
    (tmp_path.parent / "outside.py").write_text("x = 1\n", encoding="utf-8")
    (package.parent / "notes.txt").write_text("part\n", encoding="utf-8")
    (package.parent / "bom.py").write_text("\ufeffx = 1\n", encoding="utf-8")
    (package.parent / "again.md").write_text('x\n--8<-- "package/attention.py"\n', encoding="utf-8")
    (package.parent / "broken.py").write_text("def f(:\n", encoding="utf-8")
    with pytest.raises(PageError, match=re.escape(message)) as caught:
        convert(f"One.\n\n```python\n{embed}\n```\n")
    assert str(caught.value).startswith((tmp_path / "page.md").as_posix() + ":8: ")


def test_the_second_of_two_equal_lines_is_told_apart(convert, package):
    once = '```python\n--8<-- "package/attention.py:decorate"\n```\n'
    package.write_text(MODULE.replace("def decorate", "def renamed"), encoding="utf-8")
    with pytest.raises(PageError, match=r"page\.md:6: "):
        convert(once + "\n" + once)


def test_a_subclass_can_hand_out_its_own_lines(package):
    class Recorder(DefinitionPreprocessor):
        def read_definition(self, path, name):
            return [f"{path.name}:{number}" for _, number in cut(path, name)]

    recorder = Recorder(Markdown(), package.parent.parent)
    assert recorder.run(["a", '  --8<-- "package/attention.py:LIMIT"']) == ["a", "  attention.py:13"]


# ---- formulas ----


def test_formulas_become_html_and_mathml_and_code_stays(convert):
    page = convert(
        "价格 \\$5，$a_1 < b$ 与 `$x$`。\n\n$$\n\\text{损失} = -\\log\\sigma(x)\n$$\n"
        "\n| $y$ |\n|---|\n| $z$ |\n"
    )
    assert page.html.count('<math xmlns="http://www.w3.org/1998/Math/MathML"') == 4
    assert page.html.count('<div class="formula">') == 1
    assert "价格 $5" in page.html
    assert "<code>$x$</code>" in page.html
    assert "\x02" not in page.html


def test_the_search_index_does_not_see_formulas_and_readers_do(convert):
    html = convert("前 $x_1$ 后\n\n$$\ny_2\n$$\n").html
    parser = Parser()
    parser.feed(html)
    parser.close()
    assert "".join(parser.data[0].text).split() == ["<p>前", "后</p>"]
    template = (ROOT / "overrides/partials/content.html").read_text(encoding="utf-8")
    assert f"replace('{formulas.OPEN}', '')" in template
    assert f"replace('{formulas.CLOSE}', '')" in template


def test_punctuation_stays_with_a_formula(convert):
    assert convert("（$x$）").html.count(formulas.JOINER) == 2
    assert convert("有 $x$ 的").html.count(formulas.JOINER) == 0


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("a\n\nb $\\foo$ c\n", 7, "KaTeX: Undefined control sequence: \\foo"),
        ("$$\na\n+ \\frac{1}\n$$\n", 7, "KaTeX: Unexpected end of input"),
        ("$中$\n", 5, "KaTeX: LaTeX-incompatible input"),
        ("$\\href{https://example.org}{x}$\n", 5, "KaTeX: \\href is not allowed"),
        ("a\n\n$ x$ is\n", 7, "a $ that belongs to no formula in '$ x$ is'"),
        ("a\n$$\nx\n\ny\n$$\n", 6, "a $ that belongs to no formula in '$$'"),
        ("It costs $5.\n", 5, "a $ that belongs to no formula in 'It costs $5.'"),
        ("## The $\\mathcal{L}$\n", 5, 'needs { data-toc-label="…" }'),
    ],
)
def test_a_broken_formula_fails_with_page_and_line(convert, tmp_path, body, line, message):
    with pytest.raises(PageError, match=re.escape(message)) as caught:
        convert(body)
    assert str(caught.value).startswith(f"{(tmp_path / 'page.md').as_posix()}:{line}: ")


def test_headings_with_formulas_are_plain_in_the_table_of_contents(convert):
    assert convert("## 除以 $\\sqrt{d_k}$ { #scale }\n").toc[0]["name"] == "除以 √dₖ"
    assert convert('## $\\mathcal{L}$ { #loss data-toc-label="L" }\n').toc[0]["name"] == "L"


@pytest.mark.parametrize(
    ("tex", "text"),
    [("QK^\\top", "QKᵀ"), ("\\beta", "β"), ("n^2", "n²"), ("\\frac{a}{b}", "a/b"), ("\\text{KL}", "KL")],
)
def test_short_formulas_as_text(tex, text):
    assert as_text(tex) == text
    assert render(tex)


# ---- the two configurations ----


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A small site of both languages with the real configurations, theme and extensions."""
    root = tmp_path_factory.mktemp("site")
    page = "---\ntitle: T\ndescription: D {0}\n---\n\n# T {{ #top }}\n\n$x_1$ [home](INDEX)\n"
    for language, config_file in serve.SITES.items():
        docs = root / "docs" / language
        (docs / "days").mkdir(parents=True)
        (docs / "index.md").write_text(page.format(language).replace("INDEX", "days/a.md"), encoding="utf-8")
        (docs / "days" / "a.md").write_text(
            page.format(language).replace("INDEX", "../index.md"), encoding="utf-8"
        )
        config = load_config(
            str(ROOT / config_file),
            docs_dir=str(docs),
            site_dir=str(root / "site" / ("en" if language == "en" else "")),
            nav=["index.md", "days/a.md"],
            plugins=[],
            strict=True,
        )
        build(config)
    return root / "site"


@pytest.mark.parametrize("path", ["index.html", "days/a/index.html"])
def test_the_language_switch_stays_on_the_page(site, path):
    for page, twin in ((site / path, site / "en" / path), (site / "en" / path, site / path)):
        html = page.read_text(encoding="utf-8")
        [link] = re.findall(r'class="md-header__button twin" href="([^"]+)"', html)
        [follow] = re.findall(r'data-twin="([^"]+)"', html)
        assert link == follow
        assert not link.startswith("/")
        assert (page.parent / link / "index.html").resolve() == twin.resolve()
        assert sorted(re.findall(r'hreflang="([^"]+)" href="http', html)) == ["en", "zh-Hans"]


@pytest.mark.parametrize(("folder", "link"), [("", "/en/"), ("en", "/en/../")])
def test_each_language_has_its_own_page_for_what_is_missing(site, folder, link):
    html = (site / folder / "404.html").read_text(encoding="utf-8")
    assert re.findall(r"<h[12][^>]*>([^<]+)<", html) == (
        ["Page not found", "没有这个页面"] if folder else ["没有这个页面", "Page not found"]
    )
    assert f'twin" href="{link}"' in html


@pytest.mark.parametrize(("folder", "own", "other"), [("", "zh-Hans", "en"), ("en", "en", "zh-Hans")])
def test_the_site_map_names_each_page_in_both_languages(site, folder, own, other):
    tree = ElementTree.parse(site / folder / "sitemap.xml")
    start, found = "http://127.0.0.1:8000/", set()
    for url in tree.iterfind("{*}url"):
        pages = {link.attrib["hreflang"]: link.attrib["href"] for link in url.iterfind("{*}link")}
        assert pages[own] == url.findtext("{*}loc")
        assert set(pages) == {own, other}
        for page in pages.values():
            assert (site / page.removeprefix(start) / "index.html").is_file(), page
        found.add(pages[own])
    assert found == {f"{start}{folder and 'en/'}{path}" for path in ("", "days/a/")}


def test_nothing_is_loaded_from_another_host(site):
    """A browser's list of requests is the proof; this one names the file."""
    loads = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//"""
        r"""|<link[^>]*rel=["']?(?:stylesheet|preconnect|preload|icon)[^>]*href=["']?(?:https?:)?//"""
    )
    for path in site.rglob("*.html"):
        assert not loads.search(path.read_text(encoding="utf-8")), path
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import", text), path


def test_the_page_describes_itself_and_shows_its_formula(site):
    html = (site / "en" / "days" / "a" / "index.html").read_text(encoding="utf-8")
    assert '<html lang="en"' in html
    assert '<meta name="description" content="D en">' in html
    assert '<span class="formula"><span class="katex">' in html
    assert "text/katex" not in html


def test_katex_is_whole():
    folder = ROOT / "overrides/assets/vendor/katex"
    css = (folder / "katex.min.css").read_text(encoding="utf-8")
    named = set(re.findall(r"url\(([^)]+)\)", css))
    assert named == {f"fonts/{font.name}" for font in (folder / "fonts").iterdir()}
    version = re.search(r'version:"([\d.]+)"', (folder / "katex.min.js").read_text(encoding="utf-8"))
    assert version
    assert f"KaTeX {version[1]} " in (folder / "VERSION.txt").read_text(encoding="utf-8")


# ---- the live server ----


@pytest.fixture
def tree(tmp_path):
    """A repository with nothing in it but two pages, in MkDocs' plain theme."""
    for language, config_file in serve.SITES.items():
        (tmp_path / "docs" / language).mkdir(parents=True)
        (tmp_path / "docs" / language / "index.md").write_text(f"first {language}\n", encoding="utf-8")
        (tmp_path / "docs" / language / "deep.md").write_text("deep\n", encoding="utf-8")
        (tmp_path / config_file).write_text(
            f"site_name: {language}\ndocs_dir: docs/{language}\nplugins: []\ntheme: mkdocs\n"
            "markdown_extensions: [sitekit.definitions, pymdownx.snippets, sitekit.formulas]\n",
            encoding="utf-8",
        )
    return tmp_path


def free_port():
    with socket.socket() as probe:
        probe.bind((serve.HOST, 0))
        return probe.getsockname()[1]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.geturl(), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, url, error.read().decode()


def wait_for(url, text, seconds=60):
    """Ask until the page has the text; the time is a limit for a hung server, not a measure."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if text in get(url)[2]:
                return
        except OSError:
            pass
        time.sleep(0.1)
    pytest.fail(f"{url} never showed {text!r}")


def test_the_live_server_end_to_end(tree):
    port = free_port()
    url = f"http://{serve.HOST}:{port}/"
    program = (
        "import signal, sys; from pathlib import Path; import sitekit.serve as serve; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # whoever runs the tests may ignore it
        f"serve.ROOT = Path({str(tree)!r}); sys.exit(serve.main(['--port', '{port}']))"
    )
    flags = subprocess.CREATE_NEW_PROCESS_GROUP if os.name == "nt" else 0
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        creationflags=flags,
    ) as process:
        try:
            wait_for(url, "first zh")
            wait_for(url + "en/", "first en")
            assert get(url + "en/deep")[:2] == (200, url + "en/deep/")
            assert get(url + "deep")[:2] == (200, url + "deep/")
            assert get(url + "en/nothing")[0] == 404

            page = tree / "docs" / "zh" / "index.md"
            page.write_text("second $x$\n", encoding="utf-8")
            wait_for(url, "second")
            page.write_text("third\n\n$\\foo$\n", encoding="utf-8")
            (tree / "docs" / "en" / "index.md").write_text("second en\n", encoding="utf-8")
            wait_for(url + "en/", "second en")
            assert "second" in get(url)[2]  # the last good version
            page.write_text("fourth\n", encoding="utf-8")
            wait_for(url, "fourth")
        finally:
            process.send_signal(signal.CTRL_BREAK_EVENT if os.name == "nt" else signal.SIGINT)
            output = process.communicate(timeout=60)[0]
    assert f"{(page).as_posix()}:3: KaTeX: Undefined control sequence: \\foo" in output
    assert "Traceback" not in output
    if os.name != "nt":
        assert process.returncode == 0


def test_a_busy_port_is_one_line(capfd):
    with socket.socket() as busy:
        busy.bind((serve.HOST, 0))
        busy.listen()
        port = busy.getsockname()[1]
        answer = subprocess.run(
            [sys.executable, "-m", "sitekit.serve"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PORT": str(port)},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert re.fullmatch(
        rf"Port {port} cannot be used \(.+\)\. Another: make serve PORT={port + 1}\n", answer.stderr
    )


def test_only_the_language_that_changed_is_built_again(tmp_path, monkeypatch):
    built, asked = [], []

    def refresh(changed):
        asked.append(changed)
        return ["days/dpo.md"] if changed == {str(docs / "zh" / "days" / "dpo.md")} else None

    def fake(config_file, folder, port):
        built.append({name: language for language, name in serve.SITES.items()}[config_file])
        folder.mkdir()
        return SimpleNamespace(refresh=refresh)

    monkeypatch.setattr(serve, "_build", fake)
    server = cast(
        "serve.Server", SimpleNamespace(folders={}, changed=set(), _rebuild_cond=threading.Condition())
    )
    run = serve.builder(server, tmp_path, 8000)
    docs = serve.ROOT / "docs"
    expected = [
        (set(), ["zh", "en"]),
        ({str(docs / "zh" / "plan.md")}, ["zh"]),
        ({str(docs / "en" / "days" / "dpo.md")}, ["en"]),
        ({str(docs / "zh" / "days" / "dpo.md")}, []),  # that page alone
        ({str(docs / "figures" / "dpo" / "a.zh.svg")}, ["zh", "en"]),
        ({str(docs / "zh" / "plan.md"), str(serve.ROOT / "llmcore" / "dpo.py")}, ["zh", "en"]),
    ]
    for changed, languages in expected:
        server.changed = changed
        built.clear()
        asked.clear()
        run()
        assert built == languages
        others = [str(docs / other) + os.sep for other in serve.SITES]
        for given in asked:  # a language is not asked about the pages of the other
            assert given <= changed
            assert sum(any(path.startswith(other) for path in given) for other in others) <= 1
    assert len(list(tmp_path.iterdir())) == 2  # what is no longer served is removed


def test_watching_ignores_caches_and_editors_files(tmp_path, monkeypatch):
    server = serve.Server(lambda: None, 0, tmp_path)
    scheduled = []
    monkeypatch.setattr(
        server.observer, "schedule", lambda handler, path, recursive: scheduled.append(handler)
    )
    server.watch(str(tmp_path))
    for name in ("__pycache__/a.pyc", ".a.md.swp", "a.md~", "a.md"):
        scheduled[0].on_any_event(
            SimpleNamespace(is_directory=False, dest_path="", src_path=str(tmp_path / name))
        )
    server.server_close()
    assert server.changed == {str(tmp_path / "a.md")}
