"""Check what the site shows: `make docs-check`.

The pages are processed as for Quarto in a scratch copy, and rendered to HTML by nbconvert. With `quarto` on PATH the
site is built, too, and checked again; with Chromium beside it, at the widths of a laptop and of a phone.

Each check takes a page (a few take all of them) and yields problems, which say the page, what is wrong, and where.
"""
import ast
import html
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import nbformat
import statements
from browser import find_chromium, measure
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters import markdown2html_mistune
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat import NotebookNode
from notebooks import (
    PACKAGE, ROOT, appendix_pages, copy_project, docs, notebooks, process, source_files, without_directives,
    write_readme,
)

BOOK_COLUMNS, OTHER_COLUMNS = 88, 100
LAPTOP, PHONE = 1280, 390                # px
MOST_WORDS = 3_000
FEWEST_WORDS_OF_A_PICTURE = 3
REFERENCE = "nbs/reference/"
SHOWN_OF_A_PROBLEM = 70

EXPORTS = re.compile(r"(?m)^#\s*\|\s*(?:export|exports|exporti)\b")
HIDDEN_SOURCE = re.compile(r"(?m)^#\s*\|\s*(?:echo|include):\s*false")
HIDDEN_OUTPUT = re.compile(r"(?m)^#\s*\|\s*(?:output|include):\s*false")
PICTURE_WORDS = re.compile(r'(?m)^#\s*\|\s*fig-alt:\s*"(.*)"\s*$')
RAW_HTML = re.compile(r"(?ms)^```\{=html\}\n(.*?)\n```$")
DIVISION = re.compile(r"(?m)^:::.*$")      # Pandoc's fences around blocks
ANCHOR = re.compile(r"\{#([\w.-]+)[^}]*\}")
LISTING = re.compile(r"(?m)^show_doc\(([\w.]+)")
EMPTY_SIGNATURE = re.compile(r"\*args,\s*\*\*kwargs,?\s*\)|Annotated[=\[]")
FOREIGN = re.compile(r"(?:https?:)?//|data:")
STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\s\"')]+)|\bfrom\s*[\"'](https?://[^\"']+)")


class Page(NamedTuple):
    """What a page shows, and what it is made of."""

    name: str                            # its path in the project
    book: bool = False                   # written to be read from top to bottom
    anchors: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()         # what a browser fetches without being asked
    pictures: tuple[str, ...] = ()       # the words of each picture
    code: tuple[str, ...] = ()           # blocks of code and of text output
    prose: tuple[str, ...] = ()          # paragraphs, headings, cells of tables: without code
    entries: frozenset[str] = frozenset()         # names that a heading, an anchor or a row of a table is about
    exported: tuple[tuple[str, str], ...] = ()    # public and private definitions of its module: name, source
    listed: tuple[str, ...] = ()                  # names whose signature and docstring it lists

    def problem(self, what: str, where: str) -> str:
        """A line for the reader, who looks for `where` on the page."""
        where = " ".join(where.split())
        return f"{self.name}: {what}: {where[:SHOWN_OF_A_PROBLEM]}{'…' if len(where) > SHOWN_OF_A_PROBLEM else ''}"


# --- from notebooks and Markdown to pages ------------------------------------------------------------------------

def pandoc_slug(heading: str) -> str:
    """The anchor that Quarto gives to a heading."""
    text = re.sub(r"[^\w\s.-]", "", heading.strip()).lower()
    return re.sub(r"^[^a-z]+", "", re.sub(r"\s+", "-", text)) or "section"


