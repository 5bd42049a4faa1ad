"""Snapshots that are damaged, foreign or hostile: one clear error, or rejects; nothing lost, nothing else raised."""
import io
import json
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign.snapshot import Ignored, SnapshotError, read_groups
from outputs import FILES, LINES, SAMPLES, mangled, table

DESCRIBE = (SAMPLES / "kafka-4.3.1" / "orders-billing.describe.txt").read_text(encoding="utf-8")
MEMBERS = (SAMPLES / "kafka-4.3.1" / "orders-billing.members-verbose.txt").read_text(encoding="utf-8")
STATE = (SAMPLES / "kafka-4.3.1" / "orders-billing.state.txt").read_text(encoding="utf-8")
HEADER = DESCRIBE.splitlines()[1]
WHOLE = read_groups(DESCRIBE + MEMBERS + STATE)["orders-billing"].to_json()


G_T_0 = ["g", "t", 0, 1, 2, 1, "-", "-", "-"]
OFFSETS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
LISTED = "GROUP CONSUMER-ID GROUP-INSTANCE-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT".split()


# The sole input

@pytest.mark.parametrize("name, content, words", [
    ("empty.txt", b"", "no group here (empty): no text"),
    ("blank.txt", b"\n  \n\n", "no group here (empty): no text"),
    ("binary", b"\x7fELF\x02\x01\x01\0\0\0", "no group here (binary): binary data"),
    ("utf16.txt", b"\xff\xfe\0", "no group here"),
    ("groups.parquet", b"PAR1\x15\x04\x15", "Parquet is read by kafka-assign fleet compare"),
    ("header.txt", HEADER.encode(), "line 1: no group here (header): a header without rows"),
    ("topics.txt", b"Topic: orders\tPartitionCount: 3\tReplicationFactor: 1\n",
     "line 1: no group here (text): no output of kafka-consumer-groups.sh: no header"),
    ("pods.txt", b"NAME    READY   STATUS\nweb-1   1/1     Running\n",
     "line 1: no group here (text): no output of kafka-consumer-groups.sh: no header"),
    ("streams.txt", b"\nGROUP  TOPIC  PARTITION  OFFSET-LAG\napp    in     0          7\n",
     "line 3: no group here (other): no table that tells"),
    ("tail.txt", ("rows below:\n" + DESCRIBE.split("\n", 2)[2]).encode(),
     "line 1: no group here (text): no output of kafka-consumer-groups.sh: no header, but 'rows below:'"),
    ("bad.txt", f"{HEADER}\nnonsense\n".encode(),
     "line 2: a row must line up with its header up to CLIENT-ID (got nonsense)"),
    ("other.json", b'{"a": 1}', "line 1: no group here (json): JSON without topics and members of a group"),
    ("list.json", b"[\n 1,\n 2]", "line 1: no group here (json)"),
    ("cut.json", b'{"topics": {"t": 1}, "mem', "line 1: JSON must be whole (Unterminated string"),
    ("wrong.json", b'{"topics": {"t": -1}, "members": []}', "line 1: partitions of topic t must be "),
    ("error.txt", b"\nError: Consumer group 'ghost' does not exist.\n",
     "line 2: no group here (error): Error: Consumer group 'ghost' does not exist."),
])
def test_sole_input_without_a_group(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SnapshotError) as caught:
        read_groups(path)
    assert str(caught.value).startswith(f"{path}: ") and words in str(caught.value) and str(caught.value).isprintable()
    with pytest.raises(SnapshotError) as caught:                                 # a folder with nothing else
        read_groups(tmp_path)
    assert str(tmp_path) in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize("source, words", [
    ("nowhere.txt", "nowhere.txt: No such file or directory"),
    (["nowhere.txt", DESCRIBE], "nowhere.txt: No such file or directory"),
    ("", "<text>: no group here (empty): no text"),
    ("\n", "<text>: no group here (empty): no text"),
    (io.BytesIO(b"nothing\n"), "<stream>: line 1: no group here (text)"),
    (io.StringIO("nothing\n"), "<stream>: line 1: no group here (text)"),
    ([], "no files"),
    (7, "a source must be a path, a file object, text, or several of these (got 7)"),
    (b"bytes", "a source must be a path"),
    ("a\x1b[31m\0b", "a\\x1b[31m\\x00b"),
])
def test_sources_that_are_none(source, words):
    with pytest.raises(SnapshotError) as caught:
        read_groups(source)
    assert words in str(caught.value) and str(caught.value).isprintable()


def test_an_empty_folder(tmp_path):
    with pytest.raises(SnapshotError, match="no files"):
        read_groups(tmp_path)


# Folders, streams, encodings

