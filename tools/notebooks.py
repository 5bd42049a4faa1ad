"""The one way in which notebooks become modules, committed outputs and the README.

    python tools/notebooks.py write    export, execute, clean every notebook in place, and write README.md
    python tools/notebooks.py test     execute every notebook in a scratch copy: their cells are tests
    python tools/notebooks.py check    export, execute and clean in a scratch copy, and fail if that changes anything
    python tools/notebooks.py docs     render the site into _docs/ with the `quarto` on PATH

Written so that running it twice changes nothing: no counts, no times, no addresses, pictures as SVG or PNG.
"""
import ast
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "kafka_assign"
GUIDES = "start", "guides"  # the folders of pages that a reader can follow anywhere
README_HEAD = "<!-- Made from nbs/index.ipynb by `make notebooks`: edit that. -->\n\n"

# What a cell prints must not depend on the terminal, the user's settings or the time zone of whoever runs it.
PLAIN = {
    "COLUMNS": "110", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1", "TTY_COMPATIBLE": "0", "TTY_INTERACTIVE": "0",
    "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "agg",
    "IN_TEST": "1", "PAGER": "cat",
}


def processors():
    """How many processes run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def notebooks(root):
    """Every notebook of the book, pages before guides."""
    found = [path for path in (root / "nbs").rglob("*.ipynb")
             if not any(part.startswith((".", "_")) for part in path.relative_to(root).parts)]
    return sorted(found, key=lambda path: (len(path.parts), str(path)))


def environment(root):
    """The variables under which notebooks run: plain output, this tree's package before any installed one."""
    scripts = str(Path(sys.executable).parent)
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **PLAIN, "PYTHONPATH": os.pathsep.join(paths),
            "PATH": scripts + os.pathsep + os.environ.get("PATH", "")}


def python(root, *words, env=None):
    """Run this Python on `words` in `root`; what it printed and whether it went well."""
    done = subprocess.run([sys.executable, *words], cwd=root, env=env or environment(root), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout


def must(result, what):
    """Stop with `what` and the output if `result` (of `python`) is a failure."""
    good, output = result
    if not good:
        sys.exit(f"{output}\n{what} failed")
    return output


def nbdev(root, code):
    """Run a call of nbdev's own in `root`, where IN_TEST (which makes some of its functions do nothing) is off."""
    env = environment(root)
    del env["IN_TEST"]
    must(python(root, "-W", "ignore", "-c", code, env=env), re.search(r"\w+\(\w*(=\d)?\)", code)[0])


# --- executing ---------------------------------------------------------------------------------------------------

def begin(folder):
    """Begin a page of this folder there; a guide begins as its reader does, in an empty folder, 88 columns wide."""
    os.chdir(folder)
    if folder.name in GUIDES:
        empty = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, empty, ignore_errors=True)
        os.chdir(empty)
        os.environ["COLUMNS"] = "88"


def execute(path):
    """Run the cells of one notebook in this process, beginning as `begin` does, and write their outputs into it.

    Cells with `#| eval: false` are left as they are. The first error ends it, with the cell it came from.
    """
    from execnb.nbio import read_nb, write_nb
    from execnb.shell import CaptureShell
    from IPython.core.pylabtools import select_figure_formats
    from nbdev.process import extract_directives

    path = Path(path).resolve()
    before, notebook = path.read_bytes(), read_nb(path)
    begin(path.parent)
    shell = CaptureShell(path)
    select_figure_formats(shell, [])  # a figure is shown as it wants to be, not also as a PNG
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        if extract_directives(cell, remove=False).get("eval:", [""])[0].lower() == "false":
            continue
        cell.outputs = []  # a cell that prints nothing any more must not keep what it printed before
        shell.cell(cell)
        if shell.exc:
            where = f"{path.name}: cell {number} (id {cell.id}) failed:"
            sys.exit(f"{shell.prettytb(fname=path.name)}\n{where}\n{cell.source}")
        for output in cell.outputs:
            tidy(output)
    if path.read_bytes() != before:
        sys.exit(f"{path.name} was changed while it ran, and is left as it is")
    write_nb(notebook, path)


def tidy(output):
    """Texts in lines, as Jupyter saves them; those of a command run with `!` end as a terminal has them (CR LF)."""
    if output.get("text"):
        output["text"] = "".join(output["text"]).replace("\r\n", "\n").splitlines(True)
    if picture := output.get("data", {}).get("image/svg+xml"):
        output["data"]["image/svg+xml"] = "".join(picture).splitlines(True)


