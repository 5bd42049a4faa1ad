"""How the site shows a name: nbdev's renderer of signatures, with fields where Python has no useful signature.

`settings.ini` names `Signature` as the renderer of `show_doc`. A NamedTuple or dataclass is shown with a table of its
fields, an exception without the `(*args, **kwargs)` that it inherits.
"""
import ast
import inspect
import re
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from textwrap import wrap
from types import FunctionType

from nbdev.showdoc import BasicMarkdownRenderer

WIDTH, LONGEST_DEFAULT = 88, 40  # columns


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
        head, _, rest = text.partition("```python\n")
        _, _, docs = rest.partition("\n```")
        if is_named_tuple(self.sym) or isinstance(self.sym, type) and is_dataclass(self.sym):
            return f"{head}{docs.strip()}\n\n{table(fields(self.sym))}"
        if isinstance(self.sym, type) and not says_how_to_call(self.sym):
            call = f"class {self.sym.__name__}{bases(self.sym)}"
        elif self.sig is None:
            return text
        else:
            call = call_of(self.sym, self.sig, {name: part.get("docment") for name, part in self.dm.dm.items()})
        return f"{head}```python\n{call}\n```{docs}"

    def __repr__(self):
        """Nothing: a page shows the Markdown."""
        return f"<{self.nm}>"

    __str__ = __repr__


def type_of(annotation):
    """A type as one writes it, without the modules that its names come from."""
    annotation = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    text = inspect.formatannotation(annotation).replace("NoneType", "None").replace("~", "")
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def call_of(symbol, signature, comments):
    """A signature in one line or, if that is too long or parameters have comments, with a line for each parameter."""
    parts, named_only = [], False
    for name, parameter in signature.parameters.items():
        if name == "self" and not parts:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not named_only:
            parts.append(("*", None))
        named_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        bare = parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
        typed = parameter.annotation is not inspect.Parameter.empty
        text = f"{bare}: {type_of(parameter.annotation)}" if typed else str(bare)
        if parameter.default is not inspect.Parameter.empty:
            shown = getattr(parameter.default, "__name__", None) or repr(parameter.default)
            shown = shown if len(shown) <= LONGEST_DEFAULT else "..."
            text += f" = {shown}" if typed else f"={shown}"
        parts.append((text, comments.get(name)))
    word = "class" if isinstance(symbol, type) else "async def" if inspect.iscoroutinefunction(symbol) else "def"
    returned = signature.return_annotation
    end = ")" if returned is inspect.Signature.empty or word == "class" else f") -> {type_of(returned)}"
    line = f"{word} {symbol.__name__}({', '.join(text for text, _ in parts)}{end}"
    if len(line) <= WIDTH and not any(comment for _, comment in parts):
        return line
    return "\n".join([f"{word} {symbol.__name__}(", *(line for part in parts for line in lines_of(*part)), end])


def lines_of(text, comment):
    """The lines of one parameter, its comment behind it or, if that is too long, above it."""
    comment = f"# {' '.join(comment.split())}" if comment else ""
    line = f"    {text},  {comment}".rstrip()
    if len(line) <= WIDTH:
        return [line]
    above = wrap(comment, WIDTH, initial_indent="    ", subsequent_indent="    # ")
    return above + wrap(f"{text},", WIDTH, initial_indent="    ", subsequent_indent=" " * 8, break_long_words=False)


def bases(symbol):
    """The classes that a class extends, in brackets."""
    names = [cls.__name__ for cls in symbol.__bases__ if cls is not object]
    return f"({', '.join(names)})" if names else ""
