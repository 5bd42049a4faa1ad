"""What the site and the README show: code that is explained, useful signatures, links that lead somewhere."""
import json
import re
from functools import cache
from urllib.parse import urlsplit

import pytest
from notebooks import appendix_pages, copy_project, process, sidebar_pages, source_files, write_readme
from test_pages import EXPORTS, MODULE_PAGES, NBS, NOTEBOOKS, ROOT, cells, named

LINK = re.compile(
    r"(?<!!)\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\""
)
APPENDIX = appendix_pages(ROOT)
BOOK_PAGES = [path for path in MODULE_PAGES if named(path) not in APPENDIX]

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=named)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project, in which nbdev has made the pages for Quarto."""
    folder = copy_project(ROOT, tmp_path_factory.mktemp("site") / "copy")
    process(folder)
    return folder


@pytest.fixture(scope="module")
def site(copy):
    """The cells of the pages as nbdev hands them to Quarto."""
    return {
        page: json.loads((copy / "_proc" / page).read_text(encoding="utf-8"))["cells"] for page in sidebar_pages(ROOT)
    }


def test_the_readme_is_made_of_the_index(copy):
    before = [name for name in source_files(ROOT) if name == "README.md" or name.startswith("index_files/")]
    write_readme(copy)
    pictures = [path.relative_to(copy).as_posix() for path in copy.glob("index_files/*")]
    assert sorted(before) == sorted(["README.md", *pictures])
    for name in before:
        assert (copy / name).read_bytes() == (ROOT / name).read_bytes(), f"`make notebooks` writes another {name}"


def shown(cell):
    """What a page shows of a cell: its source unless that is hidden, and its outputs."""
    source = "".join(cell["source"])
    parts = [] if re.search(r"(?m)^#\| echo: false", source) else [source]
    for output in cell.get("outputs", []):
        data = {"text/plain": output.get("text", "")} | output.get("data", {})
        parts += ["".join(value) for kind, value in data.items() if kind.startswith("text/")]
    return "\n".join(parts)


def test_the_site_has_a_cell_for_every_page(site):
    assert all(site.values())


@pytest.mark.parametrize("path", BOOK_PAGES, ids=named)
def test_a_book_page_shows_the_code_it_explains(site, path):
    text = "\n".join(map(shown, site[named(path)]))
    exported = [cell for cell in cells(path) if EXPORTS & cell.directives.keys() and not cell.imports_only]
    missing = [str(cell) for cell in exported if cell.source not in text and "_all_ =" not in cell.source]
    assert not missing, missing


@every_notebook
def test_signatures_say_something(site, path):
    for cell in site[named(path)]:
        text = shown(cell)
        for empty in ("(*args, **kwargs)", "*args, **kwargs\n)", "Annotated=", "Annotated["):
            assert "show_doc" not in "".join(cell["source"]) or empty not in text, text[:300]


@every_notebook
def test_documentation_cells_ran(site, path):
    for cell in site[named(path)]:
        if "show_doc(" in "".join(cell["source"]):
            assert "Traceback" not in shown(cell), shown(cell)[:2000]


# --- links -------------------------------------------------------------------------------------------------------


def links(text):
    """The targets of links and pictures in Markdown or HTML, code blocks left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    return [next(filter(None, found)) for found in LINK.findall(text)]


@cache
def anchors(path):
    """The anchors of a page: its headings as Quarto and GitHub name them, and the ids that its HTML declares."""
    if path.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in cells(path) if cell.kind == "markdown")
    else:
        text = path.read_text(encoding="utf-8")
    heads = re.findall(r"(?m)^#+ +(.+?)\s*$", re.sub(r"```.*?```", "", text, flags=re.S))
    slugs = {
        re.sub(r"[^\w\- ]", "", re.sub(r"\{#.*\}|[`*]", "", head).lower()).strip().replace(" ", "-") for head in heads
    }
    return slugs | set(re.findall(r"\{#([\w-]+)|\bid=\"([\w-]+)\"", text))


def broken(target, page, root):
    """What is wrong with a link on a page, or nothing."""
    parts = urlsplit(target)
    if parts.scheme or target.startswith("//"):
        well_formed = parts.scheme in ("https", "http", "mailto") and (
            "." in parts.netloc or parts.netloc == "localhost" or parts.scheme == "mailto"
        )
        return None if well_formed else f"{target}: not a well-formed address"
    file = (page.parent / parts.path).resolve() if parts.path else page
    if not file.is_relative_to(root) or not file.exists():
        return f"{target}: there is no such file"
    if parts.fragment and file.suffix in (".ipynb", ".md") and parts.fragment not in anchors(file):
        return f"{target}: no such heading"
    return None


@every_notebook
def test_links_of_pages_lead_somewhere(path):
    found = [link for cell in cells(path) if cell.kind == "markdown" for link in links(cell.source)]
    problems = [problem for link in found if (problem := broken(link, path, NBS))]
    assert not problems, problems


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "samples/README.md", "tests/README.md"]
)
def test_links_from_the_repository_lead_somewhere(name):
    page = ROOT / name
    problems = [problem for link in links(page.read_text(encoding="utf-8")) if (problem := broken(link, page, ROOT))]
    assert not problems, problems


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title: `code`\n", encoding="utf-8")
    assert links("[a](b.md) ![c](d.png) `[e](f)` [`g`](h.ipynb#i)") == ["b.md", "d.png", "h.ipynb#i"]
    assert broken("page.md#a-title-code", page, tmp_path) is None
    assert [
        broken(link, page, tmp_path) is None
        for link in ("gone.md", "page.md#gone", "../up.md", "https://x", "ftp://a.b")
    ] == [False] * 5
    assert broken("https://kafka.apache.org/", page, tmp_path) is None
