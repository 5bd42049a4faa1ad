"""What `make docs-check` finds: a planted fault for each check, reported with the name of its page, and a clean page.

`make check` runs it on the real pages.
"""
from copy import deepcopy
from pathlib import Path

import docs_check
import pytest
from browser import find_chromium, measure
from docs_check import page_of, read_html, read_markdown, read_module
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

NAME = "nbs/10_page.ipynb"
FUNCTION = 'def double(number: int) -> int:\n    "Twice a number."\n    return 2 * number'
LONG_LINE = "x" * (docs_check.BOOK_COLUMNS + 1)
ALT = '#| fig-alt: "two bars, one twice as high"\n'


def code(source, *outputs):
    return new_code_cell(source, outputs=list(outputs))


def markdown(text):
    return new_markdown_cell(text)


def printed(text):
    return new_output("stream", text=text)


def picture(form="image/png", data="iVBORw0KGgo="):
    return new_output("display_data", {form: data})


CLEAN = (
    markdown("## A heading: `code`, again\n\nA sentence about [the heading](#a-heading-code-again)."),
    markdown("## A heading: `code`, again\n\n[The second](#a-heading-code-again-1), [other](other.ipynb#own), "
             "[a host](https://kafka.apache.org/).\n\n![Two bars of words](picture.png)"),
    code(FUNCTION),
    code("double(2)", new_output("execute_result", {"text/plain": "4"}, execution_count=1)),
    code(ALT + "plot()", picture()),
    code(ALT + "plot()", picture("image/svg+xml", "<svg></svg>")),
    code("#| echo: false\n" + LONG_LINE),
    markdown("[from the top](/other.ipynb#own)"),
    markdown("[]{#span}\n\n::: {.terminal}\n[An anchor](#span)\n:::\n"),
    code("table", new_output("display_data", {"text/markdown": f"```{{=html}}\n<p>{LONG_LINE}</p>\n```"})),
)
SOURCE = new_notebook(cells=[code("#| exports\n" + FUNCTION)])
OTHER = read_html("nbs/other.ipynb", '<h2 id="own">Own</h2>')


def page(*cells, name=NAME, book=True, source=SOURCE):
    return page_of(name, book, source, new_notebook(cells=deepcopy(cells or CLEAN)))


@pytest.fixture
def root(tmp_path):
    (tmp_path / "nbs").mkdir()
    for name in (NAME, OTHER.name, "nbs/picture.png", "README.md"):
        (tmp_path / name).write_text("", encoding="utf-8")
    return tmp_path


TABLE = docs_check.phrase_table("# a comment\nof before => previous\n\nwho(?:m)?ever => the member\n")
ONE_PAGE = {check.__name__: check for check in (
    docs_check.tracebacks, docs_check.pictures, docs_check.bodies, docs_check.signatures, docs_check.widths,
    docs_check.length, docs_check.foreign_hosts)}


def problems(check, shown, root):
    """What one check finds on a page."""
    if check == "links":
        return list(docs_check.links(shown, {one.name: one for one in (shown, OTHER)}, root))
    if check == "phrases":
        return list(docs_check.phrases(shown, TABLE))
    if check == "spelling":
        return list(docs_check.spelling([OTHER, shown]))
    return list(ONE_PAGE[check](shown))


ERROR = new_output("error", ename="ValueError", evalue="no", traceback=["Traceback (most recent call last):", "no"])
FAULTS = [
    ("tracebacks", [code("1 / 0", ERROR)], "no"),
    ("tracebacks", [code("x", printed("Traceback (most recent call last):\n  File\nKeyError: 1\n"))], "KeyError: 1"),
    ("pictures", [code("plot()", picture())], "''"),
    ("pictures", [code("plot()", picture("image/svg+xml", "<svg></svg>"))], "''"),
    ("pictures", [code('#| fig-alt: "a picture"\nplot()', picture())], "'a picture'"),
    ("pictures", [markdown("![png](picture.png)")], "'png'"),
    ("pictures", [markdown("<svg><path/></svg>")], "''"),
    ("bodies", [code("double(2)")], "double"),
    ("bodies", [code(FUNCTION), code(FUNCTION)], "double"),
    ("bodies", [code("#| echo: false\n#| output: asis\nshow_doc(double)"), code(FUNCTION)], "double"),
    ("bodies", [code("#| echo: false\n" + FUNCTION)], "double"),
    ("signatures", [markdown("```python\ndef double(\n    *args, **kwargs\n):\n```")], "double"),
    ("widths", [code(LONG_LINE)], LONG_LINE[:20]),
    ("widths", [code("x", printed(LONG_LINE))], LONG_LINE[:20]),
    ("widths", [markdown(f"```sh\n{LONG_LINE}\n```")], LONG_LINE[:20]),
    ("length", [markdown("word " * (docs_check.MOST_WORDS + 1))], "3,001 words"),
    ("foreign_hosts", [markdown('<script src="https://x.org/a.js"></script>')], "https://x.org/a.js"),
    ("foreign_hosts", [markdown('<link rel="stylesheet" href="//x.org/a.css">')], "//x.org/a.css"),
    ("foreign_hosts", [markdown('<img alt="three words here" src="http://x.org/a.png">')], "http://x.org/a.png"),
    ("foreign_hosts", [markdown('<iframe src="https://x.org/"></iframe>')], "https://x.org/"),
    ("foreign_hosts", [markdown("<style>@font-face {src: url('//x.org/a.woff')}</style>")], "//x.org/a.woff"),
    ("links", [markdown("[gone](gone.ipynb)")], "gone.ipynb"),
    ("links", [markdown("[no anchor](#gone)")], "#gone"),
    ("links", [markdown("[no anchor](other.ipynb#gone)")], "other.ipynb#gone"),
    ("links", [markdown("[gone](/gone.ipynb)")], "/gone.ipynb"),
    ("links", [markdown("[outside](../README.md)")], "../README.md"),
    ("links", [markdown("[odd](https://x)")], "https://x"),
    ("links", [markdown("![a picture of it](gone.png)")], "gone.png"),
    ("phrases", [markdown("It goes to its owner\nof before, if any.")], "better: previous"),
    ("spelling", [markdown("A member that recieves nothing.")], "recieves ==> receives"),
]