def host_slug(heading: str) -> str:
    """The anchor that a code host gives to a heading of a Markdown file."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def show(notebook: NotebookNode) -> NotebookNode:
    """Reduce a processed notebook to the sources and outputs that Quarto shows, with its words for pictures."""
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type != "raw"]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            cell.source = DIVISION.sub("", RAW_HTML.sub(r"\1", cell.source))
            continue
        words, hidden = PICTURE_WORDS.search(cell.source), HIDDEN_SOURCE.search(cell.source)
        cell.outputs = [] if HIDDEN_OUTPUT.search(cell.source) else cell.outputs
        cell.source = "" if hidden else without_directives(cell.source)
        for output in cell.outputs:
            forms = output.get("data", {})
            if raw := RAW_HTML.fullmatch(forms.get("text/markdown", "")):
                forms["text/html"] = raw[1]
            for kind in [kind for kind in forms if kind.startswith("image/")]:
                del forms[kind]
                forms["image/png"], output.metadata["image/png"] = "", {"alt": words[1] if words else ""}
    return notebook


@cache
def exporter() -> HTMLExporter:
    """Cells as HTML, code without colors."""
    def plain(source: str, *_: object, **__: object) -> str:
        return f"<pre>{html.escape(source)}</pre>" if source else ""

    filters = {"highlight_code": plain, "filter_data_type": WidgetsDataTypeFilter(notebook_metadata={}, resources={})}
    return HTMLExporter(template_name="basic", filters=filters, default_preprocessors=[])


def definitions(notebook: NotebookNode) -> list[tuple[str, str]]:
    """The functions and classes that a notebook exports, with their sources."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and EXPORTS.search(cell.source):
            found += [(node.name, ast.get_source_segment(cell.source, node)) for node in ast.parse(cell.source).body
                      if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return found


def read_html(name: str, text: str, slug=None, **about) -> Page:
    """A page from its HTML. `slug` names the anchors of headings that have none yet."""
    soup = BeautifulSoup(text, "html.parser")
    anchors = Counter() if slug else Counter(tag["id"] for tag in soup.find_all(id=True))
    for tag in soup.find_all(["h1", "h2", "h3", "h4", "h5", "h6"]) if slug else ():
        for link in tag.find_all("a", class_="anchor-link"):
            link.decompose()
        head = tag.get_text()
        own = ANCHOR.search(head)
        anchor = own[1] if own else slug(re.sub(r"\{[^}]*\}", "", head))
        anchors[anchor if not anchors[anchor] else f"{anchor}-{anchors[anchor]}"] += 1
        del tag["id"]
    anchors.update(tag["id"] for tag in soup.find_all(id=True))
    code = [tag.get_text() for tag in soup.find_all("pre")]
    content = soup.main or soup                # a logo beside the title needs no words
    pictures = [tag.get("alt", "") for tag in content.find_all("img")]
    pictures += [tag.get("aria-label") or tag.title and tag.title.get_text() or "" for tag in content.find_all("svg")]
    heads = soup.find_all(["h2", "h3", "h4", "h5", "dt"]) + [row.find("td") for row in soup.find_all("tr")]
    entries = {found[0] for tag in heads if tag and (found := re.search(r"[A-Za-z_][\w.]*", tag.get_text()))}
    page = Page(
        name, anchors=frozenset(anchors), code=tuple(code), pictures=tuple(pictures),
        links=tuple(tag["href"] for tag in soup.find_all("a", href=True)), loaded=tuple(loaded(soup)),
        entries=frozenset(entries | {entry.split(".")[-1] for entry in entries}), **about)
    blocks = prose(soup)
    spans = ANCHOR.findall(without_code("\n".join(blocks))) if slug else ()
    return page._replace(anchors=page.anchors.union(spans), prose=tuple(ANCHOR.sub("", block) for block in blocks))


def loaded(soup: BeautifulSoup) -> Iterator[str]:
    """Every address that a browser fetches to show a page."""
    for tag in soup.find_all(True):
        if tag.name == "link" and not {"canonical", "prev", "next", "alternate"} & set(tag.get("rel", ())):
            yield tag.get("href", "")
        yield from (tag[name] for name in ("src", "poster", "data") if tag.get(name) and tag.name != "a")
        yield from (choice.split()[0] for choice in tag.get("srcset", "").split(",") if choice.strip())
        text = tag.get("style", "") + (tag.get_text() if tag.name in ("style", "script") else "")
        yield from (found[1] or found[2] for found in STYLES.finditer(text))


BLOCKS = ["p", "li", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd", "summary", "figcaption", "div"]


def prose(soup: BeautifulSoup) -> list[str]:
    """The text that is written to be read, block by block, with code in backticks. Changes the soup."""
    for tag in soup.select("pre, script, style, svg, div.prompt, div.output_area"):
        tag.decompose()
    for tag in soup.find_all("code"):
        tag.replace_with(f"`{tag.get_text()}`")
    for tag in soup.find_all(BLOCKS):
        tag.insert_before("\0")
        tag.insert_after("\0")
    blocks = [" ".join(block.split()) for block in soup.get_text().split("\0")]
    return [block for block in blocks if block]


def read_notebook(root: Path, name: str, book: bool) -> Page:
    """A page from its notebook in nbs/ and from what nbdev made of it in _proc/."""
    source, processed = (nbformat.read(root / folder / name, as_version=4) for folder in ("nbs", "_proc"))
    return page_of(f"nbs/{name}", book, source, processed)


def page_of(name: str, book: bool, source: NotebookNode, processed: NotebookNode) -> Page:
    """A page from a notebook and its processed form."""
    listed = [target for cell in processed.cells for target in LISTING.findall(cell.source)]
    text, _ = TemplateExporter.from_notebook_node(exporter(), show(processed))  # HTMLExporter's own parses it once more
    return read_html(name, text, pandoc_slug, book=book,
                     exported=tuple(definitions(source)), listed=tuple(listed))


def read_markdown(root: Path, name: str) -> Page:
    """A page of the repository, as a code host shows it."""
    return read_html(name, markdown2html_mistune((root / name).read_text(encoding="utf-8")), host_slug)


def read_module(root: Path, name: str) -> Page:
    """The texts of a module: docstrings, messages and help."""
    nodes = list(ast.walk(ast.parse((root / name).read_text(encoding="utf-8"))))
    formatted = [node.values for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for values in formatted for part in values}
    texts = ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in values)
             for values in formatted]
    texts += [node.value for node in nodes
              if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts]
    sentences = [" ".join(text.split()) for text in texts]
    return Page(name, prose=tuple(text for text in sentences if text.count(" ") > 1))