def test_a_folder_ignores_what_holds_no_group(tmp_path):
    (tmp_path / "prod").mkdir()
    files = {"a.txt": DESCRIBE, "b.txt": MEMBERS, "c.txt": STATE, "d.log": "2026-11-21 09:00:00,123 INFO started\n",
             "e.txt": "", "f.json": "{}", "list.txt": "GROUP  STATE\norders-billing  Stable\n", ".hidden": "x"}
    for name, content in files.items():
        (tmp_path / "prod" / name).write_text(content, encoding="utf-8")
    (tmp_path / "prod" / "g.bin").write_bytes(b"\0\1\2")
    (tmp_path / "prod" / "h.txt").symlink_to("nowhere")
    groups = read_groups(tmp_path)
    group = groups["orders-billing"]
    assert (group.cluster, group.state, len(group.members), groups.rejects) == ("prod", "Stable", 4, [])
    assert {(Path(entry.source).name, entry.kind) for entry in groups.ignored if entry.kind != "header"} == {
        ("d.log", "log"), ("e.txt", "empty"), ("f.json", "json"), ("list.txt", "list"), ("g.bin", "binary"),
        ("h.txt", "unreadable")}


def test_the_same_name_in_two_folders(tmp_path):
    for folder in ("east", "west", "east/old"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(DESCRIBE, encoding="utf-8")
    folders = [tmp_path / "east", tmp_path / "west"]
    assert list(read_groups(folders)) == ["east/orders-billing", "old/orders-billing", "west/orders-billing"]
    assert list(read_groups([path / "a.txt" for path in folders])) == ["east/orders-billing", "west/orders-billing"]
    assert list(read_groups(tmp_path / "west" / "a.txt")) == ["orders-billing"]
    (tmp_path / "west" / "old").mkdir()
    (tmp_path / "west" / "old" / "a.txt").write_text(DESCRIBE, encoding="utf-8")
    clusters = {group.cluster for group in read_groups(tmp_path).values()}
    assert clusters == {"east", "west", str(tmp_path / "east" / "old"), str(tmp_path / "west" / "old")}


@pytest.mark.parametrize("encode", [
    lambda text: io.StringIO(text),
    lambda text: io.BytesIO(text.encode()),
    lambda text: io.BytesIO(text.encode("utf-8-sig")),
    lambda text: io.BytesIO(text.encode("utf-16")),
    lambda text: io.BytesIO(text.replace("\n", "\r\n").encode()),
    lambda text: text,
    lambda text: text.replace("\n", "\r\n"),
    lambda text: "".join("    " + line for line in text.splitlines(keepends=True)),
    lambda text: "[me@host ~]$ bin/kafka-consumer-groups.sh --describe --all-groups\n" + text + "[me@host ~]$ \n",
    lambda text: text.replace("\n\n", "\nWarning: Consumer group 'orders-billing' is rebalancing.\n\nSLF4J: x\n"),
], ids=["text stream", "bytes", "utf-8 mark", "utf-16", "crlf", "text", "crlf text", "indented", "prompts", "notices"])
def test_the_same_text_by_other_ways(encode):
    groups = read_groups(encode(DESCRIBE + MEMBERS + STATE))
    assert groups.rejects == [] and groups.read == 18 + 4 + 1
    assert groups["orders-billing"].to_json() == WHOLE


def test_streams_are_left_open(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(DESCRIBE.encode() + b"\xff\n")
    for stream in (io.BytesIO(path.read_bytes()), path.open("rb"), path.open(encoding="utf-8")):
        assert len(read_groups(stream).rejects) == 1 and not stream.closed
        stream.close()


def test_a_text_stream_may_be_no_text():
    with pytest.raises(SnapshotError, match="binary"):
        read_groups(io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"\0\xff\n")), "utf-8"))


# Rows that cannot be used

def test_a_truncated_line_is_a_reject_and_the_rest_is_used():
    lines = DESCRIBE.splitlines()
    for length in range(1, lines[5].rindex("billing-") + 1):
        text = "\n".join([*lines[:5], lines[5][:length], *lines[6:]])
        groups = read_groups(text)
        if lines[5][:length].strip():
            assert [r[:2] for r in groups.rejects] == [("<text>", 6)], text
        assert groups.used == 17 and len(groups["orders-billing"].members) == 4


def test_a_line_cut_in_its_last_cell_is_outvoted():
    lines = DESCRIBE.splitlines()
    lines[2] = lines[2][:-1]
    groups = read_groups("\n".join(lines) + "\n" + MEMBERS)
    assert [reject.position for reject in groups.rejects] == [3]
    assert "must have one host and client id, most rows have another" in groups.rejects[0].reason
    assert groups.used == 17 + 4


def test_a_truncated_assignment_counts_wrong():
    lines = MEMBERS.splitlines()
    at = lines[2].index("orders:2,6,10")
    cut = read_groups("\n".join([lines[1], lines[2][:at + 8], *lines[3:]]))
    assert [r.position for r in cut.rejects] == [2] and len(cut["orders-billing"].members) == 3


