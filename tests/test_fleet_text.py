"""Text of a fleet: read one place and moment after another, it says what `read_groups` says of all at once."""

import io
import json
import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import LONG
from outputs import FILES, POSTED, SAMPLES, mangled, table

from kafka_assign.fleet import text
from kafka_assign.fleet.codec import row_from_group
from kafka_assign.fleet.text import TEXT_SCHEMA, TextAccount, read_moment, store_rows
from kafka_assign.snapshot import SnapshotError, read_groups
from kafka_assign.snapshot.moments import moments_of_files
from kafka_assign.snapshot.sources import Origin, folder_keys, origins

ROOT = Path(__file__).resolve().parent.parent
OFFSETS = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
MEMBERS = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
STATE = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
NO_TEXT = {"unreadable": "must be readable (got {})",
           "binary": "must hold text, JSON or Parquet",
           "parquet": "must have a name that ends in .parquet, because it is Parquet at an address"}


# --- inputs --------------------------------------------------------------------------------------------------------

def output_of(chance, names):
    """Tables of several kinds about some groups; half of the numbers are always the same, so outputs often agree."""
    def number(most):
        return chance.choice((most // 2, chance.randrange(most)))
    kinds = {
        OFFSETS[1]: (OFFSETS, lambda name: [
            [name, f"t{topic}", partition, number(9), number(20), "-",
             *chance.choice((["c-1", "/h1", "c"], ["c-2", "/h2", "c"], ["-", "-", "-"]))]
            for topic in range(number(3)) for partition in range(1 + number(3))]),
        MEMBERS[1]: (MEMBERS, lambda name: [
            [name, "c-1", "/h1", "c", 1, "t0(0)"], *[[name, "c-2", "/h2", "c", 0, "-"]] * number(2)]),
        STATE[1]: (STATE, lambda name: [[name, "h:9092 (1)", "range", "Stable", number(4)]])}
    parts = []
    for _ in range(chance.randrange(1, 4)):
        columns, rows_of = kinds[chance.choice(list(kinds))]
        some = chance.sample(names, chance.randrange(1, len(names)))
        if chance.randrange(4) == 0:
            parts.append(f"Consumer group '{some[0]}' is rebalancing.\n")
        if rows := [row for name in some for row in rows_of(name)]:
            parts.append(table(columns, *rows))
    return "".join(parts)


def documents_of(chance, names):
    """JSON Lines: groups with and without a name, cluster and time, the same again, and what is no group."""
    lines = []
    for _ in range(chance.randrange(1, 6)):
        document = {"topics": {"t0": chance.randrange(3)}, "members": [], "name": chance.choice([*names, "", 7])}
        document |= chance.choice((
            {}, {"cluster": "east"}, {"cluster": "west"}, {"cluster": ["?"]}, {"time": "2026-11-20"}))
        lines += [json.dumps(document)] * chance.choice((1, 1, 2))
    lines += chance.choice((
        [], ["{"], ['{"a": 1}'], ['{"group_name": "g1", "partitions": [{"topic": "t", "partition": 0}]}']))
    return "\n".join(lines) + "\n"


def write_fleet(chance, root):
    """Some folders of files: made, captured, damaged, JSON, junk."""
    names = [f"g{i}" for i in range(6)] + ["group", "Error:"]
    for i in range(chance.randrange(2, 9)):
        folder = root / chance.choice(("east", "west", "west/2026-11-20", "cluster=east/day=2026-11-21"))
        folder.mkdir(parents=True, exist_ok=True)
        kind, lines = chance.randrange(6), output_of(chance, names).splitlines(keepends=True) or ["\n"]
        content = (output_of(chance, names) if kind < 2 else documents_of(chance, names) if kind == 2 else
                   mangled(chance.choice(FILES) or ["\n"], chance.random(), 4) if kind == 3 else
                   mangled(lines, chance.random(), 3) if kind == 4 else
                   chance.choice(("", "Error: no such group\n", "\0\1", "call Anna\n", "PAR1")))
        name = chance.choice(("{}.txt", "g1.describe.{}.txt", "g1.2026-11-2{}.txt", "{}.describe.txt", "all.state.txt"))
        (folder / name.format(i)).write_bytes(content.encode("utf-8", "surrogateescape"))


# --- both ways -----------------------------------------------------------------------------------------------------

def in_moments(source, cluster=None, time="", reset=None):
    """The rows of all moments, stored and read back, and the account of them."""
    files, account, stored = [*origins(source)], TextAccount(), {}
    store_rows((read_moment(part, name, account, cluster, time, "", reset)
                for name, part in moments_of_files(files, cluster, time)), stored.__setitem__)
    rows = [row for data in stored.values() for row in pq.read_table(io.BytesIO(data)).to_pylist()]
    return rows, account


def told(row):
    """A group without where it was found, and without what the other moments of it decide."""
    name = row["group_id"]
    return json.dumps({name: row[name] for name in sorted(TEXT_SCHEMA.names[2:-4])} | {
        "moment": None, "group_id": "" if name == "group" or ":" in name and name != "Error:" else name},
        sort_keys=True, default=bytes.hex)


def account_of(rows, account):
    """Groups, rejects, ignored and counts in rows of `TEXT_SCHEMA`."""
    groups = Counter(told(row) for row in rows if row["group_id"] is not None)
    rejects = Counter((row["source"], row["position"], row["reason"]) for row in rows if row["reject"] is not None)
    ignored = Counter((row["source"], row["position"], row["ignored"], row["reason"], row["lines"])
                      for row in rows if row["ignored"] is not None)
    assert account.groups == groups.total() and account.rejects.total() == rejects.total()
    assert account.ignored.total() == sum(lines * count for (*_, lines), count in ignored.items())
    return groups, rejects, ignored, (account.read, account.used)


def in_one_process(source, **reading):
    """The same by `read_groups`; files that are no text are rejects."""
    groups = read_groups(source, at="all", **reading)
    rows = pa.Table.from_pylist([row_from_group(group) for group in groups.values()], TEXT_SCHEMA).to_pylist()
    rejects, ignored = Counter(map(tuple, groups.rejects)), Counter()
    for source, position, kind, reason, lines in groups.ignored:
        if kind in NO_TEXT:
            rejects[source, 0, NO_TEXT[kind].format(reason)] += 1
        else:
            ignored[source, position, kind, reason, lines] += 1
    return Counter(map(told, rows)), rejects, ignored, (groups.read, groups.used)


@pytest.mark.parametrize("seed", range(2000 if LONG else 60))
def test_moments_say_what_all_files_at_once_say(tmp_path, monkeypatch, seed):
    """JSON apart, whose documents have times and clusters of their own: those that repeat are told by the job."""
    chance = random.Random(seed)
    write_fleet(chance, tmp_path)
    monkeypatch.setattr(text, "_BYTES_OF_FILE", chance.choice((1, 5000, 1 << 22)))
    reading = chance.choice(({}, {}, {"cluster": "prod"}, {"time": "2026-11-19"}, {"reset": "earliest"}))
    found = sorted(path for path in tmp_path.rglob("*") if path.is_file() and b"{" not in path.read_bytes())
    source = chance.choice((tmp_path, found)) if found == sorted(
        path for path in tmp_path.rglob("*") if path.is_file()) else found
    rows, account = in_moments(source, **reading)
    try:
        expected = in_one_process(source, **reading)
    except SnapshotError as error:
        assert "Parquet" in str(error) or not account.groups
    else:
        assert account_of(rows, account) == expected


def test_all_captures():
    """What the tool of each version prints, and what people post: one folder each, and every file as a stream."""
    for folder in (SAMPLES, POSTED):
        assert account_of(*in_moments(folder)) == in_one_process(folder)
    paths = [path for path in sorted(SAMPLES.rglob("*.txt")) if b"\n" in path.read_bytes()]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert account_of(*in_moments(texts)) == in_one_process(texts)


def test_a_moment_is_forgotten_before_the_next_is_read(tmp_path, monkeypatch):
    """Memory follows the largest moment: rows are stored as they come, and no file is opened before that."""
    for day in range(3):
        (tmp_path / f"2026-11-2{day}.txt").write_text(table(OFFSETS, ["g", "t", 0, day, 9, 9, "c", "/h", "c"]))
    monkeypatch.setattr(text, "_BYTES_OF_FILE", 0)
    done, opened = [], []

    def reading():
        for name, files in moments_of_files([*origins(tmp_path)]):
            opened.append(len(done))
            yield read_moment(files, name, TextAccount())
    assert store_rows(reading(), lambda name, data: done.append(name)) == 3
    assert opened == [0, 1, 2] and done == ["0.parquet", "1.parquet", "2.parquet"]


# --- where a group was found ---------------------------------------------------------------------------------------

def test_a_group_names_the_first_line_that_shows_it(tmp_path):
    """Tables of many groups, in several files, whose positions are shifted when they are put together."""
    expected = {}
    for day in range(3):
        rows = [[f"g{i}", "t", 0, day, 9, 9 - day, "c", "/h", "c"] for i in range(9) if (i + day) % 3]
        lines = table(OFFSETS, *rows)
        path = tmp_path / f"2026-11-2{day}.txt"
        path.write_text(lines)
        for i in range(9):
            place = next((at for at, line in enumerate(lines.splitlines(), 1) if line.startswith(f"g{i} ")), None)
            if place:
                expected[f"g{i}", f"2026-11-2{day}"] = str(path), place
    document = tmp_path / "g.json"
    document.write_text("\n" + json.dumps({"name": "json", "topics": {}, "members": []}) + "\n")
    expected["json", None] = str(document), 2
    rows = [row for row in in_moments(tmp_path)[0] if row["group_id"]]
    assert {(row["group_id"], row["time"] or None): (row["source"], row["position"]) for row in rows} == expected


def test_groups_without_a_name_stay_different(tmp_path):
    """Documents are called after their lines, tables by one word; a group with such a name is one of them."""
    lines = [{"topics": {"t": i}, "members": []} for i in range(3)] + [{"name": "group", "topics": {}, "members": []}]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, lines)))
    sources = [str(tmp_path / "a.json"), table(OFFSETS[1:], ["t", 0, 1, 2, 1, "c", "/h", "c"])]
    rows = [row for row in in_moments(sources, cluster="")[0] if row["group_id"] is not None]
    path = tmp_path / "a.json"
    assert sorted((row["group_id"], row["moment"]) for row in rows) == [
        (f"{path}:1", None), (f"{path}:2", None), (f"{path}:3", None), ("group", 1), ("group", 2)]