# --- checks of one page ------------------------------------------------------------------------------------------

def tracebacks(page: Page) -> Iterator[str]:
    """No output ends in a traceback."""
    for block in page.code:
        if re.search(r"(?m)^\s*Traceback \(most recent call last\)", block):
            yield page.problem("a traceback", block.strip().splitlines()[-1])


def pictures(page: Page) -> Iterator[str]:
    """The words of a picture say what it shows to those who do not see it."""
    for words in page.pictures:
        if len(re.findall(r"\w+", words)) < FEWEST_WORDS_OF_A_PICTURE:
            yield page.problem("a picture without words", repr(words))


def bodies(page: Page) -> Iterator[str]:
    """A book page shows each definition that it exports once, with its body."""
    text = "\n".join(page.code)
    for name, source in page.exported if page.book else ():
        times = text.count(source) + (name in page.listed)
        if times != 1:
            yield page.problem("a body that is missing" if not times else "a definition that is shown twice", name)


def signatures(page: Page) -> Iterator[str]:
    """A signature says how to call."""
    for block in page.code:
        if re.match(r"\s*(async )?(def|class) \w+\((?!self)", block) and EMPTY_SIGNATURE.search(block):
            yield page.problem("a signature that says nothing", block)


def widths(page: Page) -> Iterator[str]:
    """Code and output fit the column of text."""
    most = BOOK_COLUMNS if page.book else OTHER_COLUMNS
    for line in "\n".join(page.code).splitlines():
        if len(line) > most:
            yield page.problem(f"a line of {len(line)} columns, {most} fit", line)


def length(page: Page) -> Iterator[str]:
    """A page that teaches can be read in one go."""
    words = sum(len(re.findall(r"\w[^\s]*", block)) for block in page.prose)
    if page.book and not page.name.startswith(REFERENCE) and words > MOST_WORDS:
        yield page.problem(f"{words:,} words, at most {MOST_WORDS:,}", page.name)


def foreign_hosts(page: Page) -> Iterator[str]:
    """A page can be read without asking another host. Links that a reader clicks are free."""
    for address in page.loaded:
        if FOREIGN.match(address) and not address.startswith("data:"):
            yield page.problem("loaded from another host", address)