def clean_page(model, **_):
    """Make a page that JupyterLab saves what `write` would write, so that a run changes nothing (for `make lab`)."""
    from nbdev.clean import clean_nb
    from nbdev.config import get_config

    if model["type"] == "notebook":
        for cell in model["content"]["cells"]:
            for output in cell.get("outputs", []):
                tidy(output)
        clean_nb(model["content"], allowed_cell_metadata_keys=get_config().get("allowed_cell_metadata_keys").split())


def execute_each(paths):
    """Execute notebooks, each in a fork of this process, which has loaded what executes them: as many as processors.

    Prints a line for each one, and what a failed one printed; exits with their names.
    """
    import execnb.nbio
    import execnb.shell
    import nbdev.process

    waiting, running, failed = list(paths), {}, []
    while waiting or running:
        if waiting and len(running) < processors():
            path, log = waiting.pop(0), tempfile.TemporaryFile()
            sys.stdout.flush()
            child = os.fork()
            if not child:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                return execute(path)            # and this process ends as any other
            running[child] = path, log
            continue
        child, status = os.wait()
        path, log = running.pop(child)
        print(f"  {path}{'  FAILED' if status else ''}", flush=True)
        if status:
            failed.append(path)
            log.seek(0)
            print(log.read().decode(errors="replace"), file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"notebooks that failed: {', '.join(failed)}")


def execute_all(root):
    """Execute every notebook."""
    env = environment(root)
    must(python(root, "-c", "import matplotlib.font_manager", env=env), "matplotlib")  # its font cache, made once
    paths = [path.relative_to(root).as_posix() for path in notebooks(root)]
    done = subprocess.run([sys.executable, str(Path(__file__).resolve()), "execute", *paths], cwd=root, env=env)
    if done.returncode:
        sys.exit("a notebook failed")


# --- the documentation -------------------------------------------------------------------------------------------

def sidebars(root):
    """The tabs of the site as nbs/sidebar.yml has them: `id`, `title`, `contents`."""
    import yaml
    return yaml.safe_load((root / "nbs/sidebar.yml").read_text(encoding="utf-8"))["website"]["sidebar"]


def sidebar_entries(root):
    """Every entry of the sidebars, in order: the id of its tab, and its page."""
    return [(tab["id"], page) for tab in sidebars(root) for page in listed_pages(tab["contents"])]


def listed_pages(contents):
    """The pages of a list of a sidebar, those of its sections among them."""
    for entry in contents:
        if isinstance(entry, str):
            yield entry
        elif "section" in entry:
            yield from listed_pages(entry["contents"])
        else:
            yield entry["href"]


def all_pages(root):
    """Every page by its path in nbs/, pages before guides."""
    return [path.relative_to(root / "nbs").as_posix() for path in notebooks(root)]


def sidebar_pages(root):
    """The book: the pages in a sidebar, in reading order."""
    return [page for _, page in sidebar_entries(root)]


def appendix_pages(root):
    """All other pages, which hold the plumbing; reference/internals.ipynb lists them."""
    book = set(sidebar_pages(root))
    return [page for page in all_pages(root) if page not in book]


def check_sidebar(root):
    """Every entry of a sidebar is a page, and no page has two."""
    named, there = sidebar_pages(root), all_pages(root)
    problems = [f"nbs/sidebar.yml names {page}, which is not there" for page in named if page not in there]
    problems += [f"nbs/sidebar.yml names {page} more than once" for page in set(named) if named.count(page) > 1]
    if problems:
        sys.exit("\n".join(sorted(problems)))


# nbdev runs imports, exported cells and nothing else; the traceback of a failure is its own, only the message counts.
PROCESS = """
import sys
from pathlib import Path
from nbdev.serve import proc_nbs
sys.path += sorted({str(path.parent.resolve()) for path in Path("nbs").rglob("*.py")})      # what pages import
try: proc_nbs(n_workers=0)
except Exception as error: sys.exit(f"{error}\\n{error.__cause__!r}")
"""


def process(root):
    """Let nbdev make Quarto's input in _proc/, from scratch, and see that every page arrived."""
    check_sidebar(root)
    shutil.rmtree(root / "_proc", ignore_errors=True)
    nbdev(root, "from nbdev.quarto import refresh_quarto_yml; refresh_quarto_yml()")
    complete_settings(root)
    nbdev(root, PROCESS)
    wanted = [*all_pages(root), "_quarto.yml", "nbdev.yml", "sidebar.yml", "theme/site.scss", "404.qmd"]
    missing = [name for name in wanted if not (root / "_proc" / name).exists()]
    if missing:
        sys.exit(f"nbdev put no {', '.join(missing)} into _proc/")
    for page in all_pages(root):
        make_readable(root, page)


