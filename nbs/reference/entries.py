"""Entries of the reference, made from signatures, docstrings and comments, so that nothing is written twice."""
import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable
from functools import cache, cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, Union, get_origin

from IPython.display import Markdown

HERE = Path(__file__).resolve().parent
PACKAGE = "kafka_assign"
WIDTHS = {"meaning": 50, "name": 30, "type": 30, "default": 12, "columns": 80, "option": 32}  # shares of columns
AS_TEXT = "name", "meaning", "if not given"
HEAD_OF_ATTRIBUTES = ["attribute", "type", "default", "meaning"]
WIDTH = 80                                                   # columns of a signature
PARAGRAPH = re.compile(r"\n\s*\n")
ERRORS = re.compile(r"\bRaises\s.*?\.(?=\s|$)", re.S)


class Parameter(NamedTuple):
    "A parameter, field or property: its types and default are text, empty if there are none."
    name: str
    type: str
    default: str
    meaning: str


@cache
def source(symbol: Any) -> tuple[ast.AST, list[str]]:
    "The definition of a function or class, and its lines."
    text = textwrap.dedent(inspect.getsource(symbol))
    return ast.parse(text).body[0], text.splitlines()


def comment(lines: list[str], node: ast.AST) -> str:
    "The comment behind a parameter or field."
    return lines[node.end_lineno - 1][node.end_col_offset:].partition("#")[2].strip()


def typed(node: ast.AST | None, names: dict) -> str:
    "An annotation as it is written; an alias of several types is spelled out."
    if node is None:
        return ""
    text = re.sub(r"['\"]", "", ast.unparse(node))
    for name in re.findall(r"\b_?[A-Z]\w+", text):
        if isinstance(alias := names.get(name), UnionType) or get_origin(alias) is Union:
            text = text.replace(name, re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(alias)))
    return text.replace("NoneType", "None")


class Entry:
    "A public name: `path` is below the package, as in `Group.leave` or `clients.assignor`."

    def __init__(self, path: str):
        self.path, parts = path, path.split(".")
        module = PACKAGE
        while len(parts) > 1 and not parts[0][0].isupper():
            module += "." + parts.pop(0)
        self.module, self.parts = module, parts
        self.owner, self.symbol = None, import_module(module)
        for part in parts:
            self.owner, self.symbol = self.symbol, inspect.getattr_static(self.symbol, part, None)
            self.symbol = getattr(self.owner, part) if self.symbol is None else self.symbol
        self.function = getattr(self.symbol, "__func__", self.symbol)
        self.is_class = isinstance(self.symbol, type)
        if self.is_class:
            self.function = inspect.unwrap(vars(self.symbol).get("__init__", len))
            self.function = self.function if inspect.isfunction(self.function) else None
        if self.function is not None and "__init__" in getattr(self.function, "__qualname__", "") and \
                "<string>" in self.function.__code__.co_filename:
            self.function = None                                 # a dataclass has made it

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def shortest(self) -> str:
        "The name, with its module if it is not imported from the package itself."
        return self.name if self.module == PACKAGE else f"{self.module}.{self.name}"

    @cached_property
    def text(self) -> str:
        "The docstring; the clauses about parameters and the errors are left out."
        return "\n\n".join(part for part, _ in self._paragraphs if part)

    @cached_property
    def sentence(self) -> str:
        "The first sentence of the docstring."
        first = PARAGRAPH.split(inspect.getdoc(self.symbol) or "")[0]
        return re.split(r"(?<=[.])\s", ERRORS.sub("", first).strip())[0].replace("\n", " ")

    @cached_property
    def errors(self) -> str:
        "The sentences of the docstring that say which errors are raised."
        return " ".join(" ".join(found.split()) for found in ERRORS.findall(inspect.getdoc(self.symbol) or ""))

    @cached_property
    def meanings(self) -> dict[str, str]:
        "What the docstring says of each parameter, in clauses such as ``name`: meaning`."
        return {name: words for _, clauses in self._paragraphs for name, words in clauses.items()}

    @cached_property
    def _paragraphs(self):
        doc = ERRORS.sub("", inspect.getdoc(self.symbol) or "")
        return [clauses_of(" ".join(part.split())) for part in PARAGRAPH.split(doc)]

    @cached_property
    def parameters(self) -> list[Parameter]:
        "The parameters of a function, method or class."
        if self.function is None:
            return []
        node, lines = source(self.function)
        of_fields = {one.name: one.meaning for one in fields_of(self.symbol)} if self.is_class else {}
        given, names = node.args, self.function.__globals__
        plain = [*given.posonlyargs, *given.args]
        defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults + given.kw_defaults
        listed = list(zip([*plain, *given.kwonlyargs], defaults))
        if given.vararg:
            listed.insert(len(plain), (given.vararg, None))
        listed += [(given.kwarg, None)] if given.kwarg else []
        found = []
        for one, default in listed:
            star = {given.vararg: "*", given.kwarg: "**"}.get(one, "")
            if (one.arg, star) in (("self", ""), ("cls", "")):
                continue
            shown = "" if default is None else ast.unparse(default)
            found.append(Parameter(
                star + one.arg, typed(one.annotation, names), "..." if shown.startswith(("_", "lambda")) else shown,
                self.meanings.get(one.arg) or comment(lines, default or one) or of_fields.get(one.arg, "")))
        return found

    @cached_property
    def fields(self) -> list[Parameter]:
        "The fields of a named tuple, dataclass or typed dict that does not say how it is made."
        return fields_of(self.symbol) if self.is_class and self.function is None else []

    @property
    def definition(self) -> str:
        "The class and what it extends, as it is written."
        bases = [ast.unparse(base) for base in source(self.symbol)[0].bases]
        return f"class {self.name}({', '.join(bases)})" if bases else f"class {self.name}"

    @property
    def signature(self) -> str:
        "How it is called, with all types; one parameter a line if it is long."
        call = ".".join(self.parts)
        if self.function is None:
            return self.definition
        node, _ = source(self.function)
        star = node.args.kwonlyargs and not node.args.vararg
        after = {one.arg for one in node.args.kwonlyargs[:1]} if star else set()
        positional = {one.arg for one in node.args.posonlyargs} - {"self"}
        words = []
        for one in self.parameters:
            words += ["*"] if one.name in after else []
            kind = f": {one.type}" if one.type else ""
            words.append(f"{one.name}{kind}" + (f"{' = ' if kind else '='}{one.default}" if one.default else ""))
            words += ["/"] if one.name in positional else []
        back = "" if self.is_class else f" -> {typed(node.returns, self.function.__globals__) or 'None'}"
        line = f"{call}({', '.join(words)}){back}"
        if len(line) <= WIDTH:
            return line
        wrapped = ["\n        ".join(wrapped_at_bars(f"{word},")) for word in words]
        return f"{call}(\n    " + "\n    ".join(wrapped) + f"\n){back}"

    def markdown(self, called: bool = True) -> str:
        """The entry as Markdown: signature, docstring, parameters or fields, errors.

        `called`: whether users call it, and not only get it.
        """
        code = self.signature if called else self.definition
        if not isinstance(self.owner, type):
            code = f"from {self.module} import {self.name}\n\n{code}"
        rows = self.parameters or self.fields if called else []
        head = "parameter" if self.parameters else "attribute"
        parts = [f"```python\n{code}\n```", self.text, table([head, "type", "default", "meaning"], rows)]
        parts += [f"**Errors.** {self.errors}"] if self.errors else []
        return "\n\n".join(part for part in parts if part)