# --- files that are no text ----------------------------------------------------------------------------------------

def test_a_file_that_cannot_be_read_is_one_reject(tmp_path):
    """Named or not: a reject of the file itself, and no other count knows of it. The others are read."""
    (tmp_path / "good.txt").write_text(table(OFFSETS, ["g", "t", 0, 1, 2, 1, "c", "/h", "c"]))
    (tmp_path / "binary.txt").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "fleet.parquet").write_bytes(b"PAR1 and more")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.txt").symlink_to("nowhere")
    groups, rejects, ignored, counts = account_of(*in_moments([tmp_path, str(tmp_path / "binary.txt")]))
    kinds = Counter((Path(source).name, position, reason) for source, position, reason in rejects.elements())
    gone, pipe = map(NO_TEXT["unreadable"].format, ("No such file or directory", "no regular file"))
    assert kinds == {("binary.txt", 0, NO_TEXT["binary"]): 2, ("pipe.txt", 0, pipe): 1,
                     ("fleet.parquet", 0, NO_TEXT["parquet"]): 1, ("link.txt", 0, gone): 1}
    assert len(groups) == 1 and counts == (1, 1)
    assert {kind for _, _, kind, *_ in ignored} == {"header"}


def test_a_group_that_is_no_row_is_a_reject():
    """A rack that UTF-8 cannot encode comes from JSON; the other groups of its moment become rows."""
    documents = [{"name": name, "topics": {"t": 1}, "members": [], "partition_racks": {"t": [[rack]]}}
                 for name, rack in (("a", "r"), ("odd", "\ud800"), ("b", "r"))]
    account, content = TextAccount(), "\n".join(map(json.dumps, documents)).encode()
    rows = read_moment([Origin("x.json", "", content)], "", account).to_pylist()
    groups, rejects, *_ = account_of(rows, account)
    [(source, position, reason)] = rejects
    assert len(groups) == 2 and (source, position) == ("x.json", 2)
    assert reason.startswith("group odd: its values must fit into a row (got")