def complete_settings(root):
    """Complete nbdev's settings for Quarto: the tabs, the version, and no address that `settings.ini` leaves empty."""
    import yaml
    from nbdev.config import get_config

    config, path = get_config(path=root), root / "nbs/nbdev.yml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    website = {key: value for key, value in settings["website"].items() if value}
    if website.get("site-url"):
        settings["format"] = {"html": {"canonical-url": True}}
    right = [{"text": f"v{config.version}"}]
    if website.get("repo-url"):
        website["repo-actions"] = ["source", "issue"]
        right.append({"text": "Source", "href": website["repo-url"]})
    first = {tab: page for tab, page in reversed(sidebar_entries(root))}
    tabs = [{"text": tab["title"], "href": first[tab["id"]]} for tab in sidebars(root)]
    website["navbar"] = {"left": tabs, "right": right}
    website["page-footer"] = {"left": f"{config.lib_name} {config.version}", "right": "Apache License 2.0"}
    path.write_text(yaml.safe_dump({**settings, "website": website}, sort_keys=False), encoding="utf-8")


def make_readable(root, page):
    """Change a page that nbdev made for Quarto so that it reads well: see the functions below."""
    path = root / "_proc" / page
    notebook = json.loads(path.read_text(encoding="utf-8"))
    written = {"".join(cell["source"]) for cell in json.loads((root / "nbs" / page).read_bytes())["cells"]}
    notebook["cells"] = list(once_each(notebook["cells"], written))
    if page not in sidebar_pages(root):
        front = notebook["cells"][0]
        front["source"] = "".join(front["source"]).replace("---\n", "---\nsidebar: how\nbody-classes: internal\n", 1)
    heading = ""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            heading = (re.findall(r"(?m)^#+ +(.+?)\s*$", "".join(cell["source"])) or [heading])[-1]
        elif cell["cell_type"] == "code":
            fold(cell, heading)
            give_alt_text(cell)
            raw_html(cell)
            unlink_tests(cell)
            as_terminal(cell)
        cell["source"] = "".join(cell["source"]).splitlines(True)  # one text would be read as one line
    path.write_text(json.dumps(notebook), encoding="utf-8")


SHOW_DOC = re.compile(r"(?m)^show_doc\((\w+)\)")


def once_each(cells, written):
    """Cells in which an exported function appears once: an anchor takes the place of nbdev's listing of shown code.

    `written`: the sources of the page as its author wrote them; what `show_doc` is among them stays."""
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for cell in cells:
        source = "".join(cell["source"])
        name = SHOW_DOC.search(source) if cell["cell_type"] == "code" else None
        if name and not any(name[0] in text for text in written):
            if re.search(rf"(?m)^(async def|def|class) {name[1]}\b", code):
                anchor = f'<span id="{name[1].lower()}"></span>'
                yield {"cell_type": "markdown", "metadata": {}, "id": cell["id"], "source": anchor}
                continue
        yield cell


def add_options(cell, *options):
    """Put lines with options for Quarto at the head of a cell."""
    cell["source"] = "".join(f"#| {option}\n" for option in options) + "".join(cell["source"])


def fold(cell, heading):
    """Fold cells that only import, and cells under a heading "Checks", which only check."""
    source = "".join(cell["source"])
    if re.search(r"(?m)^#\| (code-fold|echo):", source):
        return
    if heading == "Checks":
        add_options(cell, "code-fold: true", 'code-summary: "Checked"')
    elif only_imports(source):
        add_options(cell, "code-fold: true", 'code-summary: "Imports"')


