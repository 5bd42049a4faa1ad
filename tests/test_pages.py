"""The gate for pages: book pages are written to be read, appendix pages say what a module is for; these numbers tell.

`make check` looks at the rest by running everything again: outputs up to date, modules in sync, notebooks clean.
`make docs-check` looks at what the site shows: lines that fit, bodies, links.
"""

import ast
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from notebooks import appendix_pages, sidebar_pages, sidebars
from size import docstring_lines

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"


class Limits(NamedTuple):
    """What a page may be: sizes are at most, prose is at least."""

    lines: int
    cells: int | None
    hidden: float


BOOK, APPENDIX = Limits(lines=250, cells=120, hidden=0.15), Limits(600, None, 0.30)
LINES_OF_FUNCTION, LINES_OF_CLASS = 60, 250
INDEX_CELLS = 10, 15
TABS, MOST_ENTRIES = ["start", "guides", "proposals", "how", "reference"], 12
STRATEGY_WORDS, OTHER_WORDS, PURPOSE_WORDS = 2, 1, 25
STRATEGY_PAGES = re.compile(r"groups\.(group|assignment)|assignors\..*")  # two words of prose a line

EXPORTS = {"export", "exports", "exporti"}
NOISE = {
    "an address": r"\b0x[0-9a-fA-F]{6,}",
    "a path of some machine": r"(?<![\w.])/(?:home|root|Users|tmp|var/folders|private|work|mnt|opt|usr)/",
    "a cell's internal name": r"<ipython-input|/ipykernel_",
    "terminal codes": r"\x1b",
    "a wall time": r"(?i)\bwall time\b|\bCPU times\b|\b\d+(?:\.\d+)? ?(?:ms|µs) ?(?:±|per loop)",
}


class Cell:
    """A cell of a notebook: its source without directives, its directives, its outputs."""

    def __init__(self, raw, number):
        self.number, self.kind, self.id = number, raw["cell_type"], raw.get("id")
        lines = "".join(raw["source"]).splitlines()
        head = [line for line in lines if re.match(r"\s*#\s*\|", line)] if self.kind == "code" else []
        self.directives = {found[1]: line for line in head if (found := re.search(r"\|\s*([\w-]+)", line))}
        self.source = "\n".join(line for line in lines if line not in head).strip("\n")
        self.outputs = raw.get("outputs", [])

    def __str__(self):
        return f"cell {self.number}: {self.source[:60]!r}"

    @property
    def exported(self):
        return self.kind == "code" and bool(EXPORTS & self.directives.keys())

    @property
    def hidden(self):
        return "hide" in self.directives or re.search(r":\s*false", self.directives.get("include", "")) is not None

    @property
    def lines(self):
        return self.source.splitlines()

    @property
    def tree(self):
        """The statements, or None where it is not plain Python (a shell command, a magic)."""
        try:
            return ast.parse(self.source).body
        except SyntaxError:
            return None

    @property
    def imports_only(self):
        return bool(self.tree) and all(is_import(node) for node in self.tree)


