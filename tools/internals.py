"""The list of pages in nbs/reference/internals.ipynb: all that are in no sidebar, by layer, with a line each."""
import json
import re

from layers import LAYERS, NAMES
from notebooks import ROOT, appendix_pages


def about(page: str) -> tuple[str, str, str]:
    """The module that a page exports ("" if none), its title and its one-line description."""
    cells = json.loads((ROOT / "nbs" / page).read_text(encoding="utf-8"))["cells"]
    first = "".join(cells[0]["source"])
    head = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    module = re.match(r"#\s*\|\s*default_exp\s+(\S+)", first)
    return module[1] if module else "", re.search(r"(?m)^# (.+)", head)[1], re.search(r"(?m)^> (.+)", head)[1]


def list_of_pages() -> str:
    """Markdown: a heading for each layer, the lowest first, and a line for each of its pages."""
    highest = max(NAMES)
    lines: dict[int, list[str]] = {number: [] for number in NAMES}
    for page in appendix_pages(ROOT):
        module, title, description = about(page)
        layer = LAYERS.get(module.split(".")[0], highest)     # __main__ is the command line
        code = f" (`{module}`)" if module else ""
        lines[layer].append(f"* [{title}](../{page}){code}: {description}")
    return "\n\n".join(f"## {NAMES[number].capitalize()}\n\n" + "\n".join(found)
                       for number, found in lines.items() if found)
