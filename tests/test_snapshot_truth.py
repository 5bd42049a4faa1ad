"""Every captured group, as each version of the tool showed it, against what was true (samples/truth.json)."""
import json
from pathlib import Path

import pytest

from kafka_assign.snapshot import SnapshotError, read_groups

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
VERSIONS = sorted(path.name.removeprefix("kafka-") for path in SAMPLES.glob("kafka-*"))
TRUTH = json.loads((SAMPLES / "truth.json").read_text(encoding="utf-8"))
README = (SAMPLES / "README.md").read_text(encoding="utf-8").splitlines()

# What a version of the tool shows wrongly or not at all, and words of the line of samples/README.md that says so:
# (version, group, field, words).
EXCEPTIONS = [
    ("2.8.2", "new-proto", "presence", "2.8 calls a KIP-848 group non-existent in `--describe`"),
]
FIELDS = ("presence", "members", "owned", "offsets", "lag", "state", "strategy")


@pytest.fixture(scope="module")
def snapshots():
    return {version: read_groups(SAMPLES / f"kafka-{version}") for version in VERSIONS}


def is_ours(truth):
    """Whether a group of the truth is one that a reader of consumer groups should find."""
    return truth["type"] in ("Classic", "Consumer")


def true_fields(truth):
    """What should be read of a group; offsets of what it owns or has committed, lag where it has committed."""
    committed = {(topic, int(p)): offset for topic, by in truth["committed"].items() for p, offset in by.items()}
    owned = {m["member_id"]: {(t, p) for t, numbers in (m["target"] or m["owned"]).items() for p in numbers}
             for m in truth["members"]}
    end = {(t, p): TRUTH["topics"][t]["end"][p] for t, p in committed.keys() | set().union(*owned.values())}
    return {
        "members": {(m["member_id"], m["instance_id"], m["client_id"], m["host"]) for m in truth["members"]},
        "owned": owned,
        "offsets": (committed, end),
        "lag": {place: max(end[place] - offset, 0) for place, offset in committed.items()},
        "state": truth["state"], "strategy": truth["assignor"],
    }


def read_fields(group):
    """The same of a group that was read."""
    places = [group.at(i) for i in range(group.columns.size)]
    columns = group.offsets or ([], [], [])
    committed = {place: offset for place, offset in zip(places, columns[0]) if offset >= 0}
    owners = {id: set() for id in group.members}
    for place, owner in zip(places, group.previous):
        if owner >= 0:
            owners[group.members[owner]].add(place)
    return {
        "members": {(m.id, m.instance_id, m.client_id, m.host) for m in group.details},
        "owned": owners,
        "offsets": (committed, {place: offset for place, offset in zip(places, columns[2]) if offset >= 0}),
        "lag": {place: group.lag[group.position(*place)] for place in committed},
        "state": group.state, "strategy": group.strategy,
    }


def differences(version, name, groups):
    """The fields of one group in which reading and truth differ."""
    truth = TRUTH["groups"][name]
    if (name in groups) != is_ours(truth):
        return ["presence"]
    if not is_ours(truth):
        return []
    expected, read = true_fields(truth), read_fields(groups[name])
    return [field for field in FIELDS[1:] if expected[field] != read[field]]


@pytest.mark.parametrize("name", TRUTH["groups"])
@pytest.mark.parametrize("version", VERSIONS)
def test_groups_are_as_they_were(version, name, snapshots):
    """Exactly the exceptions differ: one that is no longer needed fails as well."""
    excepted = [field for of_version, group, field, _ in EXCEPTIONS if (of_version, group) == (version, name)]
    assert differences(version, name, snapshots[version]) == excepted


