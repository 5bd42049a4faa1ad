"""Print the size of the package: lines of code, names in `__all__`, modules with code.

A line of code is one that holds a token of code: blank lines, comments, docstrings and generated files are left out.
`--modules` prints the lines and names of each module, too.
"""
import ast
import io
import sys
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "kafka_assign"
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def docstring_lines(tree: ast.Module) -> set[int]:
    "The numbers of the lines that belong to docstrings."
    texts = [node.body[0] for node in ast.walk(tree)
             if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
             and ast.get_docstring(node) is not None]
    return {line for text in texts for line in range(text.lineno, text.end_lineno + 1)}


def code_lines(source: str) -> int:
    "How many lines of a module hold code."
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in NO_CODE
             for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - docstring_lines(ast.parse(source)))


def exported_names(source: str) -> int:
    "How many names a module lists in `__all__`."
    values = [node.value for node in ast.parse(source).body if isinstance(node, ast.Assign)
              and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)]
    return sum(len(value.elts) for value in values if isinstance(value, (ast.List, ast.Tuple)))


def measured() -> dict[str, tuple[int, int]]:
    "Lines of code and names in `__all__` of each module that has code."
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "_modidx.py":
            source = path.read_text(encoding="utf-8")
            found[str(path.relative_to(PACKAGE))] = code_lines(source), exported_names(source)
    return {name: size for name, size in found.items() if size[0]}


def main() -> None:
    sizes = measured()
    if "--modules" in sys.argv[1:]:
        for name, (lines, names) in sizes.items():
            print(f"{lines:6,} lines {names:4} names  {name}")
    lines, names = map(sum, zip(*sizes.values()))
    print(f"{lines:,} lines of code, {names} names in __all__, {len(sizes)} modules")


if __name__ == "__main__":
    main()
