"""The reference: every public name, every parameter and every option has an entry that says what it means."""
import inspect
import json
import re
import sys

import pytest
from docs_check import pandoc_slug
from test_pages import NBS, ROOT, Cell

import kafka_assign

REFERENCE = NBS / "reference"
sys.path.insert(0, str(REFERENCE))

import commands  # noqa: E402
import entries  # noqa: E402

PLACES = entries.places()
IN_PROSE = re.compile(r"`kafka_assign\.((?:[a-z_]+\.)+\w+)`")  # a module, or a name in one


def named_in_prose():
    """The names of modules that README.md and the guides mention."""
    texts = [path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(NBS / "guides").glob("*.ipynb")]]
    return {name for text in texts for name in IN_PROSE.findall(text) if not is_module(name)}


def is_module(name):
    """Whether a dotted name below the package is a module."""
    path = ROOT / "kafka_assign" / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def methods(symbol):
    """The names of the public methods that a class defines."""
    return [name for name, value in vars(symbol).items() if not name.startswith("_")
            and (inspect.isfunction(value) or isinstance(value, classmethod))]


def wanted(names):
    """The paths of the entries that the reference must have if `names` are public."""
    found = set(names)
    for name in names:
        symbol = entries.Entry(name).symbol
        found |= {f"{name}.{method}" for method in methods(symbol)} if isinstance(symbol, type) else set()
    return found


def missing(names):
    """What has no entry if `names` are public."""
    return wanted(names) - {place.path for place in PLACES}


def test_every_public_name_has_an_entry():
    assert not missing({*kafka_assign.__all__, *named_in_prose()})


@pytest.mark.parametrize(
    "name", ["assignors.registry.resolve", "ranking.judging.Judgment", "assignors.sticky.classes.compress"])
def test_a_name_without_an_entry_is_found(name):
    assert missing({"assign", name}) == wanted({name})


def cells_of(page):
    """The cells of a page of the reference."""
    raw = json.loads((REFERENCE / page).read_text(encoding="utf-8"))["cells"]
    return [Cell(cell, number) for number, cell in enumerate(raw)]


def shown(page):
    """All that a page shows as Markdown: its prose, and what its cells made."""
    parts = []
    for cell in cells_of(page):
        parts += [cell.source] if cell.kind == "markdown" else []
        parts += ["".join(output.get("data", {}).get("text/markdown", "")) for output in cell.outputs]
    return "\n\n".join(parts)


every_entry = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.path)


@every_entry
def test_an_entry_says_what_it_means(place):
    entry = entries.Entry(place.path)
    assert len(entry.sentence.split()) > 2, entry.sentence
    assert entry.sentence.rstrip(".") in shown(place.page).replace("\n", " ")


@every_entry
def test_all_types_and_meanings_are_there(place):
    entry = entries.Entry(place.path)
    called = entry.parameters or entry.fields
    rows = entries.attributes_of(place.path) if entry.is_class else called
    page = shown(place.page)
    if f'attributes("{place.path}")' in "".join(cell.source for cell in cells_of(place.page)):
        rows = [*rows, *called]
    for row in rows:
        assert row.meaning and row.type, f"{row.name} has no type or no meaning"
        assert not re.search(r"\b(?:dict|list|tuple|Mapping|Callable|Sequence)\b(?!\[)", row.type), row.type
        assert f"<td><code>{entries.plain(row.name)}</code></td>" in page, row.name


@every_entry
def test_an_entry_has_an_anchor_below_its_heading(place):
    assert entries.Entry(place.path).name == place.heading.split()[0]
    text = "\n".join(cell.source for cell in cells_of(place.page) if cell.kind == "markdown")
    assert entries.anchor(place.heading) in map(pandoc_slug, re.findall(r"(?m)^#+ +(.+)$", text))


@every_entry
def test_functions_are_shown_at_work(place):
    if entries.Entry(place.path).is_class:
        return
    cells = [cell for cell in cells_of(place.page) if cell.kind == "code"]
    at = next(at for at, cell in enumerate(cells) if f'entry("{place.path}")' in cell.source)
    following = cells[at + 1:at + 2]
    assert following and "echo" not in following[0].directives, "no example after it"


def test_the_page_of_names_links_to_every_entry():
    page = shown("names.ipynb")
    links = re.findall(r'href="(\w+\.ipynb)#([\w-]+)"', page)
    assert len(links) == len(PLACES)
    assert set(links) == {(place.page, entries.anchor(place.heading)) for place in PLACES}
    assert entries.names().data == next(
        "".join(output["data"]["text/markdown"]) for cell in cells_of("names.ipynb") for output in cell.outputs)


def test_no_two_entries_of_a_page_have_one_anchor():
    found = [(place.page, entries.anchor(place.heading)) for place in PLACES]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("name", commands.commands())
def test_a_command_is_on_its_page_with_all_options(name):
    page = shown("command_line.ipynb")
    assert f"## {name}\n" in f"{page}\n"
    _, examples, _ = commands.sections_of(commands.commands()[name].command.help)
    entry = commands.details(name).data
    assert commands.beginning(name).data in page and entry in page and (examples or name.endswith("strategies"))
    for typed, _, meaning in commands.options(name):
        assert f"<td><code>{entries.plain(typed)}</code></td>" in entry
        assert meaning or typed.startswith("--format"), typed


def test_clauses_of_a_docstring():
    text, found = entries.clauses_of("What it does. `a`: one thing. `b`, `c`: two; as `d` is; `e` and `f`: three.")
    assert text == "What it does."
    assert found == {"a": "one thing", "b": "two; as `d` is", "c": "two; as `d` is", "e": "three", "f": "three"}