def test_exceptions_cite_the_readme():
    for version, group, field, words in EXCEPTIONS:
        assert version in VERSIONS and group in TRUTH["groups"] and field in FIELDS
        assert sum(words in line for line in README) == 1, words


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_of_the_captures_is_rejected(version, snapshots):
    groups = snapshots[version]
    assert groups.rejects == []
    assert groups.read == groups.used > 0
    assert groups.repeated > groups.used          # each table is there twice at least, alone and among all groups
    assert len(groups) == sum(map(is_ours, TRUTH["groups"].values())) - sum(v == version for v, *_ in EXCEPTIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_one_file_for_all_groups_says_the_same_as_a_file_for_each(version, snapshots):
    folder = SAMPLES / f"kafka-{version}"
    at_once = read_groups(sorted(folder.glob("all-groups.*")))
    one_by_one = read_groups(sorted(set(folder.glob("*.*.txt")) - set(folder.glob("all-groups.*"))))
    assert at_once.keys() == one_by_one.keys() == snapshots[version].keys()
    for name, group in snapshots[version].items():
        assert read_fields(at_once[name]) == read_fields(one_by_one[name]) == read_fields(group)


def test_who_assigns(snapshots):
    """Version 4.3 shows it, 3.9 by the broker's strategy only; of older ones, a group is not known to be classic."""
    for version, groups in snapshots.items():
        for name, group in groups.items():
            true = TRUTH["groups"][name]["type"].lower()
            assert group.type == (true if version.startswith("4.") or true == "consumer" else "")
    assert snapshots["4.3.1"]["new-proto"].generation == TRUTH["groups"]["new-proto"]["generation"]


def test_subscriptions_are_inferred_and_said(snapshots):
    """The inference is right but where members subscribe to different topics and have equal loads."""
    wrong = set()
    for groups in snapshots.values():
        for name, group in groups.items():
            assert ("subscriptions: " in group.inferred) == bool(group.members)
            true = {m["member_id"]: m["subscription"] for m in TRUTH["groups"][name]["members"]}
            wrong |= {(name, m.client_id) for m in group.details if list(m.topics) != true[m.id]}
    assert wrong == {("search-indexer", "idx-b"), ("custom-lag", "lag-b"),
                     ("new-proto", "np-1"), ("new-proto", "np-2"), ("new-proto", "np-3")}    # an expression


def test_all_captures_at_once():
    """Three folders are three clusters; the same name in each is a group of its own."""
    groups = read_groups(sorted(SAMPLES.glob("kafka-*")))
    assert len(groups) == 29
    assert {group.cluster for group in groups.values()} == {path.name for path in SAMPLES.glob("kafka-*")}
    assert all(key == f"{group.cluster}/{group.name}" for key, group in groups.items())


def test_one_cluster_by_name(snapshots):
    """If the caller names the cluster, all sources belong to it: a group is seen once in each of three folders."""
    groups = read_groups(sorted(SAMPLES.glob("kafka-*")), cluster="prod", time="2026-11-21T09:00:00Z")
    assert groups.rejects == [] and set(groups) == set(snapshots["4.3.1"])
    assert groups.moments == {name: sum(name in groups for groups in snapshots.values()) for name in groups}
    assert {(group.cluster, group.time) for group in groups.values()} == {("prod", "2026-11-21T09:00:00Z")}
    for name, group in groups.items():
        assert read_fields(group) == read_fields(snapshots["4.3.1"][name])


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("kafka-*/*.txt")), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_file_alone(path):
    """A single file holds groups, or the error says in one line what it is."""
    holds = holds_a_group(path)
    try:
        groups = read_groups(path)
    except SnapshotError as error:
        assert not holds and str(error).startswith(f"{path}: ") and str(error).isprintable()
    else:
        assert holds and {group.cluster for group in groups.values()} == {""}


def holds_a_group(path):
    """Whether a capture has rows of offsets or members, or the state of a group without members."""
    lines = path.read_text(encoding="utf-8").splitlines()
    names = tuple(name for name, truth in TRUTH["groups"].items() if is_ours(truth))
    rows = [line for line in lines if line.startswith(names) and len(line.split()) > 3]
    states = [line for line in rows if "127.0.0.1:9092" in line]
    return any(line.endswith(" 0") for line in states) if states else bool(rows)