def only_imports(source):
    """Whether a cell only imports, and not only from the package itself: that is what a reader types, too."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    names = [node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in body
             if isinstance(node, (ast.Import, ast.ImportFrom))]
    return len(names) == len(body) > 0 and any(name != PACKAGE for name in names)


def as_terminal(cell):
    """A cell of commands (`%%bash`, or lines with `!`) becomes the text of a terminal."""
    source = without_directives("".join(cell["source"])).strip("\n")
    bash = cell["metadata"].get("language") == "bash"  # by nbdev, which has removed `%%bash`
    if not bash and not source.startswith("!"):
        return
    commands = re.sub(r"(?m)^!(COLUMNS=\d+ )?", "", source)  # a reader's terminal knows how wide it is
    printed = "".join("".join(output.get("text", "")) for output in cell.pop("outputs")).rstrip()
    blocks = f"```sh\n{commands}\n```" + f"\n\n```\n{printed}\n```" * bool(printed)
    del cell["execution_count"]
    cell.update(cell_type="markdown", source=f"::: {{.terminal}}\n{blocks}\n:::")


def give_alt_text(cell):
    """Tell Quarto what pictures show: it reads a cell's `fig-alt`, not the words that stand beside the picture."""
    pictures = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    if pictures:
        said = [output.get("metadata", {}).get("image/png", {}).get("alt", "a picture") for output in pictures]
        words = " ".join(map(one_line, said)).replace('"', "'").replace("\\", "/")
        add_options(cell, f'fig-alt: "{words}"')


def raw_html(cell):
    """Hand HTML and SVG on as they are: Quarto takes HTML for a widget, and loads scripts from a foreign host for it.

    A style sheet does not reach into the file of a picture, and only pictures in the page follow light and dark."""
    for output in cell.get("outputs", []):
        for kind in "text/html", "image/svg+xml":
            if html := output.get("data", {}).pop(kind, None):
                output["data"]["text/markdown"] = f"```{{=html}}\n{''.join(html).strip()}\n```"


def unlink_tests(cell):
    """Links to tests become their words: the site has no tests."""
    for output in cell.get("outputs", []):
        if text := output.get("data", {}).get("text/markdown"):
            output["data"]["text/markdown"] = re.sub(r"\[(`[^`]+`)\]\((?:\.\./)+tests/[^)]*\)", r"\1", "".join(text))


def write_readme(root):
    """README.md from the processed nbs/index.ipynb, its pictures in index_files/."""
    import nbformat
    from nbconvert import MarkdownExporter

    notebook = nbformat.read(root / "_proc/index.ipynb", as_version=4)
    folder = root / "index_files"
    shutil.rmtree(folder, ignore_errors=True)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        cell.source = "" if "#| echo: false" in cell.source else without_directives(cell.source)
        for output in cell.outputs:
            data = output.get("data", {})
            html = re.fullmatch(r"```\{=html\}\n(.*)\n```", data.get("text/markdown", ""), re.S)
            if html and html[1].startswith("<svg"):
                folder.mkdir(exist_ok=True)
                (folder / f"{number}.svg").write_text(html[1], encoding="utf-8")
                words = one_line(unescape(re.search('aria-label="(.*?)"', html[1])[1]))
                data["text/markdown"] = f"![{words}]({folder.name}/{number}.svg)"
            elif html:
                data["text/markdown"] = markdown_of(html[1])
    notebook.metadata["language_info"] = {"name": "python"}
    text, _ = MarkdownExporter().from_notebook_node(notebook)
    text = re.sub(r"\]\((?!\w+:|#|/|index_files/)", "](nbs/", text)  # the page is in nbs/, the README is not
    text = text.replace("CONTRIBUTING.md", "[CONTRIBUTING.md](CONTRIBUTING.md#where-everything-is)")  # not on the site
    (root / "README.md").write_text(README_HEAD + tidy_markdown(text), encoding="utf-8")


def one_line(words):
    """What a picture shows, in one line that can stand in brackets."""
    return re.sub(r"[\[\]]", "", " ".join(words.split()))


def without_directives(source):
    """Source without its `#|` lines, which only nbdev and Quarto read."""
    return "\n".join(line for line in source.splitlines() if not re.match(r"\s*#\s*\|", line))


def markdown_of(html):
    """Paragraphs and a table, as `text.tables` writes them, in Markdown; what HTML escapes stays escaped."""
    lines = []
    for _, inner in re.findall(r"<(p|tr)>(.*?)</\1>", html, flags=re.S):
        cells = re.findall(r'<(t[hd]) style="text-align: (left|right)">(.*?)</\1>', inner, flags=re.S)
        row = " | ".join(text.replace("|", "\\|") for _, _, text in cells)
        lines.append(f"| {row} |" if cells else f"\n{inner}\n")
        if cells and cells[0][0] == "th":
            lines.append(f"|{'|'.join('---:' if side == 'right' else '---' for _, side, _ in cells)}|")
    return "\n".join(lines)


