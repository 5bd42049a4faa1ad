"""What IPython runs as it starts in this environment: in Jupyter, a page of `nbs/` runs as in `make notebooks`.

Commands are those of this environment and print as on the page, and a guide begins in an empty folder. `make` links
this file to where IPython looks, so that it holds in JupyterLab and in editors. Outside of `nbs/` it does nothing.
"""


def begin_page():
    """Do so if the kernel was started in a folder of pages."""
    import os
    import sys
    from pathlib import Path

    tools = Path(__file__).resolve().parent
    if not Path.cwd().is_relative_to(tools.parent / "nbs"):
        return
    sys.path.insert(0, str(tools))
    from notebooks import ROOT, begin, environment
    sys.path[0] = str(ROOT)  # as PYTHONPATH does in `make notebooks`
    left_to_jupyter = "IN_TEST", "MPLBACKEND"  # nbdev's functions work, plots appear
    os.environ.update((name, value) for name, value in environment(ROOT).items() if name not in left_to_jupyter)
    begin(Path.cwd())


begin_page()
del begin_page
