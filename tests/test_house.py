"""The house rules that a reader would otherwise have to take on trust: layers, names, imports, docstrings, files."""
import ast
import builtins
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from layers import LAYERS, TOP, cycles, folder_of, modules, parsed, sources, table
from layers import imports as inner_imports
from notebooks import is_exported, sidebar_pages, source_files

import kafka_assign

ROOT = Path(__file__).resolve().parent.parent
MOST_LAYERS = 8

LIBRARIES = {  # what a module may load while it is itself loaded; functions may load more where they need it
    "fleet": {"numpy", "pyspark", "pyarrow", "pandas"}, "cli": {"numpy", "typer", "rich"},
    "reports": {"numpy", "matplotlib"},          # `draw`, which `plot` loads
}
HEAVY = ["pandas", "pyspark", "pyarrow", "matplotlib", "typer", "rich", "kafka", "aiokafka", "jinja2", "nbdev",
         "fastcore"]


def statements(tree):
    """Every node but what stands under `if TYPE_CHECKING`, with whether it runs when the module is loaded."""
    def walk(node, at_load):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield child, at_load
            yield from walk(child, at_load and not inside)
    return walk(tree, True)


def imports(name):
    """What a module imports: pairs of absolute dotted name, and whether it runs when the module is loaded."""
    return [(source, at_load) for node, at_load in statements(parsed(name))
            if isinstance(node, (ast.Import, ast.ImportFrom)) for source in sources(name, node)]


every_module = pytest.mark.parametrize("name", [name for name in modules() if name != TOP])


def test_imports_run_down():
    """Every folder has a layer; a module imports from its own folder and from lower layers, and never in a cycle."""
    layer = {name: number for number, folders in enumerate(LAYERS, 1) for name in folders}
    assert layer.keys() == set(map(folder_of, modules())) and len(LAYERS) <= MOST_LAYERS
    up = [(name, other) for name in modules() for other in inner_imports(name)
          if folder_of(name) != folder_of(other) and layer[folder_of(other)] >= layer[folder_of(name)]]
    assert not up and not cycles()


def test_contributing_has_the_table_of_layers():
    """`python tools/layers.py write` writes it."""
    assert table() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


CHAPTERS = {  # pages that export into other folders than the one their chapter is named after
    "proposals": "assignors", "optimum": "assignors groups reports", "kafkas_assignors": "assignors",
    "ground": "arrays text protocol", "cli": "__main__ cli samples"}


@every_module
def test_a_chapter_is_a_folder(name):
    page = re.search(r"File to edit: \S*?nbs/(\S+?)\.ipynb", modules()[name].read_text(encoding="utf-8"))
    if page:
        chapter = page[1].split("/")[0].partition("_")[2]
        assert folder_of(name) in CHAPTERS.get(chapter, chapter).split(), f"{page[1]} exports {name}"


@every_module
def test_loads_only_what_its_layer_may(name):
    allowed = LIBRARIES.get(folder_of(name), {"numpy"}) | {"kafka_assign"} | sys.stdlib_module_names
    for source, at_load in imports(name):
        if at_load:
            assert source.split(".")[0] in allowed, f"{name} imports {source}: do it in the function that needs it"


@every_module
def test_every_module_is_made_by_a_page(name):
    path = modules()[name]
    if path.stem == "__init__" and not is_exported(path):
        assert not path.read_text(encoding="utf-8").strip(), "only kafka_assign/__init__.py is written by hand"
    else:
        assert is_exported(path), f"{name} comes from no notebook"


def public(name):
    """The names in a module's `__all__`."""
    for node in parsed(name).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@every_module
def test_no_name_shadows_a_builtin_or_a_module(name):
    defined = {node.name for node in parsed(name).body if isinstance(node, DEFINITIONS)} | set(public(name))
    taken = {other.split(".")[-1] for other in modules()} | {"kafka_assign"}
    assert not (defined | set(name.split("."))) & set(dir(builtins))
    assert not defined & taken


def test_no_public_name_shadows_a_module():
    assert not set(kafka_assign.__all__) & set(map(folder_of, modules())) - {TOP}


def test_no_public_name_has_two_meanings():
    homes = defaultdict(list)
    for name in modules():
        defined = {node.name for node in parsed(name).body if isinstance(node, DEFINITIONS)}
        defined |= {target.id for node in parsed(name).body if isinstance(node, ast.Assign)
                    for target in node.targets if isinstance(target, ast.Name)}
        if name == "clients.aio":  # for aiokafka, under the names that `clients` has for kafka-python
            continue
        for one in defined & set(public(name)):
            homes[one].append(name)
    assert not {one: where for one, where in homes.items() if len(where) > 1}


def test_every_public_name_has_a_user():
    """Another module, a page in a tab of the site, or the top; any other name is exported with `#| exporti`."""
    nodes = [node for name in modules() for node in ast.walk(parsed(name))]
    used = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    places = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    used |= {place.rpartition(":")[2] for place in places if place.startswith(f"{TOP}.")}
    for page in sidebar_pages(ROOT):
        used |= set(re.findall(r"\w+", (ROOT / "nbs" / page).read_text(encoding="utf-8")))
    assert not {name: unused for name in modules() if (unused := set(public(name)) - used) and name != TOP}


def test_no_base_class_is_used_once():
    """A class is whole. Errors are exempt: callers catch the wider one."""
    classes = [node for name in modules() for node in ast.walk(parsed(name)) if isinstance(node, ast.ClassDef)]
    own = {node.name for node in classes if not node.name.endswith("Error")}
    used = Counter(
        base.id for node in classes for base in node.bases if isinstance(base, ast.Name) and base.id in own
    )
    assert not [base for base, times in used.items() if times == 1]