def is_import(node):
    """An import statement, or a block of them for type checkers."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING" and all(map(is_import, node.body))
    return isinstance(node, (ast.Import, ast.ImportFrom))


@cache
def cells(path):
    """The cells of a notebook."""
    raw = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [Cell(cell, number) for number, cell in enumerate(raw)]


def code(path):
    return [cell for cell in cells(path) if cell.kind == "code"]


def exports(path):
    """Exported cells that hold more than imports."""
    return [cell for cell in cells(path) if cell.exported and not cell.imports_only]


def lines_of_code(source):
    """Lines that are neither blank nor docstrings: these are the text of the reference, which must not be short."""
    texts = docstring_lines(ast.parse(source))
    return sum(bool(line.strip()) for at, line in enumerate(source.splitlines(), 1) if at not in texts)


def exported_lines(path):
    """Lines of code that reach the module."""
    return sum(lines_of_code(cell.source) for cell in cells(path) if cell.exported)


def words(path):
    """Words of prose: markdown without code blocks and pictures."""
    text = "\n".join(cell.source for cell in cells(path) if cell.kind == "markdown")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return len([word for word in text.split() if re.search(r"\w", word)])


def module(path):
    """The module a page exports to, or None for pages that only teach."""
    first = next(iter(code(path)), None)
    found = re.match(r"#\s*\|\s*default_exp\s+(\S+)", (first.directives.get("default_exp") if first else None) or "")
    return found[1] if found else None


NOTEBOOKS = sorted(
    path
    for path in NBS.rglob("*.ipynb")
    if not any(part.startswith((".", "_")) for part in path.relative_to(NBS).parts)
)
MODULE_PAGES = [path for path in NOTEBOOKS if any(cell.exported for cell in cells(path))]
IN_APPENDIX = set(appendix_pages(ROOT))


def named(path):
    return path.relative_to(NBS).as_posix()


def limits(path):
    return APPENDIX if named(path) in IN_APPENDIX else BOOK


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
every_page = pytest.mark.parametrize("path", MODULE_PAGES, ids=named)
every_book_page = pytest.mark.parametrize("path", [p for p in MODULE_PAGES if named(p) not in IN_APPENDIX], ids=named)
every_appendix_page = pytest.mark.parametrize("path", [p for p in MODULE_PAGES if named(p) in IN_APPENDIX], ids=named)


@every_page
def test_begins_with_module_title_and_purpose(path):
    first, second = cells(path)[:2]
    assert module(path) and not first.source, "the first cell must hold `#| default_exp` and nothing else"
    assert second.kind == "markdown" and second.source.startswith("# "), "the second cell must be the title"
    assert re.search(r"(?m)^> \S", second.source), "under the title a line `> ...` must say what the page is"


@every_notebook
def test_one_title(path):
    titles = [
        line
        for cell in cells(path)
        if cell.kind == "markdown"
        for line in re.sub(r"```.*?```", "", cell.source, flags=re.S).splitlines()
        if line.startswith("# ")
    ]
    assert len(titles) == 1, titles
    start = next(cell for cell in cells(path) if cell.kind == "markdown")
    assert start.source.startswith(titles[0]) and re.search(r"(?m)^> \S", start.source), str(start)


@every_notebook
def test_imports_stand_alone(path):
    """nbdev runs imports and exported cells again for the documentation, and nothing of what stands around them."""
    for cell in code(path):
        tree = cell.tree or []
        looked_at = tree if cell.exported else [node for statement in tree for node in ast.walk(statement)]
        assert cell.imports_only or not any(map(is_import, looked_at)), f"imports among other code in {cell}"


@every_notebook
def test_no_patches_stars_or_numpydoc(path):
    for cell in code(path):
        assert not re.search(r"(?m)^\s*@patch\b", cell.source), f"@patch in {cell}"
        assert not re.search(r"(?m)^\s*from\s+\S+\s+import\s+\*", cell.source), f"star import in {cell}"
        assert not re.search(r"(?m)^\s*(Parameters|Returns|Raises)\s*\n\s*-{3,}\s*$", cell.source), f"numpydoc: {cell}"


@every_page
def test_modules_need_no_notebook_tools(path):
    for cell in code(path):
        if cell.exported:
            assert not re.search(r"\b(?:import|from)\s+(?:fastcore|nbdev|execnb|IPython)\b", cell.source), str(cell)


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@every_page
def test_size_of_cells_and_page(path):
    for cell in exports(path):
        for node in [node for part in cell.tree for node in ast.walk(part) if isinstance(node, DEFINITIONS)]:
            most = LINES_OF_CLASS if isinstance(node, ast.ClassDef) else LINES_OF_FUNCTION
            length = node.end_lineno - node.lineno + 1 - len(docstring_lines(node))
            assert length <= most, f"{length} lines in {node.name}"
    most = limits(path)
    assert exported_lines(path) <= most.lines, f"{exported_lines(path)} exported lines: split the module"
    assert most.cells is None or len(cells(path)) <= most.cells, f"{len(cells(path))} cells: split the page"


@every_page
def test_one_public_definition_in_a_cell(path):
    """nbdev documents several names of one cell in the wrong order, and below all of the code."""
    for cell in exports(path):
        public = [node.name for node in cell.tree if isinstance(node, DEFINITIONS) and not node.name.startswith("_")]
        assert len(public) <= 1, f"{public} in {cell}"


@every_book_page
def test_the_book_shows_its_code(path):
    """Constants, too; `make docs-check` looks at the definitions on the page itself."""
    hidden = [str(cell) for cell in exports(path) if "exports" not in cell.directives and "_all_" not in cell.source]
    assert not hidden, hidden


@every_notebook
def test_little_is_hidden(path):
    hidden, most = [cell for cell in code(path) if cell.hidden], limits(path).hidden
    assert len(hidden) <= most * len(code(path)), f"{len(hidden)} of {len(code(path))} code cells hidden"


@every_book_page
def test_every_exported_cell_is_shown_at_work(path):
    demos = [cell for cell in code(path)[1:] if not (cell.exported or cell.hidden or cell.imports_only)]
    assert len(demos) >= len(exports(path)), f"{len(demos)} visible for {len(exports(path))} exported cells"


@every_book_page
def test_prose(path):
    asked = STRATEGY_WORDS if STRATEGY_PAGES.fullmatch(module(path)) else OTHER_WORDS
    had = words(path) / max(exported_lines(path), 1)
    assert had >= asked, f"{words(path)} words for {exported_lines(path)} exported lines: {had:.2f} of {asked}"


@every_appendix_page
def test_an_appendix_page_says_what_its_module_is_for(path):
    first = next(cell for cell in cells(path)[2:] if cell.kind == "markdown")
    opening = cells(path)[1].source + first.source
    assert len(opening.split()) >= PURPOSE_WORDS, opening


@every_notebook
def test_outputs_are_the_same_everywhere(path):
    for cell in code(path):
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            text = "\n".join("".join(value) for kind, value in data.items() if kind.startswith("text/"))
            for what, pattern in NOISE.items():
                found = re.search(pattern, text)
                assert not found, f"{what} ({found[0]!r}) in the output of {cell}"


@every_notebook
def test_outputs_say_more_than_a_class(path):
    """`<kafka_assign.text.tables.Table>` shows no table."""
    for cell in code(path):
        for output in cell.outputs:
            forms = output.get("data", {})
            text = "".join(forms.get("text/plain", ""))
            assert len(forms) != 1 or not re.fullmatch(r"<[\w.]+( object)?>", text.strip()), f"{text} in {cell}"


@every_notebook
def test_clean(path):
    from nbdev.clean import clean_nb
    from nbdev.config import get_config

    raw = json.loads(path.read_text(encoding="utf-8"))
    before = json.dumps(raw, sort_keys=True)
    ids = [cell.get("id") for cell in raw["cells"]]
    assert None not in ids and len(set(ids)) == len(ids), "every cell needs an id of its own"
    clean_nb(raw, allowed_cell_metadata_keys=get_config().get("allowed_cell_metadata_keys").split())
    assert json.dumps(raw, sort_keys=True) == before, "`make notebooks` cleans it"


def test_index_is_short():
    assert INDEX_CELLS[0] <= len(cells(NBS / "index.ipynb")) <= INDEX_CELLS[1]


def test_sidebars_are_short_and_name_pages_once():
    assert [tab["id"] for tab in sidebars(ROOT)] == TABS
    lists = [tab["contents"] for tab in sidebars(ROOT)]
    lists += [entry["contents"] for entries in lists for entry in entries if "contents" in entry]
    assert all(1 <= len(entries) <= MOST_ENTRIES for entries in lists), lists
    assert len(set(sidebar_pages(ROOT))) == len(sidebar_pages(ROOT))
    assert set(sidebar_pages(ROOT)) <= set(map(named, NOTEBOOKS))


def test_every_module_and_every_other_page_is_listed_in_internals():
    """`make notebooks` makes the list; a page that nothing leads to is lost."""
    outputs = [output for cell in cells(NBS / "reference/internals.ipynb") for output in cell.outputs]
    text = "".join("".join(output["data"]["text/markdown"]) for output in outputs)
    pages = {*map(named, MODULE_PAGES), *appendix_pages(ROOT)}
    assert sorted(re.findall(r"\]\(\.\./([^)]+)\)", text)) == sorted(pages)


def test_no_number_twice():
    numbers = Counter(path.parent / path.name[:2] for path in MODULE_PAGES)
    assert not [number for number, times in numbers.items() if times > 1]