def phrases(page: Page, table: list[tuple[re.Pattern, str]]) -> Iterator[str]:
    """No phrase of `tools/phrases.txt` in what is written to be read."""
    for block in map(without_code, page.prose):
        for pattern, better in table:
            if found := pattern.search(block):
                start = max(0, found.start() - (SHOWN_OF_A_PROBLEM - len(found[0])) // 2)
                yield page.problem(f"“{found[0]}”, better: {better}", block[block.rfind(" ", 0, start) + 1:])


def without_code(text: str) -> str:
    """Text in which code, quoted by backticks, is a `…`."""
    return re.sub(r"`[^`]*`", "…", text)


def phrase_table(text: str) -> list[tuple[re.Pattern, str]]:
    """Phrases and what is better, from the lines of `tools/phrases.txt`."""
    lines = [line.partition(" => ") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(re.compile(rf"\b(?:{pattern.strip()})\b", re.IGNORECASE), better.strip()) for pattern, _, better in lines]


# --- checks that look at all pages -------------------------------------------------------------------------------

def links(page: Page, pages: dict[str, Page], root: Path) -> Iterator[str]:
    """Links lead to a file of the site, or of the repository, and to an anchor that is there."""
    for target in [*page.links, *(address for address in page.loaded if not FOREIGN.match(address))]:
        if wrong := broken(target, page, pages, root):
            yield page.problem(wrong, target)


def broken(target: str, page: Page, pages: dict[str, Page], root: Path) -> str | None:
    """What is wrong with a link, if anything."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        whole = parts.scheme == "mailto" or parts.scheme in ("http", "https") and (
            "." in parts.netloc or parts.hostname == "localhost")
        return None if whole else "not a well-formed address"
    path, site = unquote(parts.path), page.name.partition("/")[0] if page.name.endswith((".ipynb", ".html")) else ""
    folder = site if path.startswith("/") else posixpath.dirname(page.name)
    file = posixpath.normpath(posixpath.join(folder, path.lstrip("/"))) if path else page.name
    if not (root / file).resolve().is_relative_to(root / site) or not (root / file).exists():
        return "a link to no file"
    known = pages.get(file)
    return "a link to no anchor" if parts.fragment and known and parts.fragment not in known.anchors else None


def public_names(root: Path) -> dict[str, list[str]]:
    """The names of the package and of each module that the README names, by module."""
    named = re.findall(rf"{PACKAGE}((?:\.\w+)+)", (root / "README.md").read_text(encoding="utf-8"))
    found = {}
    for module in ["", *sorted(set(named))]:
        path = root.joinpath(PACKAGE, *module.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.exists():
            tree = ast.parse(file.read_text(encoding="utf-8")).body
            lists = [node.value for node in tree
                     if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
            found[PACKAGE + module] = [name for names in lists for name in ast.literal_eval(names)]
    return found


def reference(pages: list[Page], names: dict[str, list[str]]) -> Iterator[str]:
    """Every public name has an entry in the reference: a heading, an anchor, or a row of a table."""
    entries = {entry for page in pages if page.name.startswith(REFERENCE) for entry in page.entries | page.anchors}
    for module, public in names.items():
        yield from (f"{REFERENCE}: a public name without an entry: {module}.{name}"
                    for name in public if name not in entries)


def spelling(pages: list[Page]) -> Iterator[str]:
    """What codespell finds in prose, all pages at once."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, page in enumerate(pages):
            text = "\n".join(map(without_code, page.prose)) + "\n"
            (Path(scratch) / f"{number}.txt").write_text(text, encoding="utf-8")
        said = subprocess.run([sys.executable, "-m", "codespell_lib", scratch], capture_output=True, text=True).stdout
    for number, line, found in re.findall(r"(?m)(\d+)\.txt:(\d+): (.*)", said):
        page = pages[int(number)]
        yield page.problem(found, without_code(page.prose[int(line) - 1]))


# --- the whole ---------------------------------------------------------------------------------------------------

def read_all(root: Path) -> dict[str, Page]:
    """The pages of the site, the Markdown files and the modules of a copy in which nbdev has made `_proc`."""
    appendix = appendix_pages(root)
    names = [path.relative_to(root / "nbs").as_posix() for path in notebooks(root)]
    files = source_files(root)
    pages = [read_notebook(root, name, name not in appendix) for name in names]
    pages += [read_markdown(root, name) for name in files if name.endswith(".md")]
    pages += [read_module(root, name) for name in files if name.startswith(f"{PACKAGE}/") and name.endswith(".py")]
    return {page.name: page for page in pages}


def style_page(path: Path) -> Page:
    """What a style sheet or a setting of Quarto loads."""
    return read_html(path.name, f"<style>{path.read_text(encoding='utf-8')}</style>")


def source_problems(root: Path) -> Iterator[str]:
    """The problems of a copy in which nbdev has made `_proc`."""
    pages = read_all(root)
    table = phrase_table((root / "tools/phrases.txt").read_text(encoding="utf-8"))
    for page in pages.values():
        for check in (tracebacks, pictures, bodies, signatures, length, foreign_hosts):
            yield from check(page)
        yield from widths(page) if page.name.endswith(".ipynb") else ()
        yield from links(page, pages, root)
        yield from phrases(page, table)
    yield from spelling(list(pages.values()))
    if (root / REFERENCE).exists():
        yield from reference(list(pages.values()), public_names(root))
    for path in (root / "_proc").rglob("*"):
        if path.suffix in (".css", ".scss"):
            yield from foreign_hosts(style_page(path))


def readme_problems(root: Path) -> list[str]:
    """README.md and its pictures are what `make notebooks` writes. Writes them into the copy."""
    before = {name: (root / name).read_bytes() for name in source_files(root)
              if name == "README.md" or name.startswith("index_files/")}
    write_readme(root)
    after = {path.relative_to(root).as_posix(): path.read_bytes()
             for path in [root / "README.md", *root.glob("index_files/*")]}
    return [f"{name}: `make notebooks` writes another one" for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)]


