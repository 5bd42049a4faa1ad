"""The workflows in .github/: whose code they run, and what it may do."""
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
# What uploads, and what it must be allowed to do.
PUBLISHES = {"actions/deploy-pages": {"pages": "write", "id-token": "write"},
             "pypa/gh-action-pypi-publish": {"id-token": "write"}}

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def jobs(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()


def actions(job):
    return [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]


@every_workflow
def test_actions_are_pinned_to_commits(path):
    """A tag can be moved to other code; the version in the comment is for people."""
    lines = re.findall(r"(?m)^.*\buses:.*$", path.read_text(encoding="utf-8"))
    loose = [line for line in lines if not re.fullmatch(r"[ -]*uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)]
    assert lines and not loose, loose


def test_an_action_has_the_same_pin_everywhere():
    pins = [re.findall(r"uses: (\S+)@(.*)", path.read_text(encoding="utf-8")) for path in WORKFLOWS]
    found = {pin for some in pins for pin in some}
    assert len(found) == len({action for action, _ in found}), sorted(found)


@every_workflow
def test_jobs_may_do_what_they_need_and_no_more(path):
    """Only a job that publishes may write, and it runs nothing of the project."""
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {}
    for job in jobs(path):
        needed = [PUBLISHES[action] for action in actions(job) if action in PUBLISHES]
        assert job["permissions"] == (needed[0] if needed else {"contents": "read"})
        assert not needed or not any("run" in step or step["uses"].startswith("actions/checkout@")
                                     for step in job["steps"])


@every_workflow
def test_no_token_is_left_in_the_checkout(path):
    """Notebooks and tests could read it."""
    for job in jobs(path):
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"] == {"persist-credentials": False}


def test_what_builds_a_release_is_pinned():
    import tomllib
    system = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", one) for one in system["requires"]), system
