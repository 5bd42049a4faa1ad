"""Snapshots that contradict each other, or show only a part: nothing is made up."""
import itertools
import json

import pytest

from kafka_assign.groups.notes import Note
from kafka_assign.snapshot import read_groups
from kafka_assign.snapshot.assemble import records_of
from kafka_assign.snapshot.remarks import group_in_remark
from kafka_assign.snapshot.rows import StateRow
from kafka_assign.snapshot.sources import Account
from outputs import table

OFFSETS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
LISTED = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS".split()
UUID = "3fc8d6f1-581a-4472-bdf3-3515b4aee8c1"


def describe(member="c-1", partitions=4, group="g"):
    """The output of `--describe`: one member owns all partitions."""
    return table(OFFSETS, *([group, "t", i, 10, 20, 10, member, "/h", "c"] for i in range(partitions)))


def listed(**counts):
    """The output of `--members`."""
    return table(LISTED, *(["g", member, "/h", "c", count] for member, count in counts.items()))


def test_what_the_patterns_of_long_lines_find():
    quotes = ">" * 30
    [group] = read_groups("".join(quotes + line for line in describe().splitlines(keepends=True))).values()
    assert group.topic_counts == {"t": 4}
    assert group_in_remark("Warning: Consumer group 'it's' is rebalancing.") == "it's"
    assert group_in_remark("Consumer group 'a' is rebalancing. Consumer group 'b' is rebalancing.") == ""


# Outputs of different kinds and times

def test_an_owner_that_the_members_do_not_include(tmp_path):
    """Else one group would have the members of two moments, and more partitions than its topic."""
    (tmp_path / "describe-2026-11-20.txt").write_text(describe("c-1"))
    (tmp_path / "members.txt").write_text(listed(**{"c-2": 4}))
    for source in str(tmp_path), describe("c-1") + listed(**{"c-2": 4}), listed(**{"c-2": 4}) + describe("c-1"):
        groups = read_groups(source)
        assert groups["g"].members == ("c-2",) and groups["g"].counted.tolist() == [4]
        assert (groups.read, groups.used, groups.rejected) == (5, 1, 4)
        assert groups.rejects[0].reason == "an owner must be one of the members that --members lists (got c-1)"


def test_a_damaged_list_of_members_proves_nothing():
    damaged = listed(**{"c-2": 4, "c-1": 4}).replace("c-1", "-  ")
    groups = read_groups(describe("c-1") + damaged)
    assert groups["g"].members == ("c-1", "c-2") and groups.rejected == 1
    groups = read_groups(describe("c-1") + listed(**{"c-1": 4, "c-2": 0}))
    assert groups["g"].previous.tolist() == [0] * 4 and groups.rejected == 0


def test_partly_named_owners_are_unknown():
    """Two partitions are named, eight counted: loads are as counted, and no move is known."""
    group = read_groups(describe("c-1", 2) + listed(**{"c-1": 5, "c-2": 3}))["g"]
    assert group.counted.tolist() == [5, 3] and Note("owners-missing", 6) in group.notes
    group = read_groups(describe("c-1", 2) + listed(**{"c-1": 2, "c-2": 0}))["g"]
    assert group.counted is None and group.previous.tolist() == [0, 0]


