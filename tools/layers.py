"""The layers of the package: which folders a module may import from. `python tools/layers.py` prints them.

The numbers are counted from the imports, also from those that only type checkers run. The same table is in
CONTRIBUTING.md, where `python tools/layers.py write` puts it.
"""
import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "kafka_assign"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
TOP = "kafka_assign"  # the module at the top, which offers the public names
LAYERS = [  # the lowest first; a module imports from its own folder and from lower layers
    {"arrays": "ragged rows, sets, columns, figures", "text": "words, errors, tables"},
    {"protocol": "what clients send: bytes, claims, the orders of Java"},
    {"groups": "a group, its members, its assignment, and the check of a certificate"},
    {"assignors": "the strategies", "snapshot": "groups from the output of Kafka's tools"},
    {"ranking": "which groups need attention", "life": "rebalances: simulated, live, and recorded in logs"},
    {"reports": "comparisons, moves, proofs, pictures", "clients": "consumers and clusters",
     "fleet": "many groups, on Spark", "samples": "groups to try things on"},
    {"cli": "the command line"},
    {"__main__": "where the command line begins", TOP: "the public names"},
]


@cache
def modules() -> dict[str, Path]:
    """Dotted name below the package -> file, without nbdev's index."""
    names = {path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in sorted(PACKAGE.rglob("*.py"))}
    return {name.removesuffix("__init__").rstrip(".") or TOP: path for path, name in names.items() if name != "_modidx"}


@cache
def parsed(name: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def sources(name: str, node: ast.stmt) -> list[str]:
    """The absolute dotted names that an import statement of a module names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    folder = [TOP, *name.split(".")] if name != TOP else [TOP]
    if modules()[name].stem != "__init__":
        folder.pop()
    base = folder[:len(folder) - node.level + 1] if node.level else []
    source = ".".join([*base, *filter(None, [node.module])])
    # `from . import group` names a module, `from .group import Group` does not
    return [f"{source}.{alias.name}" if f"{source}.{alias.name}".removeprefix(f"{TOP}.") in modules() else source
            for alias in node.names]


@cache
def imports(name: str) -> frozenset[str]:
    """The modules of this package that a module imports, anywhere in it."""
    nodes = [node for node in ast.walk(parsed(name)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    found = {source.removeprefix(f"{TOP}.") for node in nodes for source in sources(name, node)
             if source.split(".")[0] == TOP}
    return frozenset(found - {name})


def folder_of(name: str) -> str:
    """The folder of a module, or the module itself if it is in none."""
    return name.split(".")[0]


def imports_between() -> Counter[tuple[str, str]]:
    """How many modules of one room import how many of another: (importing room, imported room) -> imports."""
    return Counter((folder_of(name), folder_of(other)) for name in modules() for other in imports(name)
                   if folder_of(name) != folder_of(other))


def cycles() -> list[list[str]]:
    """Cycles of modules that import each other."""
    found, done = [], set()

    def visit(name, path):
        if name in path:
            found.append([*path[path.index(name):], name])
        elif name not in done:
            for other in sorted(imports(name)):
                visit(other, [*path, name])
            done.add(name)
    for name in modules():
        visit(name, [])
    return found


def table() -> str:
    """The layers as a Markdown table, the highest first."""
    rows = ["| layer | folder | contents |", "|---|---|---|"]
    for number, folders in reversed(list(enumerate(LAYERS, 1))):
        rows += [f"| {number} | `{name}` | {about} |" for name, about in folders.items()]
    return "\n".join(rows)


def main() -> None:
    if sys.argv[1:] == ["write"]:
        text = CONTRIBUTING.read_text(encoding="utf-8")
        found = re.compile(r"\| layer \| folder \| contents \|\n(\|.*\n)+")
        CONTRIBUTING.write_text(found.sub(lambda _: table() + "\n", text), encoding="utf-8")
        return
    below = {name: sorted(other for one, other in imports_between() if one == name)
             for name in map(folder_of, modules())}
    for number, folders in reversed(list(enumerate(LAYERS, 1))):
        for name in folders:
            size = sum(folder_of(one) == name for one in modules())
            print(f"{number}  {name:12} {size:3} modules  imports from {', '.join(below[name]) or 'nothing'}")
    print(f"{len(LAYERS)} layers, {len(below)} folders, {len(imports_between())} arrows between folders, "
          f"{len(cycles())} cycles")


if __name__ == "__main__":
    main()
