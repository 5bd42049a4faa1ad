"""How the site shows a name: nbdev's renderer of signatures, with fields where Python has no useful signature.

`settings.ini` names `Signature` as the renderer of `show_doc`. A NamedTuple or dataclass is shown with a table of its
fields, an exception without the `(*args, **kwargs)` that it inherits.
"""
import ast
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from types import FunctionType

from nbdev.showdoc import BasicMarkdownRenderer


def is_named_tuple(symbol):
    """Whether it is a NamedTuple class."""
    return isinstance(symbol, type) and issubclass(symbol, tuple) and hasattr(symbol, "_fields")


def says_how_to_call(symbol):
    """Whether a class, or one that it extends, has an `__init__` written in Python."""
    return any(isinstance(vars(cls).get("__init__"), FunctionType) for cls in symbol.__mro__)


@cache
def class_definitions():
    """Every class of the package by name, with its file. Cells of the site run in `__main__`, without a source."""
    package = Path(__file__).resolve().parent.parent / "kafka_assign"
    return {node.name: (path, node) for path in sorted(package.rglob("*.py"))
            for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)}


def default_of(node):
    """The default of a field as it is written, also where `dataclasses.field` holds it; empty if there is none."""
    value = node.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        value = next((word.value for word in value.keywords if word.arg == "default"), None)
    return "" if value is None else ast.unparse(value)


def fields(symbol):
    """The fields of a NamedTuple or dataclass: (name, type, default, the comment beside it), as they are written."""
    path, definition = class_definitions()[symbol.__name__]
    lines = path.read_text(encoding="utf-8").splitlines()
    nodes = [node for node in definition.body if isinstance(node, ast.AnnAssign) and node.target.id != "_"]
    return [(node.target.id, ast.unparse(node.annotation), default_of(node),
             lines[node.end_lineno - 1].partition("  # ")[2]) for node in nodes]


def table(rows):
    """Fields as a Markdown table, without columns that say nothing."""
    heads = ["field", "type", "default", "meaning"]
    cells = [[name, f"`{kind}`", f"`{default}`" if default else "", text] for name, kind, default, text in rows]
    used = [at for at in range(4) if any(row[at] for row in cells)]
    lines = [[heads[at] for at in used], ["---"] * len(used)] + [[row[at] for at in used] for row in cells]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


class Signature(BasicMarkdownRenderer):
    """A name with its signature and docstring, or with its fields."""

    def _repr_markdown_(self):
        text = super()._repr_markdown_()
        head, fence, rest = text.partition("```python\n")
        _, end, docs = rest.partition("\n```")
        if is_named_tuple(self.sym) or isinstance(self.sym, type) and is_dataclass(self.sym):
            return f"{head}{docs.strip()}\n\n{table(fields(self.sym))}"
        if isinstance(self.sym, type) and not says_how_to_call(self.sym):
            return f"{head}```python\nclass {self.sym.__name__}{bases(self.sym)}\n```{docs}"
        return text

    def __repr__(self):
        """Nothing: a page shows the Markdown."""
        return f"<{self.nm}>"

    __str__ = __repr__


def bases(symbol):
    """The classes that a class extends, in brackets."""
    names = [cls.__name__ for cls in symbol.__bases__ if cls is not object]
    return f"({', '.join(names)})" if names else ""