@pytest.mark.parametrize("cell, words", [
    ("x", "PARTITION must be a number (got x)"), ("-1", "PARTITION must be a number (got -1)"),
    ("1_0", "PARTITION must be a number (got 1_0)"), ("١", "PARTITION must be a number (got"),
    ("1000000", "PARTITION must be below 1,000,000"), ("9" * 30, "PARTITION must be a number"),
])
def test_bad_numbers(cell, words):
    groups = read_groups(table(OFFSETS, G_T_0, ["g", "t", cell, 1, 2, 1, "-", "-", "-"]))
    assert [r.position for r in groups.rejects] == [4] and words in groups.rejects[0].reason


@pytest.mark.parametrize("column", [3, 4])
@pytest.mark.parametrize("cell", ["-5", "x", "9" * 19, "1e5", ""])
def test_bad_offsets(column, cell):
    row = ["g", "t", 1, 1, 2, 1, "-", "-", "-"]
    row[column] = cell
    groups = read_groups(table(OFFSETS, G_T_0, row))
    assert [r.position for r in groups.rejects] == [4] and groups.used == 1


def test_offsets_up_to_18_digits_and_their_lag():
    numbers = [(10**18 - 1, 10**18 - 1, 0), (0, 10**18 - 1, 10**18 - 1), (9, "-", "-"), ("-", 9, "-"), (9, 7, "-2")]
    groups = read_groups(table(OFFSETS, *(["g", "t", i, *row, "-", "-", "-"] for i, row in enumerate(numbers))))
    assert groups["g"].lag.tolist() == [0, 10**18 - 1, -1, 0, 0]
    assert groups["g"].offsets.committed.tolist() == [10**18 - 1, 0, 9, -1, 9]


def test_numbers_that_would_fill_the_memory():
    """A partition far beyond those that are shown is rejected, the others stay."""
    rows = [["g", f"t{t}", p, 1, 2, 1, "m", "/h", "c"] for t in range(20) for p in (0, 999_999)]
    groups = read_groups(table(OFFSETS, *rows, G_T_0[:2] + [7] + G_T_0[3:]))
    assert (groups.used, groups.rejected, groups["g"].columns.size) == (21, 20, 20 + 8)
    assert groups.rejects[0].reason == ("partition t0-999999 must be below 10,020, given how few partitions of its "
                                        "topic the input shows")


def test_a_partition_with_two_owners_and_a_number_that_is_too_high_is_rejected_twice():
    rows = [["g", "t", number, 1, 2, 1, name, "/h", "c"] for number, name in ((0, "m"), (999_999, "m"), (999_999, "n"))]
    groups = read_groups(table(OFFSETS, *rows))
    assert (groups.used, groups.rejected, groups["g"].topic_counts) == (1, 2, {"t": 1})


def test_topics_whose_partitions_are_not_shown_share_a_total():
    """A million partitions that no row shows, over all groups: the topics that need the most get none."""
    rows = [[f"g{t % 7}", f"t{t}", 9_000 if t % 2 else 500, 1, 2, 1, "m", "/h", "c"] for t in range(400)]
    groups = read_groups(table(OFFSETS, *rows))
    size = sum(group.columns.size for group in groups.values())
    assert 900_000 < size < 400 * 10 + 1_000_000 and groups.used == 200 + (1_000_000 - 200 * 491) // 8_991
    assert all("-9000 must be below 10, given" in reject.reason for reject in groups.rejects)


def test_members_that_own_partitions_far_beyond_those_shown():
    rows = [["g", "m", "", "/h", "c", 2, "t(0,999999)"], ["g", "n", "", "/h", "c", 1, "t(1)"]]
    groups = read_groups(table(LISTED, *rows))
    assert [reject.reason for reject in groups.rejects] == [
        "partition numbers of member m must be lower, given how few partitions of their topics the input shows"]
    assert (groups.used, groups["g"].topic_counts) == (1, {"t": 2})


def test_documents_whose_partitions_are_not_shown_share_a_total():
    def line(name, **more):
        return json.dumps({"name": name, "topics": {"t": 400_000}, "members": []} | more) + "\n"
    groups = read_groups(line("a") + line("b") + line("c") + line("d"))
    assert list(groups) == ["a", "b"] and groups.read == groups.used + groups.rejected == 4
    assert groups.rejects[0].reason == ("the groups of an input must together have at most 1,000,000 partitions "
                                        "without lag, offsets or owner (got 400,000 in c)")


def test_subscriptions_that_no_row_shows_are_not_made_up_by_the_million():
    """3,000 members that may share 3,000 topics: 9 million pairs of which the text shows 3,000."""
    rows = [["g", f"t{t}", 0, 1, 2, 1, f"m{t}", "/h", "c"] for t in range(3_000)]
    every = [["g", "all", p, 1, 2, 1, f"m{p}", "/h", "c"] for p in range(3_000)]
    group = read_groups(table(OFFSETS, *rows, *every))["g"]
    assert len(group.columns.subscribers) == 6_000


