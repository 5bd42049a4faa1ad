"""Check that the pages of the proposals show every statement of `nbs/01_proposals/statements.toml`."""
import json
import re
import tomllib
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

FOLDER = "nbs/01_proposals"


class Section(NamedTuple):
    """What stands under a heading of a page, up to the next heading."""

    heading: str
    quoted: list[str]           # each block quotation in one line, without marks of lists
    code: list[str]             # the source of each cell


def sections(notebook: dict) -> list[Section]:
    """The sections of a page; the line below its title is no quotation."""
    found = [Section("", [], [])]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            found[-1].code.append(source)
            continue
        for quoted, lines in groupby(source.splitlines(), key=lambda line: line.startswith(">")):
            if quoted:
                words = " ".join(re.sub(r"^>\s*(?:[*-] |\d+\. )?", "", line) for line in lines)
                found[-1].quoted.append(" ".join(words.split()))
            else:
                found += [Section(line.lstrip("# "), [], []) for line in lines if re.match("#+ ", line)]
    del found[1].quoted[:1]
    return found


def problems(root: Path) -> list[str]:
    """A line for each statement that is missing, not shown, not verbatim or not tested."""
    table, found = tomllib.loads((root / FOLDER / "statements.toml").read_text(encoding="utf-8")), []
    for proposal, about in table.items():
        page = f"{FOLDER}/{about['page']}"
        parts = sections(json.loads((root / page).read_text(encoding="utf-8")))
        number = re.sub(r"\D", "", proposal)
        known = {one["id"]: one for one in about["statement"]}
        wanted = [f"{number}.{at}" for at in range(1, about["count"] + 1)]
        found += [f"{page}: statement {id} has no row" for id in wanted if id not in known]
        found += [f"{page}: statement {id} is none of the {about['count']}" for id in known if id not in wanted]
        if not any(f'statements("{proposal}")' in code for part in parts for code in part.code):
            found.append(f"{page}: a cell must list the statements")
        for id, one in known.items():
            headings = [one["section"]] if isinstance(one["section"], str) else one["section"]
            shown = [part for part in parts if part.heading in headings]
            found += [f"{page}: statement {id} needs a heading {heading!r}"
                      for heading in headings if heading not in [part.heading for part in shown]]
            found += [f"{page}: {part.heading!r} needs a cell that shows statement {id}"
                      for part in shown if not (part.code or one.get("sentence"))]
            found += [f"{page}: {' or '.join(map(repr, headings))} must quote statement {id}: {quote[:60]}"
                      for quote in one["quotes"] if not any(quote in text for part in shown for text in part.quoted)]
            file, _, name = one["test"].partition("::")
            path = root / "tests" / file
            if not (path.exists() and (not name or f"\ndef {name}(" in path.read_text(encoding="utf-8"))):
                found.append(f"{page}: the test of statement {id} does not exist: {one['test']}")
        quotes = sorted((quote for one in known.values() for quote in one["quotes"]), key=len, reverse=True)
        for text in (text for part in parts for text in part.quoted):
            rest = text
            for quote in quotes:
                rest = rest.replace(quote, "")
            if rest.strip():
                found.append(f"{page}: a block quotation must be words of the proposal: {rest.strip()[:60]}")
    return found