@pytest.mark.parametrize("check", [*ONE_PAGE, "links", "phrases", "spelling"])
def test_a_clean_page_has_no_problem(check, root):
    assert problems(check, page(), root) == []


@pytest.mark.parametrize(("check", "cells", "named"), FAULTS, ids=[f"{n}-{one[0]}" for n, one in enumerate(FAULTS)])
def test_a_planted_fault_is_found(check, cells, named, root):
    found = problems(check, page(*cells), root)
    assert len(found) == 1 and found[0].startswith(f"{NAME}: ") and named in found[0], found


def test_limits_depend_on_the_kind_of_page():
    """Lines of other pages may be longer; they need no bodies, and they and the reference may be long."""
    cells = code(LONG_LINE), markdown("word " * (docs_check.MOST_WORDS + 1))
    other, reference = page(*cells, book=False), page(*cells, name="nbs/reference/page.ipynb")
    for check in (docs_check.widths, docs_check.bodies, docs_check.length):
        assert not list(check(other))
    assert not list(docs_check.length(reference))


def test_code_is_no_prose():
    shown = page(markdown("`of before` and `recieve`\n\n```\nof before\n```"), code("of_before = 'of before'"))
    assert not list(docs_check.phrases(shown, TABLE)) and not list(docs_check.spelling([shown]))


def test_texts_of_modules_and_files_are_read(tmp_path):
    (tmp_path / "module.py").write_text('"""A thing of before."""\nraise E(f"{x} is due to whoever owns it")\n')
    (tmp_path / "file.md").write_text("# Who is who?\n\nThe owner of before: [here](#who-is-who).\n", encoding="utf-8")
    module, file = read_module(tmp_path, "module.py"), read_markdown(tmp_path, "file.md")
    assert sorted("previous" in one for one in docs_check.phrases(module, TABLE)) == [False, True]
    assert len(list(docs_check.phrases(file, TABLE))) == 1
    assert not list(docs_check.links(file, {file.name: file}, tmp_path))


def test_the_table_of_phrases_is_well_formed():
    text = (Path(docs_check.__file__).parent / "phrases.txt").read_text(encoding="utf-8")
    assert all(better for _, better in docs_check.phrase_table(text))


TABLE_ENTRY = "| name | meaning |\n|---|---|\n| `named` | a name |"


@pytest.mark.parametrize("entry", ["## `named`", "### Group.named", TABLE_ENTRY], ids=["heading", "method", "row"])
def test_a_public_name_without_reference(entry):
    there = page(markdown(entry), name="nbs/reference/names.ipynb")
    elsewhere = page(markdown("## unnamed"))
    names = {"kafka_assign": ["named", "unnamed"]}
    found = list(docs_check.reference([there, elsewhere], names))
    assert found == ["nbs/reference/: a public name without an entry: kafka_assign.unnamed"]


def test_public_names_are_those_of_the_package_and_of_modules_in_the_readme(tmp_path):
    (tmp_path / "kafka_assign").mkdir()
    for name in ("__init__", "clients", "wire"):
        (tmp_path / "kafka_assign" / f"{name}.py").write_text(f"__all__ = ['of_{name}']")
    (tmp_path / "README.md").write_text("Consumers load `kafka_assign.clients.assignor`, see `kafka_assign.clients`.")
    assert docs_check.public_names(tmp_path) == {
        "kafka_assign": ["of___init__"], "kafka_assign.clients": ["of_clients"]}


@pytest.mark.needs("browser")
def test_what_is_cut_and_what_scrolls_sideways_is_found(tmp_path):
    wide = "<div style='width: 500px'>wide</div>"
    boxed = f"<details><pre style='overflow: auto; width: 400px'>{'x' * 400}</pre></details><p>words</p>"
    bodies = {"wide": wide, "boxed": f"<div style='overflow: hidden'>{boxed}</div>", "good": "<p>x</p>"}
    for name, body in bodies.items():
        (tmp_path / f"{name}.html").write_text(f"<!doctype html><body><main>{body}</main>", encoding="utf-8")
    widths = docs_check.LAPTOP, docs_check.PHONE
    measured = measure(find_chromium(), tmp_path, ["wide.html", "boxed.html", "good.html"], widths)
    found = list(docs_check.looks(measured, ["boxed.html", "good.html"]))
    assert [one.split(": ")[:2] for one in found] == [
        ["_docs/wide.html", "scrolls sideways at 390 px"], ["_docs/boxed.html", "a block that is cut at 1280 px"]]
