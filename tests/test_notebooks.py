"""What `tools/notebooks.py` makes of the pages for all at once: what a reader of the site and of README.md gets."""
import json
import re

import pytest
import yaml
from notebooks import (
    as_terminal, clean_page, complete_settings, fold, make_readable, markdown_of, once_each, raw_html, tidy_markdown,
    unlink_tests,
)
from test_pages import ROOT

from kafka_assign.text.tables import Table


def code(source, **about):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    return cell | about


@pytest.mark.parametrize(
    ("source", "heading", "summary"),
    [
        ("import ast\nfrom kafka_assign import Group", "", "Imports"),
        ("from kafka_assign import Group", "", None),  # which a reader types, too
        ("import ast\nast.parse('')", "", None),
        ("test_eq(1, 1)", "Checks", "Checked"),
        ("test_eq(1, 1)", "", None),
        ("#| echo: false\nimport ast", "", None),
    ],
)
def test_what_is_folded(source, heading, summary):
    cell = code(source)
    fold(cell, heading)
    assert cell["source"].endswith(source)
    assert cell["source"].startswith(f'#| code-fold: true\n#| code-summary: "{summary}"\n') == bool(summary)
    assert (cell["source"] == source) != bool(summary)


def test_shown_code_is_listed_once_and_keeps_its_anchor():
    """A method, a name whose code is not shown, and a listing that the author wrote stay."""
    listings = [f"#| output: asis\nshow_doc({name})" for name in ("shown", "hidden", "Group.leave", "wanted")]
    cells = [code(listing) for listing in listings] + [code("def shown(): ...\ndef wanted(): ...")]
    kept = list(once_each(cells, {"show_doc(wanted)"}))
    assert kept[0]["cell_type"] == "markdown" and 'id="shown"' in kept[0]["source"]
    assert kept[1:] == cells[1:]


@pytest.mark.parametrize(
    ("source", "metadata"), [("!COLUMNS=88 ls -l", {}), ("ls -l", {"language": "bash"})], ids=["!", "%%bash"]
)
def test_commands_look_like_a_terminal(source, metadata):
    cell = code(source, metadata=metadata, outputs=[{"output_type": "stream", "text": ["one\n", "two\n"]}])
    as_terminal(cell)
    assert cell["cell_type"] == "markdown" and not {"outputs", "execution_count"} & cell.keys()
    assert "```sh\nls -l\n```" in cell["source"] and "```\none\ntwo\n```" in cell["source"]


def test_jupyter_saves_what_make_notebooks_writes():
    """No count, no time; lines of a terminal end as all others, and those of a picture stand one below the other."""
    outputs = [{"output_type": "stream", "name": "stdout", "text": "one\r\ntwo\r\n"},
               {"output_type": "execute_result", "data": {"image/svg+xml": "<svg>\n</svg>"}, "metadata": {},
                "execution_count": 7}]
    cell = code("!ls", outputs=outputs, execution_count=7, metadata={"execution": {"iopub.status.busy": "now"}})
    page = {"cells": [cell], "metadata": {"toc": {}}, "nbformat": 4}
    clean_page({"type": "notebook", "content": page})
    assert (cell["execution_count"], cell["metadata"], page["metadata"]) == (None, {}, {})
    assert cell["outputs"][0]["text"] == ["one\n", "two\n"]
    assert cell["outputs"][1] == {"output_type": "execute_result", "metadata": {}, "execution_count": None,
                                  "data": {"image/svg+xml": ["<svg>\n", "</svg>"]}}


def test_html_is_no_widget():
    """Quarto loads scripts from a foreign host where it finds `text/html`."""
    cell = code("table", outputs=[{"data": {"text/html": ["<p>a_b_c</p>"], "text/plain": "a"}}])
    raw_html(cell)
    assert cell["outputs"][0]["data"] == {"text/markdown": "```{=html}\n<p>a_b_c</p>\n```", "text/plain": "a"}


def test_pictures_are_in_the_page():
    """A style sheet that follows light and dark does not reach into a file."""
    cell = code("plot", outputs=[{"data": {"image/svg+xml": ["<svg>\n", "</svg>"], "text/plain": "words"}}])
    raw_html(cell)
    assert cell["outputs"][0]["data"]["text/markdown"] == "```{=html}\n<svg>\n</svg>\n```"


def test_the_site_has_no_links_to_tests():
    """Links within the site stay."""
    rows = ["| [The rule](#the-rule) | [`test_lag.py::test_ties`](../../tests/test_lag.py) |\n", "| a | b |"]
    cell = code("table", outputs=[{"data": {"text/markdown": rows}}])
    unlink_tests(cell)
    assert cell["outputs"][0]["data"]["text/markdown"] == (
        "| [The rule](#the-rule) | `test_lag.py::test_ties` |\n| a | b |")


def test_readme_has_tables_in_markdown():
    """Every row and cell of the table arrives, with what Markdown would misread."""
    table = Table(["name", "load"], [["a|b", 1], ["<c>", 2000]], caption="Group", notes=["A note."])
    lines = [line for line in markdown_of(table.html()).splitlines() if line]
    assert lines == ["Group", "| name | load |", "|---|---:|", "| a\\|b | 1 |", "| &lt;c&gt; | 2,000 |", "A note."]


