"""Figures of the captured groups as they are, from some of the outputs: true, or unknown, or marked as inferred."""
import json
import re
from pathlib import Path

import pytest

from kafka_assign import Group, Member, assign
from kafka_assign.groups.assignment import SUMMARY_KEYS, Assignment
from kafka_assign.groups.notes import Note, remark
from kafka_assign.snapshot import SnapshotError, read_groups

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
VERSIONS = sorted(path.name.removeprefix("kafka-") for path in SAMPLES.glob("kafka-*"))
TRUTH = json.loads((SAMPLES / "truth.json").read_text(encoding="utf-8"))
OURS = [name for name, truth in TRUTH["groups"].items() if truth["type"] in ("Classic", "Consumer")]
OUTPUTS = [("describe",), ("describe", "members-verbose"), ("offsets-verbose",), ("members",), ("members-verbose",),
           ("state",), ("state-verbose",)]
_OF_MEMBERS = {"members", "min_load", "balance_score", "balanced", "topic_gap", "lag_min"}

# Figures that may differ from the truth, by the kind of the note that says so.
MARKED = {
    "idle-members-not-shown": _OF_MEMBERS,
    "subscriptions-agree": {"topic_gap", "balanced"},
    "subscriptions-assumed": {"topic_gap", "balanced"},
    "partitions-missing": {"partitions", "unassigned", "lag_unknown"},
    "topics-not-shown": {"partitions", "unassigned"},
}


def subscription(member):
    """The topics to which a member subscribes; some subscribe by a regular expression."""
    topics = member["subscription"]
    if isinstance(topics, str):
        return [topic for topic in TRUTH["topics"] if re.fullmatch(topics.removeprefix("regex:"), topic)]
    return topics


def true_group(name):
    """A group as it was."""
    truth, columns = TRUTH["groups"][name], {}
    topics = {t for m in truth["members"] for t in (*subscription(m), *(m["target"] or m["owned"]))}
    topics |= set(truth["committed"])
    for column in "begin", "end":
        columns[column] = {topic: TRUTH["topics"][topic][column] for topic in topics}
        columns[column] = {topic: [by[str(p)] for p in range(len(by))] if isinstance(by, dict) else by
                           for topic, by in columns[column].items()}
    counts = {topic: len(ends) for topic, ends in columns["end"].items()}
    committed = {(t, int(p)): offset for t, by in truth["committed"].items() for p, offset in by.items()}
    members = []
    for m in truth["members"]:
        owned = [(topic, p) for topic, numbers in (m["target"] or m["owned"]).items() for p in numbers]
        members.append(Member(m["member_id"], subscription(m), owned=owned, instance_id=m["instance_id"],
                              client_id=m["client_id"]))
    return Group(counts, members, committed=committed, **columns)


def read(version, name, outputs):
    """The same group as these outputs show it; None if they show no group."""
    paths = [SAMPLES / f"kafka-{version}" / f"{name}.{what}.txt" for what in outputs]
    try:
        return read_groups(paths).get(name) if all(path.exists() for path in paths) else None
    except SnapshotError:
        return None


def differences(version, name, outputs):
    """Figures that are neither true nor unknown, and the kinds of the notes on the group."""
    group = read(version, name, outputs)
    if group is None:
        return set(), set()
    true, shown = (Assignment.current(one).summary() for one in (true_group(name), group))
    keys = (key for key in SUMMARY_KEYS if key not in ("strategy", "inferred"))
    wrong = {key for key in keys if shown[key] not in (None, true[key])}
    return wrong, {note.kind for note in group.notes}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("outputs", OUTPUTS, ids="+".join)
def test_each_figure_is_true_or_unknown_or_inferred(outputs, version, name):
    figures, notes = differences(version, name, outputs)
    marked = {key for note, keys in MARKED.items() if note in notes for key in keys}
    assert figures <= marked


def test_the_table_of_marks_is_needed():
    """Each of its notes stands for a figure that differs somewhere; all groups and outputs are compared."""
    read_at_all, needed = 0, set()
    for outputs in OUTPUTS:
        for version in VERSIONS:
            for name in OURS:
                figures, notes = differences(version, name, outputs)
                read_at_all += read(version, name, outputs) is not None
                needed |= {note for note, keys in MARKED.items() if note in notes and figures & keys}
    assert read_at_all > 120
    assert needed == MARKED.keys()