def fields_of(symbol: type) -> list[Parameter]:
    "The fields that a class declares, with the comments beside them."
    node, lines = source(symbol)
    found = []
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and not one.target.id.startswith("_"):
            kind, default, meaning = one.annotation, default_of(one.value), comment(lines, one)
            if ast.unparse(kind).startswith("Annotated["):          # a field of a group: its meaning is data
                kind, text = kind.slice.elts[:2]
                meaning = text.value + (f"; {default} = unknown" if default in ("None", "-1", "0", "''") else "")
            elif isinstance(made := vars(symbol).get(one.target.id), property):
                default, meaning = "", meaning or inspect.getdoc(made) or ""
            found.append(Parameter(one.target.id, typed(kind, {}), default, meaning.replace("''", '""')))
    return found


def wrapped_at_bars(text: str) -> list[str]:
    "The lines of a parameter with its types, which are broken between alternatives."
    kept = text.replace(" | ", "\0| ").replace(" ", "\xa0").replace("\0", " ")
    lines = textwrap.wrap(kept, WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def default_of(node: ast.AST | None) -> str:
    "A default as it is written, also where `dataclasses.field` holds it."
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "field":
        node = next((word.value for word in node.keywords if word.arg == "default"), None)
    return "" if node is None else ast.unparse(node)


def clauses_of(paragraph: str) -> tuple[str, dict[str, str]]:
    "What a paragraph says before it goes through parameters, and what it says of each."
    parts = re.split(r"(?:(?<=^)|(?<=[.;] ))((?:`\w+`(?:, | and ))*`\w+`): ", paragraph)
    found = {}
    for names, words in zip(parts[1::2], parts[2::2]):
        found |= dict.fromkeys(re.findall(r"`(\w+)`", names), words.strip().rstrip(".;"))
    return parts[0].strip(), found


def plain(text: str) -> str:
    "Text as HTML in which no character means something to a reader of Markdown."
    return re.sub(r"[^\w\s;&#]", lambda found: f"&#{ord(found[0])};", escape(text))


def html(text: str) -> str:
    "Inline Markdown as HTML: code, links and quoted text, which is code, too."
    parts = re.split(r"(`[^`]+`|\[[^\]]+\]\([^)\s]+\))", text)
    for at, part in enumerate(parts):
        if at % 2 and part.startswith("["):
            words, target = part[1:-1].split("](")
            words = html(words).replace("&#46;", "&#46;<wbr>").replace("_", "_<wbr>")      # long names may be broken
            parts[at] = f'<a href="{target}">{words}</a>'
        else:
            parts[at] = f"<code>{plain(part[1:-1])}</code>" if at % 2 else re.sub(
                "&quot;(.*?)&quot;", r"<code>&quot;\1&quot;</code>", plain(part))
    return "".join(parts)


def table(head: list[str], rows: Iterable) -> str:
    """A table in HTML, without columns that say nothing; what is not in `AS_TEXT` is code.

    It is no Markdown, in which types would need escapes that not all readers know.
    """
    rows = list(rows)
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    shares = [WIDTHS.get(head[at], 20) for at in used]
    columns = "".join(f'<col style="width: {100 * share // sum(shares)}%">' for share in shares)
    lines = ["<tr>" + "".join(f"<th>{head[at]}</th>" for at in used) + "</tr>"]
    for row in rows:
        cells = [f"`{row[at]}`" if row[at] and head[at] not in AS_TEXT else row[at] for at in used]
        lines.append("<tr>" + "".join(f"<td>{html(cell)}</td>" for cell in cells) + "</tr>")
    parts = f"<colgroup>{columns}</colgroup><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody>"
    return f'<table class="table">{parts}</table>' if rows else ""


# --- what pages call -----------------------------------------------------------------------------------------------

def entry(path: str) -> Markdown:
    "The entry of a public name."
    return Markdown(Entry(path).markdown())


def result(path: str) -> Markdown:
    "The entry of a class that users get from a function: what it is, and its attributes."
    rows = attributes_of(path) if not issubclass(Entry(path).symbol, Exception) else []
    return Markdown(Entry(path).markdown(called=False) + "\n\n" + table(HEAD_OF_ATTRIBUTES, rows))


def attributes_of(path: str) -> list[Parameter]:
    "The fields and properties of a class."
    symbol = Entry(path).symbol
    made = Entry(path).function is not None              # then its fields have no defaults of their own
    found = [one._replace(default="") if made else one for one in fields_of(symbol)]
    for name, value in vars(symbol).items():
        made = value if isinstance(value, property) else getattr(value, "func", None) and value
        if name.startswith("_") or made is None or name in {one.name for one in found}:
            continue
        getter = getattr(made, "fget", None) or made.func
        node, _ = source(getter)
        meaning = inspect.getdoc(made) or ""
        meaning = " ".join(meaning.split()).rstrip(".")
        meaning = meaning if meaning[1:2].isupper() else meaning[:1].lower() + meaning[1:]
        found.append(Parameter(name, typed(getattr(node, "returns", None), getter.__globals__), "", meaning))
    return found


def attributes(path: str) -> Markdown:
    "The fields and properties of a class as a table."
    return Markdown(table(HEAD_OF_ATTRIBUTES, attributes_of(path)))


# --- what stands on which page -------------------------------------------------------------------------------------

class Place(NamedTuple):
    "Where the reference explains a name."
    page: str                    # file
    subject: str                 # the heading of level 2 above it, or the title of the page
    heading: str                 # its own heading
    path: str


ENTRY_CALL = re.compile(r'^(?:entry|result)\("([\w.]+)"\)', re.M)


def anchor(heading: str) -> str:
    "The anchor that a heading gets on the site."
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@cache
def places() -> list[Place]:
    "Every entry of every page, in the order of the sidebar."
    pages = re.findall(r"- reference/(\w+\.ipynb)", (HERE.parent / "sidebar.yml").read_text(encoding="utf-8"))
    return [place for page in pages for place in places_of(HERE / page)]


def places_of(path: Path) -> list[Place]:
    "The entries of one page."
    found, heads = [], {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for marks, head in re.findall(r"(?m)^(#+) +(.+?)\s*$", text):
                heads = {level: words for level, words in heads.items() if level < len(marks)} | {len(marks): head}
        for name in ENTRY_CALL.findall(text) if cell["cell_type"] == "code" else ():
            is_method = name.rpartition(".")[0].rpartition(".")[2][:1].isupper()
            subject = heads[2] if 3 in heads and not is_method else heads[1]
            found.append(Place(path.name, subject, heads[max(heads)], name))
    return found


def names() -> Markdown:
    "Every public name by subject, each with a sentence and a link; methods are listed below their class."
    rows, methods = {}, {}
    for place in places():
        one = Entry(place.path)
        link = f"({place.page}#{anchor(place.heading)})"
        if isinstance(one.owner, type):
            methods.setdefault(one.parts[-2], []).append(f"[`{one.name}`]{link}")
        else:
            rows.setdefault(place.subject, []).append((one, f"[`{one.shortest}`]{link}"))
    parts = []
    for subject, found in rows.items():
        lines = []
        for one, link in found:
            more = f" Methods: {', '.join(methods[one.name])}." if one.is_class and one.name in methods else ""
            lines.append((link, one.sentence + more))
        parts.append(f"## {subject}\n\n{table(['name', 'meaning'], lines)}")
    return Markdown("\n\n".join(parts))