@pytest.mark.parametrize("nameless", ["(0,1)", "(0), (1)", "t(0), (1)", "(0), t(1)"])
def test_assignments_without_topics_count_as_not_shown(nameless):
    columns = [*LISTED[:-1], "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    for current, target, owned in [("t(0,1)", nameless, 2), (nameless, "t(0,1,2)", 3), (nameless, nameless, 0)]:
        group = read_groups(table(columns, ["g", "m", "", "/h", "c", 2, 1, current, 1, target]))["g"]
        assert [len(member.owned) for member in group.details] == [owned]


def test_undecodable_bytes_are_one_reject():
    row = DESCRIBE.splitlines()[2].encode()
    groups = read_groups(io.BytesIO(DESCRIBE.encode() + row.replace(b"orders-billing", b"orders-b\xffil") + b"\n"))
    assert [reject[:2] for reject in groups.rejects] == [("<stream>", 21)]
    assert groups.rejects[0].reason.startswith("a row must be UTF-8 (got orders-b\\udcffil ")
    assert groups.read == 19


def test_contradictions_name_each_other():
    lines = DESCRIBE.splitlines()
    other = lines[2].replace("1796 ", "1800 ").replace(" 139 ", " 135 ")
    groups = read_groups("\n".join([*lines, lines[3], other]))
    assert groups.repeated == 1
    assert [reject.position for reject in groups.rejects] == [22]
    assert groups.rejects[0].reason.endswith("must have one state (line 3 says otherwise)")


def test_members_and_offsets_of_different_moments():
    moved = MEMBERS.replace("orders:2,6,10;payments:2", "orders:2,6;payments:2,4").replace(
        "orders:0,4,8;payments:0,4", "orders:0,4,8,10;payments:0")
    groups = read_groups(DESCRIBE + moved)
    assert [reject.reason.split(" (got")[0] for reject in groups.rejects] == [
        f"partition {where} must be in the assignment of its owner" for where in ("payments-4", "orders-10")]
    assert groups.read == groups.used + groups.rejected == 22


def test_states_that_contradict_and_states_alone():
    groups = read_groups(DESCRIBE + STATE + STATE.splitlines()[2].replace("Stable", "Empty "))
    assert [reject.reason for reject in groups.rejects] == [
        "state must be the same in all rows about one member or group (line 23 says otherwise)"]
    with pytest.raises(SnapshotError, match="a state must come with the members it counts"):
        read_groups(STATE)
    empty = read_groups(STATE.replace("Stable               4", "Empty                0"))
    assert empty["orders-billing"].state == "Empty"


def test_one_bad_line_among_many():
    """A file of 1,000 groups with one damaged line: one reject, everything else there."""
    rows = [[f"group-{g}", f"topic-{t}", p, p, 2 * p, p, f"member-{g}-{p % 3}", "/10.0.0.1", f"client-{p % 3}"]
            for g in range(1000) for t in range(2) for p in range(10)]
    lines = table(OFFSETS, *rows).splitlines()
    lines[7777] = lines[7777].replace("/10", "/")
    groups = read_groups("\n".join(lines))
    assert len(groups) == 1000 and groups.used == 19_999
    assert [r.position for r in groups.rejects] == [7778]


# Documents

def test_documents_and_tables_in_one_folder(tmp_path):
    group = read_groups(DESCRIBE)["orders-billing"]
    (tmp_path / "a.json").write_text(group.replace(name="other").to_json(), encoding="utf-8")
    lines = [group.replace(name=name).to_json() for name in ("x", "y", "x", "orders-billing")]
    (tmp_path / "b.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "c.txt").write_text(DESCRIBE, encoding="utf-8")
    groups = read_groups(tmp_path, cluster="prod", time="2026-11-21")
    assert set(groups) == {"orders-billing", "other", "x", "y"} and {g.cluster for g in groups.values()} == {"prod"}
    assert [(reject.position, reject.reason) for reject in groups.rejects] == [
        (4, "a group must be given once (got orders-billing in a table, too)")]
    assert (groups.read, groups.used, groups.repeated) == (18 + 4, 18 + 3, 1)


def test_lines_of_documents_that_are_none(tmp_path):
    good = '{"topics": {"t": 2}, "members": [{"id": "m", "topics": ["t"], "owned": [["t", 0]]}]}'
    path = tmp_path / "groups.jsonl"
    bad_id, named = good.replace('"id": "m"', '"id": 7'), '{"name": "n", ' + good[1:]
    lines = [good[:40], good, "", "{}", bad_id, named, "[" * 100_000]
    path.write_text("\n".join(lines), encoding="utf-8")
    groups = read_groups(path)
    assert list(groups) == [f"{path}:2", "n"]
    assert [r.position for r in groups.rejects] == [1, 5, 7] and groups.read == 5
    assert groups.ignored == [Ignored(str(path), 4, "json", "JSON without topics and members of a group")]


def test_times_keep_groups_apart():
    line = '{"name": "g", "cluster": "c", "time": "2026-01-31T09:00", "topics": {}, "members": []}\n'
    groups = read_groups(line + line.replace("T09:00", "T09:30"), at="all")
    assert list(groups) == ["g@2026-01-31T09:00", "g@2026-01-31T09:30"] and groups.moments == dict.fromkeys(groups, 2)


ODD = [None, 1, -1, 2.5, "x", "", [], {}, [[]], [{}], {"a": []}, True, 10**20, ["t"], [["t", "0"]], [["t", 0, 1]],
       [[["t"], 0]], {"t": {}}, {"t": [1, "2"]}, {"t": [1, 2**70]}, "\ud800"]


def parts(value, path=()):
    """The paths to everything in a document."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from parts(part, (*path, key))


@given(st.data())
def test_odd_documents_are_rejects(data):
    """A document in which one value is replaced by another is a group, or a complaint of one line."""
    document = json.loads(WHOLE)
    *path, last = data.draw(st.sampled_from(list(parts(document))))
    place = document
    for key in path:
        place = place[key]
    place[last] = data.draw(st.sampled_from(ODD))
    try:
        assert len(read_groups(json.dumps(document) + "\n")) == 1
    except SnapshotError as error:
        assert str(error).startswith("<text>: ") and str(error).isprintable()


# Foreign text

HOSTILE = ["<script>alert(1)</script>", "[red]x[/b]", "a\x1bb", "n" * 249, "web ui 1", "Error: x", "GROUP", "--",
           "Warning: y", "\U0001F600 emoji \U0001F680", "\u202eabc", "{}", '{"a": 1}', "SLF4J: z", "日本語", "a/b@c",
           "t:0,1;u", "$ x"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name):
    text = table(OFFSETS, [name, "t", 0, 1, 2, 1, f"{name}-1", "/h", name], [name, "t", 1, 1, 2, 1, "other", "/h", "c"],
                 ["g", name, 0, 1, 2, 1, "-", "-", "-"])
    text += table(LISTED, [name, f"{name}-1", name, "/h", name, 1, "t(0)"], [name, "other", "", "/h", "c", 1, "t(1)"])
    groups = read_groups(text)
    assert groups.rejects == [] and groups.used == 5
    member = {m.id: m for m in groups[name].details}[f"{name}-1"]
    assert (member.client_id, member.instance_id, member.owned) == (name, name, (("t", 0),))
    assert groups["g"].topics == (name,)


printable = st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"])
foreign = st.text(printable, min_size=1, max_size=12).filter(lambda text: text != "-")


@given(foreign, foreign, foreign, foreign)
def test_any_name_comes_back(group, topic, member, client):
    """Any name without blanks at its ends is read as it was printed."""
    rows = [[group, topic, 0, 1, 2, 1, member, "/h", client], [group, topic, 1, "-", 2, "-", member, "/h", client]]
    text = table(OFFSETS, *rows)
    groups = read_groups(text)
    assert (groups.used, groups.rejects) == (2, [])
    assert [(m.id, m.client_id, len(m.owned)) for m in groups[group].details] == [(member, client, 2)]


# Rows that only look right

SQUEEZED = " ".join(OFFSETS) + "\nwebshop orders 0 1 2 1 m /h c\n"


@pytest.mark.parametrize("half, words", [
    ("team 2 12 1 100 250 150 - -", "LAG must be LOG-END-OFFSET - CURRENT-OFFSET, here 99 (got 250)"),
    ("team 2 12 0 100 200 100 m-1 /h", "a row must line up with its header"),                # owner `m-1` below HOST
    ("team 2 12 1 - 250 - - -", "LAG must be - where an offset is not known (got 250)"),
    ("team 2 12 1 - - - - -", "a row must line up with its header"),                         # LAG proves nothing
    ("team 2 12 1 100 - - - -", "a row must line up with its header"),
    ("aa topic 0 5 5 0 x b/c-1 /h", "a row must line up with its header"),                    # a member id with a slash
    ("aa topic 0 5 5 0 m - c", "HOST must be a name (got -)"),
    ("aa topic 0 5 7 1 m /h c", "LAG must be LOG-END-OFFSET - CURRENT-OFFSET, here 2 (got 1)"),
    ("aa topic 0 7 5 2 m /h c", "LAG must be LOG-END-OFFSET - CURRENT-OFFSET, here -2 (got 2)")])
def test_a_row_with_the_right_number_of_words_may_be_wrong(half, words):
    groups = read_groups(SQUEEZED + half + "\n")
    assert list(groups) == ["webshop"] and groups.used == 1
    [reject] = groups.rejects
    assert reject.position == 3 and reject.reason.startswith(words)


def test_half_a_row_without_a_group_is_not_glued_to_a_host():
    """0.10.2 prints no blank between a long member id and the host; a member id with a slash looks alike."""
    groups = read_groups(" ".join(OFFSETS[1:]) + "\norders 0 1 2 1 m /h c\norders 1 1 2 1 web/1 /10.0.0.1\n")
    assert (groups.used, [reject.position for reject in groups.rejects]) == (1, [3])


@pytest.mark.parametrize("column", range(3, 6))
def test_numbers_that_contradict_each_other_are_rejects(column):
    row = ["g", "t", 1, 10, 30, 20, "m", "/h", "c"]
    row[column] += 1
    groups = read_groups(table(OFFSETS, G_T_0, row))
    assert groups.used == 1 and "LAG must be LOG-END-OFFSET - CURRENT-OFFSET" in groups.rejects[0].reason


def test_a_lag_that_is_not_shown_contradicts_nothing():
    rows = ["g", "t", 0, 10, 30, "-", "m", "/h", "c"], ["g", "t", 1, 7, 5, 0, "-", "-", "-"]
    groups = read_groups(table(OFFSETS, *rows))
    assert groups.rejects == [] and groups["g"].lag.tolist() == [20, 0]


@pytest.mark.parametrize("owner", [["web 1-5c76", "/10.0.0.1", "web 7 0 1"], ["-", "-", "-"]])
def test_two_rows_in_a_line(owner):
    """Of two rows without a newline between them, the first is used whole and the second is rejected."""
    rows = [["web ui", "t", number, 10, 30, 20, *owner] for number in range(4)]
    lines = table(OFFSETS, *rows).splitlines()
    groups = read_groups("\n".join([*lines[:3], lines[3] + lines[4], lines[5]]))
    group = groups["web ui"]
    assert (groups.used, [reject.position for reject in groups.rejects]) == (3, [4])
    assert groups.rejects[0].reason.startswith("a row must begin on a line of its own (got web ui t ")
    assert (group.topic_counts, {member.client_id for member in group.details}) == (
        {"t": 4}, {owner[2]} - {"-"})
    assert [member.owned for member in group.details] == [(("t", 0), ("t", 1), ("t", 3))][:len(group.members)]


def test_an_idle_row_behind_a_row():
    columns = OFFSETS[1:]
    idle = ["-", "-", "-", "-", "-", "m-2", "/h", "c"]
    lines = table(columns, ["t", 0, 1, 2, 1, "m-1", "/h", "c"], idle).splitlines()
    groups = read_groups("\n".join([lines[1], lines[2] + lines[3]]), group="g")
    assert (groups.used, groups["g"].members, groups["g"].details[0].client_id) == (1, ("m-1",), "c")


@pytest.mark.parametrize("other", [
    MEMBERS, DESCRIBE, STATE.replace("Stable               4", "Empty                0")],
    ids=["members", "offsets", "state"])
def test_a_header_behind_a_row_begins_a_table(other):
    first = table(OFFSETS, ["g", "t", 0, 1, 2, 1, "m", "/h", "c"])
    groups = read_groups(first.rstrip("\n") + other.lstrip("\n"))
    assert groups.rejects == [] and list(groups) == ["g", "orders-billing"]
    assert groups["g"].details[0].client_id == "c" and groups["orders-billing"] == read_groups(other)["orders-billing"]


def test_columns_that_were_aligned_by_hand():
    """Below a squeezed header, idle rows whose dashes begin anywhere, and numbers to the right."""
    text = ("TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST     CLIENT-ID\n"
            "-             -                          -              -     -     rdkafka-fbca /10.0.0.4     rdkafka\n"
            "t              1          13100           20100           7000       -                -            -\n")
    groups = read_groups(text, group="g")
    assert groups.rejects == [] and groups["g"].members == ("rdkafka-fbca",) and groups["g"].lag.tolist() == [-1, 7000]
    right = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n" \
            "g     t             0              1              2   1 m           /h   c\n"
    assert read_groups(right)["g"].lag.tolist() == [1]


# Blanks that are no padding

SPACES = "\xa0\u3000\u2003\x1f\x85\x1c\x0b\x0c\u2028\t"


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_only_padding_is_removed_from_names(space):
    """Two groups, two members and two client ids that differ in a space at one end."""
    names = ["g", f"g{space}", f"{space}g", " g"]
    rows = [[name, "t", i, 1, 2, 1, f"{name}-{i}", "/h", name] for name in names for i in range(2)]
    listed = [[name, f"{name}-{i}", name, "/h", name, 1, f"t({i})"] for name in names for i in range(2)]
    states = [[name, "b:9092 (1)", "range", "Stable", 2] for name in names]
    columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    for text in (table(OFFSETS, *rows), table(LISTED, *listed),
                 table(OFFSETS, *rows) + table(LISTED, *listed) + table(columns, *([*map(str, s)] for s in states))):
        groups = read_groups(text)
        assert list(groups) == names and groups.rejects == []
        assert [[member.id for member in groups[name].details] for name in names] == [
            [f"{name}-0", f"{name}-1"] for name in names]
        assert all(member.client_id == name for name in names for member in groups[name].details)


@pytest.mark.parametrize("space", SPACES[:6], ids=ascii)
def test_only_padding_is_removed_from_names_in_other_lines(space):
    name, old = f"g{space}", table(OFFSETS[1:], ["t", 0, 1, 2, 1, "m", "/h", "c"])
    assert list(read_groups(f"Consumer group '{name}' has no active members.\n{old}")) == [name]
    assert list(read_groups(f"$ kafka-consumer-groups.sh --describe --group {name}\n{old}")) == [name]
    assert list(read_groups(f"GROUP    {name}\nSTATE    Empty\nBALANCER\nMEMBERS  0\n")) == [name]


# A folder

def test_a_folder_whose_name_is_not_utf8_is_one_reject(tmp_path):
    bad = tmp_path / os.fsdecode(b"prod\xff")
    try:
        bad.mkdir()
    except OSError:
        pytest.skip("the file system takes names in UTF-8 only")
    (tmp_path / "good").mkdir()
    for path, text in (bad / "a.txt", DESCRIBE), (bad / "b.txt", MEMBERS), (tmp_path / "good" / "a.txt", DESCRIBE):
        path.write_text(text, encoding="utf-8")
    groups = read_groups(tmp_path)
    assert [(reject.source, reject.position) for reject in groups.rejects] == [(str(bad / "a.txt"), 1)]
    assert groups.rejects[0].reason == "the name of a folder must be UTF-8 (got prod\\udcff)"
    assert [entry.source for entry in groups.ignored if entry.kind == "unreadable"] == [str(bad / "b.txt")]
    assert list(groups) == ["orders-billing"] and groups.read == groups.used + 1 == 19
    assert len(read_groups(tmp_path, cluster="prod").rejects) == 0                     # the caller names the cluster
    with pytest.raises(SnapshotError, match="the name of a folder must be UTF-8"):
        read_groups(bad)


# Nothing is lost

GLUED_HEADER = re.compile(r"[^A-Z ].*(?:TOPIC +PARTITION|CONSUMER-ID|COORDINATOR)")


def account(text):
    """Read; every line that is not blank must be found again, as used, repeated, rejected or ignored.

    A line that ends in another row or header is found twice.
    """
    groups = read_groups(text)
    lines = [line for line in text.split("\n") if line.strip()]
    assert groups.read == groups.used + groups.rejected == groups.used + len(groups.rejects)
    found = groups.read + groups.repeated + sum(entry.lines for entry in groups.ignored)
    rows = sum(reject.reason.startswith("a row must begin on a line of its own") for reject in groups.rejects)
    assert rows <= found - len(lines) <= rows + sum(map(bool, map(GLUED_HEADER.search, lines)))
    for reject in groups.rejects:
        assert reject.source == "<text>" and reject.reason.isprintable()
        assert text.split("\n")[reject.position - 1].strip()
    return groups


@given(st.lists(st.sampled_from(FILES), min_size=1, max_size=4), st.integers(0, 2**32), st.integers(0, 30))
def test_mangled_captures_lose_nothing(files, seed, count):
    text = mangled([line for lines in files for line in ["\n", *lines]], seed, count) + "\n"
    for extended in (text, text + DESCRIBE):
        try:
            account(extended)
        except SnapshotError as error:
            assert str(error).isprintable()


def test_rows_without_their_header_are_ignored_if_another_line_is_no_row():
    text = DESCRIBE.split("\n", 2)[2] + "some words\n"
    ignored = [entry for entry in read_groups([io.StringIO(text), DESCRIBE]).ignored if entry.kind == "text"]
    assert [(entry.source, entry.position, entry.lines) for entry in ignored] == [("<stream>", 1, 19)]


@given(st.binary(max_size=200), st.sampled_from(LINES))
def test_any_bytes(data, line):
    try:
        groups = read_groups(io.BytesIO(data + b"\n" + line.encode()))
    except SnapshotError as error:
        assert str(error).isprintable()
    else:
        assert groups.read == groups.used + groups.rejected


@given(st.integers(0, 2**32))
def test_rows_in_any_order_say_the_same(seed):
    """Rows shuffled and doubled below their header, tables in any order."""
    chance, tables = random.Random(seed), []
    for text in (DESCRIBE, MEMBERS, STATE):
        header, *rows = text.strip("\n").splitlines()
        rows += chance.choices(rows, k=3)
        chance.shuffle(rows)
        tables.append("\n".join(["", header, *rows, ""]))
    chance.shuffle(tables)
    groups = account("".join(tables))
    assert (groups.used, groups.repeated, groups.rejects) == (23, 9, [])
    documents = [json.loads(text) for text in (groups["orders-billing"].to_json(), WHOLE)]
    for document in documents:                                   # members are listed in the order of the text
        document["members"].sort(key=lambda member: member["id"])
    assert documents[0] == documents[1]


def test_members_are_listed_as_the_text_shows_them_first():
    rows = [["g", "t", 0, 1, 2, 1, "b", "/h", "c"], ["g", "t", 1, 1, 2, 1, "c", "/h", "c"]]
    idle = [["g", "a", "", "/h", "c", 0, "-"], ["g", "b", "", "/h", "c", 1, "t(0)"],
            ["g", "c", "", "/h", "c", 1, "t(1)"]]
    for text, order in [(table(OFFSETS, *rows) + table(LISTED, *idle), "bca"),
                        (table(LISTED, *idle) + table(OFFSETS, *rows), "abc"),
                        (table(OFFSETS, *rows[::-1]), "cb"), (table(OFFSETS, *rows[::-1] * 150), "cb")]:
        group = read_groups(text)["g"]
        assert "".join(group.members[member] for member in group.listed) == order


def test_lags_that_would_not_fit_into_64_bits():
    """Rows whose lag is beyond their share are rejected, the others stay."""
    rows = [["g", "t", p, 0, end, end, "m", "/h", "c"] for p, end in enumerate([7] + [10**18 - 1] * 11)]
    groups = read_groups(table(OFFSETS, *rows))
    assert (groups.used, groups.rejected, groups["g"].lag[0]) == (1, 11, 7)
    assert "a group must have a lag of less than 2**63 records" in groups.rejects[0].reason


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_whole_rows_survive_cut_ones(seed, count):
    """Rows cut anywhere before their last cell cost themselves only."""
    chance, lines = random.Random(seed), DESCRIBE.splitlines()
    bad = chance.sample(range(2, 20), count)
    for at in bad:
        lines[at] = lines[at][:chance.randrange(1, HEADER.index("CLIENT-ID"))]
    groups = account("\n".join(lines))
    assert (groups.used, sorted(r.position - 1 for r in groups.rejects)) == (18 - count, sorted(bad))


def test_a_named_file_that_holds_only_an_error_is_a_reject(tmp_path):
    error = "\nError: Executing consumer group command failed due to TimeoutException\n"
    (tmp_path / "good.txt").write_text(DESCRIBE, encoding="utf-8")
    (tmp_path / "bad.txt").write_text("SLF4J: no logger\n" + error, encoding="utf-8")
    groups = read_groups([tmp_path / "good.txt", tmp_path / "bad.txt"])
    [(source, line, reason)] = groups.rejects
    assert (source, line, reason) == (str(tmp_path / "bad.txt"), 3, error.strip())
    assert groups.read == groups.used + groups.rejected == 19
    assert len(read_groups([tmp_path / "good.txt", io.StringIO(error)]).rejects) == 1
    assert read_groups(tmp_path).rejects == []                                 # nobody named the file
    (tmp_path / "bad.txt").write_text("SLF4J: no logger\n", encoding="utf-8")
    assert read_groups([tmp_path / "good.txt", tmp_path / "bad.txt"]).rejects == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names only on Unix")
def test_a_pipe_in_a_folder_does_not_wait_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "group.txt").write_text(DESCRIBE, encoding="utf-8")
    groups = read_groups(tmp_path)
    assert len(groups) == 1
    assert [(os.path.basename(one.source), one.kind, one.reason) for one in groups.ignored if one.kind != "header"] == [
        ("pipe.txt", "unreadable", "no regular file")]


# Numbers that Kafka cannot have

HUGE = ["9" * 5000, "9" * 18, "99999999999", "2147483648", "-1", "1e400", "NaN", "null", "[]",
        '"9999-12-31"', "9999-12-31"]


@given(st.sampled_from([*filter(None, FILES)]), st.integers(0, 2**32))
def test_a_hostile_number_costs_no_more_than_its_row(lines, seed):
    """In any place of the output, or of JSON; every row is still used or rejected."""
    rng, lines = random.Random(seed), [*lines]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        if numbers := [*re.finditer(r"\d+", lines[at])]:
            begin, end = rng.choice(numbers).span()
            lines[at] = lines[at][:begin] + rng.choice(HUGE) + lines[at][end:]
    try:
        groups = read_groups("".join(lines) + "\n", at=rng.choice(["latest", "all"]))
    except SnapshotError:
        return
    assert groups.read == groups.used + groups.rejected
    for group in groups.values():
        group.to_json()


@pytest.mark.parametrize("number, column", [("99999999999", "#PARTITIONS"), ("9" * 5000, "#PARTITIONS")])
def test_a_count_that_kafka_cannot_have_is_named(number, column):
    row = ["g", "m-1", "-", "/h", "c", number, "-"]
    groups = read_groups(table(LISTED, row) + "\n" + table(OFFSETS, G_T_0))
    assert [reject.reason.split(" must")[0] for reject in groups.rejects] == [column] and [*groups] == ["g"]