def test_what_only_quarto_reads_is_left_out():
    """Also where a line ends within it."""
    text = "::: {.buttons}\n[Go](a.md){.btn\n.btn-primary} [a]{#b} `{.x}`\n:::\n\ntext\n"
    assert tidy_markdown(text) == "[Go](a.md) [a] `{.x}`\n\ntext\n"


CODE = r"(?ms)^(`{3,})[^`\n]*\n.*?^\1 *$|(`+)[^`].*?\2"
SHOWN_AS_TEXT = {  # by a code host, outside of code
    "attributes": r"(?<!\{)\{ *(?:[.#=:-]|[\w-]+=|[^{}\n]* [.#]\w)[^}]*\}", "a div": r"(?m)^ *:{3,}",
    "a shortcode": r"\{\{[<%]", "front matter": r"\A\s*---\n", "a citation": r"(?<![\w`.@])-?@[a-z]\w",
    "a note": r"\^\[", "a reference": r"(?<![\w`])@(sec|fig|tbl|lst|eq|thm)-", "raw text": r"<(?!!--)[a-z/]*"
    r"(title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)\b"}
OF_CODE = {"code that is run": r"(?<!`)`\{\w+\} ", "a cell": r"(?m)^ *`{3,} *\{",
           "attributes of code": r"`\{[.#=][^}`]*\}(?!`)", "an option": r"(?m)^ *#\|"}


def only_for_quarto(text):
    """The forms in a text that a code host would show as they are."""
    prose = re.sub(CODE, "", text)
    return {*(name for name, form in SHOWN_AS_TEXT.items() if re.search(form, prose)),
            *(name for name, form in OF_CODE.items() if re.search(form, text))}


@pytest.mark.parametrize(("text", "found"), [
    ("[Go](a.md){.btn\n.btn-primary}", "attributes"), ("# Head {#head}", "attributes"), ("[a]{.aside}", "attributes"),
    ("![](a.png){fig-alt=1}{#fig-a}", "attributes"), ("a\n::: {.callout-note}\nb\n:::\n", "a div"), (":::", "a div"),
    ("![](a.png){width=300}", "attributes"), ("[Go](a.md){ .btn }", "attributes"), ("# Head {-}", "attributes"),
    ('[a](b){target="_blank"}', "attributes"), ("![](a.png){width=50% .c}", "attributes"), ("a^[note]", "a note"),
    ("as @knuth says", "a citation"), ("`{python} x`", "code that is run"),
    ("{{< include a.md >}}", "a shortcode"), ("see [@knuth]", "a citation"), ("as @sec-head says", "a reference"),
    ("<style>p {}</style>", "raw text"), ("---\ntitle: a\n---\n", "front matter"), ("```{python}\n1\n```\n", "a cell"),
    ("``` {.sh}\nls\n```\n", "a cell"), ("`x`{.python}", "attributes of code"),
    ("```python\n#| echo: false\n```\n", "an option"),
])
def test_what_a_code_host_shows_as_text_is_noticed(text, found):
    assert found in only_for_quarto(text)


def test_readme_has_nothing_that_only_quarto_reads():
    """The one that is committed."""
    assert only_for_quarto("`{.x}` and\n\n```python\n{1: {.5}}\n```\n\n<!-- ::: -->") == set()
    assert only_for_quarto((ROOT / "README.md").read_text(encoding="utf-8")) == set()


def test_addresses_are_left_out_until_they_are_known(tmp_path):
    (tmp_path / "nbs").mkdir()
    for name in ("settings.ini", "nbs/sidebar.yml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    path, about = tmp_path / "nbs/nbdev.yml", {"title": "a", "repo-url": "", "site-url": ""}
    for url in ("", "https://code.example/a"):
        path.write_text(yaml.safe_dump({"website": about | {"repo-url": url, "site-url": url}}), encoding="utf-8")
        complete_settings(tmp_path)
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"repo-url", "site-url", "repo-actions"} <= settings["website"].keys() or not url
        assert ("format" in settings) == bool(url) == ("repo-url" in settings["website"])
        assert [tab["text"] for tab in settings["website"]["navbar"]["left"]][::4] == ["Start", "Reference"]


def test_an_internal_page_is_in_the_tab_that_lists_it(tmp_path):
    for folder, front in (("nbs", "# A"), ("_proc", "---\ntitle: A\n---\n")):
        (tmp_path / folder).mkdir()
        cells = [{"cell_type": "raw", "id": "r", "metadata": {}, "source": front}, code("a\nb")]
        (tmp_path / folder / "a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    (tmp_path / "nbs/sidebar.yml").write_bytes((ROOT / "nbs/sidebar.yml").read_bytes())
    make_readable(tmp_path, "a.ipynb")
    front, cell = json.loads((tmp_path / "_proc/a.ipynb").read_text(encoding="utf-8"))["cells"]
    assert front["source"][1:3] == ["sidebar: how\n", "body-classes: internal\n"]
    assert cell["source"] == ["a\n", "b"]  # of a single text Quarto makes one line