def test_counts_without_owners():
    """`--members` without `--verbose`, and 3.9 even with it: loads are known, owners, topics and moves are not."""
    for version, what in [(version, "members") for version in VERSIONS] + [("3.9.2", "members-verbose")]:
        for name in ("orders-billing", "wide", "search-indexer"):
            group, true = read(version, name, [what]), Assignment.current(true_group(name))
            assert group.counted.tolist() == true.loads.tolist()
            row = Assignment.current(group).summary()
            assert [row[key] for key in ("assigned", "max_load", "kept", "partitions", "lag_total")] == [
                true.summary()["assigned"], true.summary()["max_load"], None, None, None]
            assert Note("owners-missing", sum(true.loads)) in group.notes


@pytest.mark.parametrize("version", VERSIONS)
def test_static_members_are_known_by_their_ids(version):
    """`wide` runs round robin, and one of its members is static: in the order by instance ids, nothing moves."""
    group = read(version, "wide", ["describe"])
    assert [m.instance_id for m in group.details if m.instance_id] == ["wide-static-kp"]
    assert {Note("instance-ids-guessed"), Note("members-assumed-dynamic")} <= set(group.notes)
    summary = assign(group, "roundrobin").summary()
    assert (summary["moved"], summary["placed"]) == (0, 0)
    shown = read(version, "wide", ["describe", "members"])
    assert [m.instance_id for m in shown.details] == [m.instance_id for m in group.details]
    assert not {"instance-ids-guessed", "members-assumed-dynamic"} & {note.kind for note in shown.notes}


@pytest.mark.parametrize("version", VERSIONS)
def test_instance_ids_are_inferred_rightly_or_not_at_all(version):
    for name in OURS:
        if group := read(version, name, ["describe"]):
            true = {m["member_id"]: m["instance_id"] for m in TRUTH["groups"][name]["members"]}
            for member in group.details:
                assert member.instance_id in (None, true[member.id])
                assert group.type == "consumer" or name == "new-proto" or member.instance_id == true[member.id]


@pytest.mark.parametrize("version", VERSIONS)
def test_lag_where_nothing_is_committed(version):
    path = SAMPLES / f"kafka-{version}" / "search-indexer.describe.txt"
    without = read_groups(path)["search-indexer"].offsets.committed < 0
    assert without.sum() == 17
    for reset, lag, words in (
            (None, 0, "counted as lag 0, as auto.offset.reset=latest does"),
            ("latest", 0, "counted as lag 0, as auto.offset.reset=latest does"),
            ("earliest", -1, "lag unknown, as auto.offset.reset=earliest needs the beginning of the log"),
            ("none", -1, "lag unknown, as auto.offset.reset=none does not say where to begin")):
        group = read_groups(path, reset=reset)["search-indexer"]
        assert set(group.lag[without].tolist()) == {lag} and group.offsets.reset == (reset or "latest")
        assert f"17 partitions without a commit: {words}" in group.inferred.split("; ")
        assert Assignment.current(group).summary()["lag_unknown"] == (17 if lag else 0)
    with pytest.raises(SnapshotError, match="reset must be latest, earliest or none"):
        read_groups(path, reset="newest")


def test_lag_of_documents_follows_the_reset_that_was_asked_for():
    group = Group({"t": 3}, {"m": ["t"]}, committed={"t": [-1, -1, 5]}, begin={"t": [2, -1, 0]}, end={"t": [9, 9, 9]},
                  reset="earliest", name="g", notes=[remark("a"), Note("lag-from-end", 2, ("latest",))])
    text = group.to_json() + "\n"
    assert read_groups(text)["g"] == group
    for reset, lag in ("latest", [0, 0, 4]), ("earliest", [7, -1, 4]):
        found = read_groups(text, reset=reset)["g"]
        assert found.lag.tolist() == lag
        assert found.inferred.count(" without a commit: ") == (1 if reset == "latest" else 2)