def test_the_name_of_a_group_that_is_not_utf8_costs_its_rows():
    """Such a name comes from a command line, or from the name of a file; it must not end the job."""
    lines = "$ kafka-consumer-groups --group 'x\udc80'\n" + table(OFFSETS[1:], ["t", 0, 1, 2, 1, "c", "/h", "c"])
    groups = read_groups(lines + table(OFFSETS, ["g", "t", 0, 1, 2, 1, "c", "/h", "c"]))
    [reject] = groups.rejects
    assert list(groups) == ["g"] and reject.reason.startswith("the name of the group must be UTF-8 (got x")
    summary = "GROUP  x\udc80\nSTATE  Stable\nMEMBERS  0\n"
    with pytest.raises(SnapshotError, match="GROUP must be UTF-8"):
        read_groups(summary)


# --- folders as Hive names them ------------------------------------------------------------------------------------

@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
@pytest.mark.parametrize("folder, cluster, time", [
    ("cluster=east/day=2026-11-20", "east", "2026-11-20"), ("day=2026-11-20/cluster=a%20b", "a b", "2026-11-20"),
    ("day=20261120/x/cluster=a/cluster=b", "b", "2026-11-20"),
    ("cluster=__HIVE_DEFAULT_PARTITION__/day=2026-11-20", "", "2026-11-20"),
    ("cluster=east/day=__HIVE_DEFAULT_PARTITION__", "east", ""), ("cluster=east/team=x", "east", "")])