# --- the built site ----------------------------------------------------------------------------------------------

def site_problems(root: Path) -> Iterator[str]:
    """The problems of the site that Quarto has built into `_docs` from `_proc`."""
    built = {path.relative_to(root).as_posix(): path for path in sorted((root / "_docs").rglob("*.html"))}
    pages = {name: read_html(name, path.read_text(encoding="utf-8")) for name, path in built.items()}
    for page in pages.values():
        for check in (pictures, foreign_hosts):
            yield from check(page)
        yield from links(page, pages, root)
    if browser := find_chromium():
        names = [page.relative_to(root / "nbs").as_posix() for page in notebooks(root)]
        teaching = [page_address(root, name) for name in names if name not in appendix_pages(root)]
        addresses = [name.removeprefix("_docs/") for name in built]
        yield from looks(measure(browser, root / "_docs", addresses, (LAPTOP, PHONE)), teaching)


def page_address(root: Path, name: str) -> str:
    """Where the site has a page: nbdev has put that into its front matter."""
    head = nbformat.read(root / "_proc" / name, as_version=4).cells[0].source
    named = re.search(r"(?m)^output-file: (\S+)", head)
    return posixpath.join(posixpath.dirname(name), named[1] if named else Path(name).stem + ".html")


def looks(measured: list[dict], book: list[str]) -> Iterator[str]:
    """Book pages cut no block on a laptop, and no page scrolls sideways on a phone."""
    for found in measured:
        page = Page("_docs" + found["page"])
        if found["width"] == PHONE and found["sideways"]:
            yield page.problem(f"scrolls sideways at {PHONE} px", f"{found['sideways']} px")
        if found["width"] == LAPTOP and found["page"].lstrip("/") in book:
            yield from (page.problem(f"a block that is cut at {LAPTOP} px", block) for block in found["blocks"])


def main() -> None:
    quarto = shutil.which("quarto")
    with tempfile.TemporaryDirectory() as scratch:
        copy = copy_project(ROOT, Path(scratch).resolve() / "copy")
        docs(copy) if quarto else process(copy)
        problems = [*source_problems(copy), *readme_problems(copy), *statements.problems(copy)]
        if quarto:
            problems += site_problems(copy)
    if problems:
        sys.exit("\n".join(problems) + f"\n\n{len(problems)} problems in what the site shows")
    print("what the site shows is in order" + ("" if quarto else "; without quarto on PATH, the site was not built"))


if __name__ == "__main__":
    main()