def is_number(node):
    """Whether an expression is made of numbers and nothing else."""
    inside = list(ast.walk(node))
    return any(isinstance(part, ast.Constant) for part in inside) and all(
        isinstance(part, (ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Load, ast.Tuple))
        or isinstance(part, ast.Constant)
        and type(part.value) in (int, float)
        for part in inside
    )


LARGEST_ASCII = 127
NATURAL = {2**bits - low for bits in (15, 16, 31, 32, 53, 62, 63, 64) for low in (0, 1)}  # bounds of types of numbers


@every_module
def test_no_number_without_a_name_decides(name):
    """A number that is compared with has a name and stands with its reason; `test_tuning.py` knows them all."""
    compared = [
        part
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.Compare)
        for part in [node.left, *node.comparators]
        if is_number(part) and not isinstance(part, ast.Tuple)
    ]
    values = {ast.unparse(part): abs(eval(ast.unparse(part))) for part in compared}
    assert not [text for text, value in values.items() if value > LARGEST_ASCII and value not in NATURAL]


@every_module
def test_every_public_name_has_a_docstring(name):
    """Functions and classes, and of a class its public methods and properties."""
    bare = []
    for node in parsed(name).body:
        if isinstance(node, DEFINITIONS) and node.name in public(name):
            inner = node.body if isinstance(node, ast.ClassDef) else []
            methods = [part for part in inner if isinstance(part, DEFINITIONS) and not part.name.startswith("_")]
            bare += [part.name for part in [node, *methods] if not ast.get_docstring(part)]
    assert not bare, f"without docstring in {name}: {bare}"


def test_public_names_are_there():
    for name in kafka_assign.__all__:
        assert (getattr(kafka_assign, name).__doc__ or "").strip(), name
    assert set(kafka_assign.__all__) <= set(dir(kafka_assign))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        kafka_assign.nonsense


def test_editors_see_the_same_table():
    block = next(node for node in parsed(TOP).body if isinstance(node, ast.If))
    seen = {alias.name: line.module for line in block.body for alias in line.names}
    assert seen == kafka_assign._HOMES and sorted(seen) == sorted(kafka_assign.__all__)


@pytest.mark.parametrize(
    "use", ["", "; [getattr(kafka_assign, name) for name in kafka_assign.__all__]"], ids=["import", "every public name"]
)
def test_import_is_light(use):
    code = f"import sys, json, kafka_assign{use}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {module.split(".")[0] for module in json.loads(done.stdout)}
    assert not loaded & set(HEAVY)


# --- files -------------------------------------------------------------------------------------------------------


def texts():
    """Every text file of the project."""
    for name in source_files(ROOT):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


REGISTRIES = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "repo1." + "maven",
    "repo." + "maven",
    "registry.npm" + "js",
    "index" + "-url",
    "conda." + "anaconda",
]
MACHINES = r"(?<![\w.<:/-])/(?:home|root|Users|work)/\w|\b[A-Z]:\\Users\\"


def test_no_registry_and_no_path_of_a_machine():
    found = []
    for name, text in texts():
        text = re.sub(r'"image/png": "[^"]*"', "", text)
        found += [f"{name}: {host}" for host in REGISTRIES if host in text]
        if not name.startswith("tests/test_"):  # which name the patterns
            found += [f"{name}: {match[0]}" for match in re.finditer(MACHINES, text)]
        if len(ROOT.parts) > 2 and str(ROOT) in text:
            found.append(f"{name}: {ROOT}")
    assert not found, found


def test_nothing_is_left_to_do():
    marks = re.compile("TO" + r"DO\b|FIX" + r"ME\b")
    assert not [name for name, text in texts() if marks.search(text) and name != "LICENSE"]


def test_every_test_file_is_in_the_map():
    named = re.findall(r"`(test_\w+\.py)`", (ROOT / "tests/README.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(path.name for path in (ROOT / "tests").glob("test_*.py"))


def test_every_module_in_the_map_exists():
    text = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\|.*?\| (.*?) \| `test_\w+\.py` \|.*?\|$", text)
    named = {name for cell in rows for name in cell.split(", ")} - {"all"}
    places = {name: ROOT / "nbs" / name if "/" in name else ROOT / "kafka_assign" / name.replace(".", "/")
              for name in named}
    gone = [name for name, place in places.items() if not (
        place.is_dir() or any(place.with_name(place.name + end).exists() for end in (".py", ".ipynb")))]
    assert len(named) > 50 and not gone, gone


def test_lines_are_at_most_120_wide():
    wide = []
    for name, text in texts():
        if name.endswith(".py") and not name.endswith("_modidx.py"):
            head = text[: text.find("\n# %% ../")].count("\n") + 1 if is_exported(ROOT / name) else 0  # by nbdev
            wide += [f"{name}:{at}" for at, line in enumerate(text.splitlines(), 1) if at > head and len(line) > 120]
    assert not wide, wide


def test_versions_agree():
    from configparser import ConfigParser

    config = ConfigParser(delimiters=["="], interpolation=None)
    config.read(ROOT / "settings.ini", encoding="utf-8")
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    pins = {name.lower().replace("_", "-"): pin for name, pin in pins.items()}
    named = [line for key, value in config["DEFAULT"].items() if key.endswith("requirements") for line in value.split()]
    assert kafka_assign.__version__ == config["DEFAULT"]["version"]
    for line in named:
        name = re.match(r"[\w-]+", line)[0].lower()
        assert name in pins, f"constraints.txt does not pin {name}"
        lower = re.search(r">=([\d.]+)|==([\d.]+)", line)
        if lower:
            wanted = lower[1] or lower[2]
            assert pins[name] == wanted or pins[name].startswith(wanted + "."), f"{line}, but ran with {pins[name]}"
