"""The list of pages in nbs/reference/internals.ipynb: every module, and what is in no sidebar, a line each."""
import json
import re
from itertools import groupby

from notebooks import ROOT, all_pages, appendix_pages


def about(page: str) -> tuple[str, str, str]:
    """The module that a page exports ("" if none), its title and its one-line description."""
    cells = json.loads((ROOT / "nbs" / page).read_text(encoding="utf-8"))["cells"]
    first = "".join(cells[0]["source"])
    head = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    module = re.match(r"#\s*\|\s*default_exp\s+(\S+)", first)
    return module[1] if module else "", re.search(r"(?m)^# (.+)", head)[1], re.search(r"(?m)^> (.+)", head)[1]


def chapter(page: str) -> str:
    """The title of a page's chapter: `06_assignors/09_lag_search.ipynb` is in `Assignors`."""
    return page.partition("/")[0].lstrip("0123456789_").replace("_", " ").capitalize()


def list_of_pages() -> str:
    """Markdown: a heading for each chapter, and a line for each of its pages."""
    blocks, appendix = [], set(appendix_pages(ROOT))
    listed = [page for page in all_pages(ROOT) if page in appendix or about(page)[0]]
    for title, pages in groupby(listed, chapter):
        lines = []
        for page in pages:
            module, name, description = about(page)
            lines.append(f"* [{name}](../{page}){f' (`{module}`)' * bool(module)}: {description}")
        blocks.append(f"## {title}\n\n" + "\n".join(lines))
    return "\n\n".join(blocks)