def test_owners_that_are_not_shown_prove_nothing_about_subscriptions():
    """Where partitions are missing in between, uneven loads do not contradict a sticky assignor."""
    def text(numbers, state="Stable"):
        rows = [["g", "t", number, 1, 2, 1, "a", "/h", "c"] for number in numbers] + [
            ["g", "u", 0, 1, 2, 1, "b", "/h", "c"]]
        return table(OFFSETS, *rows) + table(["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
                                             ["g", "k:9092 (1)", "roundrobin", state, 2])
    def kind(text):
        [note] = [note for note in read_groups(text)["g"].notes if note.kind.startswith("subscriptions")]
        return note.kind.removeprefix("subscriptions-"), note.text
    assert kind(text([0, 1, 3, 4]))[0] == kind(text([0, 1, 2], "PreparingRebalance"))[0] == "assumed"
    assert kind(text([0, 1, 2]))[0] == "agree" and "2 parts" in kind(text([0, 1, 2]))[1]


# The order and the names of sources

def test_digits_of_other_scripts_in_the_names_of_files(tmp_path):
    paths = [tmp_path / name for name in ("a1²2.txt", "a².txt", "a٣.txt", "a10.txt", "a9.txt")]
    for i, path in enumerate(paths):
        path.write_text(describe(f"c-{i}"))
    assert read_groups(tmp_path).moments == {"g": 5}
    assert read_groups(paths[3:])["g"].members == ("c-3",)


def test_rows_about_one_key_in_any_order():
    full = StateRow("g", "range", "Stable", 3, 7, "classic", 1)
    rows = [full, full._replace(strategy="", position=2), full._replace(generation=-1, type="", position=3)]
    seen = set()
    for order in itertools.permutations(rows):
        account = Account()
        [(row, _)] = records_of(order, account).values()
        seen.add((row, account.used, account.repeated))
    assert seen == {(full, 1, 2)}


def test_files_of_one_moment_in_any_order(tmp_path):
    """Files that share their name up to the kind, in folders that are read in any order."""
    plain, members = listed(**{"c-1": 4}), table([*LISTED, "ASSIGNMENT"], ["g", "c-1", "/h", "c", 4, "t(0,1,2,3)"])
    texts = {"g.describe.txt": describe(), "g.members.txt": plain, "g.members-verbose.txt": members,
             "g.offsets.txt": describe("c-2"), "g.state.verbose.txt": describe("c-1")}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    seen = set()
    for order in itertools.permutations(texts):
        groups = read_groups([tmp_path / name for name in order], at="all")
        seen.add((groups.read, groups.used, *(group.to_json() for group in groups.values())))
    assert len(seen) == 1


# JSON of other tools

def rpk(**changes):
    """What rpk prints about a group with one partition."""
    partition = {"topic": "t", "partition": 0, "current_offset": 10, "log_end_offset": 15, "member_id": "c-1"}
    return {"group_name": "g", "partitions": [partition | changes]}


def test_a_name_that_is_no_unicode_costs_one_reject():
    bad = {"group_name": "\ud800", "partitions": [{"topic": "t", "partition": 0}]}
    groups = read_groups(json.dumps(bad) + "\n" + json.dumps(rpk()) + "\n")
    assert list(groups) == ["g"] and groups.rejected == 1
    assert groups.rejects[0].reason == "group_name must be UTF-8 (got \\ud800)"


def test_a_member_without_a_client_id_is_dynamic():
    document = {"group_name": "g", "partitions": [{"topic": "t", "partition": 0, "member_id": f"consumer-1-{UUID}"}]}
    [member] = read_groups(json.dumps(document) + "\n")["g"].details
    assert member.instance_id is None


def test_owners_of_members_that_are_not_counted_make_up_for_nothing():
    """A damaged list counts one member; another one owns more than is missing."""
    damaged = listed(**{"c-2": 3, "c-1": 8}).replace("c-1", "-  ")
    group = read_groups(describe("c-1", 8) + damaged)["g"]
    assert group.members == ("c-1", "c-2") and group.counted.tolist() == [8, 3]


# What is left out, quoted, or looks like a prompt

def test_groups_without_a_moment_up_to_a_time_are_named():
    documents = [{"format": 1, "name": name, "topics": {"t": 1}, "members": []} | time for name, time in (
        ("a", {"time": "2026-11-20"}), ("b", {}), ("c", {"time": "2026-11-23"}))]
    text = "".join(json.dumps(document) + "\n" for document in documents)
    groups = read_groups(text, at="2026-11-21")
    assert list(groups) == ["a"] and groups.read == groups.used == 3
    assert [entry[2:] for entry in groups.ignored] == [("moment", "no moment up to 2026-11-21 is known of b, c", 2)]
    assert read_groups(text, at="latest").ignored == []


@pytest.mark.parametrize("rows", [3, 300])
@pytest.mark.parametrize("quote", ["> ", ">", "> > "])
def test_a_quoted_output_below_another(rows, quote):
    below = "".join(quote + line for line in describe(partitions=rows, group="quoted").splitlines(keepends=True))
    groups = read_groups(describe(partitions=rows) + below)
    assert {name: group.topic_counts for name, group in groups.items()} == {"g": {"t": rows}, "quoted": {"t": rows}}
    assert {entry.kind for entry in groups.ignored} <= {"header", "prompt"} and groups.used == 2 * rows
    assert groups["quoted"].previous.tolist() == [0] * rows


def test_a_damaged_row_of_a_group_that_looks_like_a_prompt():
    text = describe(group="batch#")
    lines = text.splitlines(keepends=True)
    for damaged in lines[3].replace("t     1", "t     x"), lines[3][:20].rstrip() + "\n":
        groups = read_groups("".join([*lines[:3], damaged, *lines[4:], "root# ls\n", "$ ls\n"]))
        assert (groups["batch#"].topic_counts, groups.rejected) == ({"t": 4}, 1)
        assert [entry.lines for entry in groups.ignored if entry.kind == "prompt"] == [2]
    cut = read_groups("".join([lines[0], lines[1], lines[2].replace("t     0", "t     x"), *lines[3:]]))
    assert cut.rejected == 1


# Groups of the new protocol

def test_the_type_by_the_ids_of_all_members():
    """`--describe` of version 4 shows no epochs, but members of the new protocol have ids of another form."""
    for ids, type in ((["jmtoqpKjSdadNCMcaW3GxA"], "consumer"), (["jmtoqpKjSdadNCMcaW3GxA", f"c-{UUID}"], ""),
                      (["jmtoqpKjSdadNCMcaW3Gxx"], ""), ([f"c-{UUID}"], "")):
        group = read_groups(table(OFFSETS, *(["g", "t", i, 1, 2, 1, id, "/h", "c"] for i, id in enumerate(ids))))["g"]
        assert group.type == type and ("type-guessed" in {note.kind for note in group.notes}) == bool(type)


# The table of rpk

RPK = ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-START-OFFSET", "LOG-END-OFFSET", "LAG", "MEMBER-ID", "INSTANCE-ID",
       "CLIENT-ID", "HOST"]


@pytest.mark.parametrize("rows", [4, 400])
def test_instance_ids_in_the_table_of_rpk(rows):
    members = [["m-1", "i-1", "c", "/h"], [f"c-{UUID}", "", "c", "/h"], ["m-3", "i-3", "c", "/h"], [""] * 4]
    text = "GROUP    g\nSTATE    Stable\nMEMBERS  3\n" + table(
        RPK, *(["t", i, 1, 0, 2, 1, *members[i % 4]] for i in range(rows)))
    group = read_groups(text)["g"]
    assert {m.id: m.instance_id for m in group.details} == {"m-1": "i-1", f"c-{UUID}": None, "m-3": "i-3"}
    assert group.previous.tolist() == [1, 0, 2, -1] * (rows // 4)
    assert "members-assumed-dynamic" not in {note.kind for note in group.notes}