def test_folders_of_hive(tmp_path, prefix, folder, cluster, time):
    """The cluster and the day of a file, by its path and by its address, among others and alone."""
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "x.txt").write_text(table(OFFSETS, ["g", "t", 0, 1, 2, 1, "c", "/h", "c"]))
    path = f"{prefix}{place}/x.txt"
    for paths in ([path], [path, f"{prefix}{tmp_path}/cluster=east/y.txt"]):
        found = [Origin(one, os.path.dirname(one), str(place / "x.txt")) for one in paths]
        [(row, *_), *_] = ([row for row in read_moment(files[:1], name, TextAccount()).to_pylist() if row["group_id"]]
                           for name, files in moments_of_files(found) if files[0].name == path)
        assert (row["cluster"] or "", row["time"] or "", row["source"]) == (cluster, time, path)
    [group] = read_groups(place / "x.txt").values()
    assert (group.cluster, group.time) == (cluster, time)


@pytest.mark.parametrize("value, cluster", [("%FF", "%FF"), ("%FE", "%FE"), ("a%20b", "a b"), ("%C3%BC", "\u00fc")])
def test_bytes_in_the_name_of_a_folder_that_are_no_text_stay_apart(value, cluster):
    """Otherwise `%FF` and `%FE` would be one cluster with the name U+FFFD."""
    [(name, _)] = moments_of_files([Origin("x.txt", f"/data/cluster={value}", b"", False)])
    assert name == cluster and folder_keys(f"/data/cluster={value}") == {"cluster": cluster}
