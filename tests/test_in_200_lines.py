"""The page that builds the package from nothing gives a second opinion on what the package computes."""
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_assign import Group, assign

PAGE = Path(__file__).resolve().parent.parent / "nbs" / "02_optimum" / "00_in_200_lines.ipynb"


@pytest.fixture(scope="module")
def page():
    """The names that the page defines."""
    sources = ["".join(cell["source"]) for cell in json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
               if cell["cell_type"] == "code"]
    assert sum(bool(line.strip()) for source in sources for line in source.splitlines()) <= 200
    names = {}
    exec("\n".join(sources), names)
    return SimpleNamespace(**names)


@st.composite
def plain_groups(draw):
    """Topics, members and owned partitions as the page has them."""
    topics = draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 5)))
    subscriptions = st.sets(st.sampled_from([*topics, "missing"]))
    members = draw(st.dictionaries(st.sampled_from(["m1", "m10", "m2", "n", "o"]), subscriptions))
    owned = {}
    for topic, count in topics.items():
        names = [name for name, subscription in members.items() if topic in subscription]
        for number in range(count):
            owner = draw(st.sampled_from([*names, None]))
            if owner is not None:
                owned[topic, number] = owner
    return topics, members, owned


def by_partition(assignment):
    """The owner of each partition, as the page has it."""
    return {tuple(partition): member for member, partitions in assignment.items() for partition in partitions}


@given(plain_groups())
@settings(max_examples=200)
def test_the_page_and_the_package_agree(page, drawn):
    """It finds a wrong owner of `range` or `roundrobin`, and a `sticky` that is not the best: the page has another
    algorithm, which nothing in the package shares, and a proof of its own."""
    topics, members, owned = drawn
    claims = {name: [partition for partition, owner in owned.items() if owner == name] for name in members}
    group = Group(topics, members, owned=claims)
    assert by_partition(assign(group, "range")) == page.range_owners(topics, members)
    assert by_partition(assign(group, "roundrobin")) == page.roundrobin_owners(topics, members)
    best, prices = page.sticky_owners(topics, members, owned)
    page.check_proof(members, best, owned, prices)
    answer = by_partition(assign(group, "sticky"))
    assert answer.keys() == best.keys()
    assert page.price(members, answer, owned) == page.price(members, best, owned)
    assert page.descending(members, answer) == page.descending(members, best)


@given(plain_groups())
def test_its_proof_holds_for_an_answer_of_the_package(page, drawn):
    """The prices prove any answer that costs as much, not only the page's own."""
    topics, members, owned = drawn
    claims = {name: [partition for partition, owner in owned.items() if owner == name] for name in members}
    answer = by_partition(assign(Group(topics, members, owned=claims), "sticky"))
    nodes = [*members, page.POOL]
    circle, prices = page.negative_circle(nodes, page.steps_of(members, answer, owned))
    assert not circle
    page.check_proof(members, answer, owned, prices)