def tidy_markdown(text):
    """The front matter as a heading, no notes to nbdev's users, no empty cells, single blank lines."""
    text = re.sub(r"<!-- WARNING: THIS FILE WAS AUTOGENERATED! DO NOT EDIT! -->\n*", "", text)
    text = re.sub(r"<style[^>]*>.*?</style>\n*", "", text, flags=re.S)
    text = re.sub(r"```python\n\s*```\n", "", text)
    text = re.sub(r"(?m)^:::.*\n|(?<=[)\]])\{[.#][^}]*\}", "", text)  # what only Quarto reads
    front = re.match(r"\s*---\n(.*?)\n---\n", text, flags=re.S)
    if front:
        import yaml
        about = yaml.safe_load(front[1])
        head = f"# {about['title']}\n\n" + (f"> {about['description']}\n\n" if about.get("description") else "")
        text = head + text[front.end():].lstrip()
    text = "\n".join(line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


# --- the four commands -------------------------------------------------------------------------------------------

def renew(root):
    """Export, execute, clean: in this order, since pages import what others export."""
    print("export")
    nbdev(root, "from nbdev.doclinks import nbdev_export; nbdev_export()")
    print("execute")
    execute_all(root)
    print("clean")
    nbdev(root, "from nbdev.clean import nbdev_clean; nbdev_clean()")


def write(root):
    """Renew every notebook, then README.md from the pages that Quarto gets."""
    renew(root)
    print("pages for Quarto, README.md")
    process(root)
    write_readme(root)


def source_files(root):
    """The files that belong to the project: what git tracks or would, else everything that no tool has made."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=root, capture_output=True)
    if listed.returncode == 0:
        return sorted({name for name in listed.stdout.decode().split("\0") if name and os.path.lexists(root / name)})
    made = {".venv", ".git", "_proc", "_docs", "build", "dist", "runs", "__pycache__", ".cache", "nbdev.yml"}
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*")
                  if path.is_file() and not any(part in made or part.endswith(".egg-info")
                                                for part in path.relative_to(root).parts))


def is_exported(path):
    """Whether nbdev wrote this module from a notebook."""
    return path.suffix == ".py" and "AUTOGENERATED" in path.read_text(encoding="utf-8")[:2000]


def copy_project(root, copy):
    """Copy all source files into a new folder."""
    for name in source_files(root):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, copy / name, follow_symlinks=False)
    return copy


def test(root):
    """Execute every notebook of a copy: its cells are tests."""
    print("executing every notebook")
    with tempfile.TemporaryDirectory() as scratch:
        execute_all(copy_project(root, Path(scratch) / "copy"))


def check(root):
    """Renew a copy; whatever that changes, adds or no longer makes is out of date. README.md: see `docs_check.py`."""
    print("checking that `make notebooks` would change nothing")
    with tempfile.TemporaryDirectory() as scratch:
        copy, before = copy_project(root, Path(scratch) / "copy"), source_files(root)
        for path in (copy / PACKAGE).rglob("*.py"):
            if is_exported(path):
                path.unlink()  # a module whose notebook is gone must not survive
        subprocess.run(["git", "init", "-q", str(copy)], check=True)
        renew(copy)
        changed = differences(root, copy, before)
    if changed:
        sys.exit("\n".join(changed) + "\n\nOut of date: run `make notebooks` and look at what it changes")
    print(f"{len(notebooks(root))} notebooks are executed, clean and in sync")


def differences(root, copy, before):
    """One text per file that is not the same in both trees: a line, or the first lines of a diff."""
    after = [name for name in source_files(copy)]
    texts = [f"{name}: made by no notebook any more" for name in before if name not in after]
    texts += [f"{name}: made anew, but not there" for name in after if name not in before]
    for name in sorted(set(before) & set(after)):
        here, there = root / name, copy / name
        if here.is_symlink() or here.read_bytes() == there.read_bytes():
            continue
        diff = subprocess.run(["diff", "-u", str(here), str(there)], capture_output=True, text=True, errors="replace")
        texts.append(f"{name}:\n" + "\n".join(line[:200] for line in diff.stdout.splitlines()[2:40]))
    return texts


def docs(root):
    """Render the site into _docs/ with the `quarto` on PATH."""
    process(root)
    subprocess.run(["quarto", "render", "--no-cache"], cwd=root / "_proc", check=True)
    shutil.rmtree(root / "_docs", ignore_errors=True)
    shutil.move(root / "_proc/_docs", root / "_docs")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write"]:
            write(ROOT)
        case ["test"]:
            test(ROOT)
        case ["check"]:
            check(ROOT)
        case ["docs"]:
            docs(ROOT)
        case ["execute", *pages]:
            execute_each(pages)
        case _:
            sys.exit(__doc__)
