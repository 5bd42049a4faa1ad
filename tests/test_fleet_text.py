"""Text of a fleet: the two stages on the workers say what `read_groups` says in one process, however work is cut."""

import json
import os
import pickle
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import LONG
from outputs import FILES, POSTED, SAMPLES, mangled, table

from kafka_assign.fleet import text
from kafka_assign.fleet.codec import row_from_group
from kafka_assign.fleet.text import (
    FILES_SCHEMA, TEXT_SCHEMA, assemble_part, parse_files, text_frame)
from kafka_assign.snapshot import SnapshotError, SnapshotReader, read_groups
from kafka_assign.snapshot.sources import NoText, Origin, clusters_of, origins

ROOT = Path(__file__).resolve().parent.parent
OFFSETS = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
MEMBERS = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
STATE = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
NO_TEXT = {"unreadable": "must be readable where Spark's workers run (got {})",
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


def files_of(source, **reading):
    """The files of a source as the driver lists them."""
    found = list(origins(source))
    clusters = clusters_of(found, reading.get("cluster"))
    rows = [{"file": i, "path": one.name, "cluster": clusters[one.folder], "named": one.named, "content":
             None if isinstance(one.content, str) else one.content.read().encode("utf-8", "surrogatepass")}
            for i, one in enumerate(found)]
    return pa.Table.from_pylist(rows, FILES_SCHEMA)


# --- both ways -----------------------------------------------------------------------------------------------------

def in_stages(files, chance=None, **reading):
    """The rows of both stages, with files and parts in any order, and batches of any size."""
    chance = chance or random.Random(1)
    files = files.take(pa.array(chance.sample(range(files.num_rows), files.num_rows), pa.int64()))
    parts = pa.Table.from_batches(parse_files(files.to_batches(chance.randrange(1, 9)), **reading))
    parts = parts.take(pa.array(chance.sample(range(parts.num_rows), parts.num_rows), pa.int64()))
    keys = {(row["cluster"], row["bucket"]) for row in parts.select(["cluster", "bucket"]).to_pylist()}
    rows = []
    for cluster, bucket in keys:
        mask = pa.compute.and_(pa.compute.equal(parts["cluster"], cluster), pa.compute.equal(parts["bucket"], bucket))
        rows += assemble_part(parts.filter(mask), **reading).to_pylist()
    return rows


def told(row):
    """A group without where it was found, and without the name that a group without one gets."""
    name = row["group"]
    return json.dumps({name: row[name] for name in sorted(TEXT_SCHEMA.names[2:-7])} | {
        "group": "" if name == "group" or ":" in name and name != "Error:" else name},
        sort_keys=True, default=bytes.hex)


def account_of(rows):
    """Groups, rejects, ignored and counts in rows of `TEXT_SCHEMA`."""
    groups = Counter(told(row) for row in rows if row["group"] is not None)
    rejects = Counter((row["source"], row["position"], row["reason"]) for row in rows if row["reject"] is not None)
    ignored = Counter((row["source"], row["position"], row["ignored"], row["reason"], row["lines"])
                      for row in rows if row["ignored"] is not None)
    counts = {name: sum(row[name] or 0 for row in rows) for name in ("read", "used", "repeated")}
    return groups, rejects, ignored, counts


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
    return Counter(map(told, rows)), rejects, ignored, {
        name: getattr(groups, name) for name in ("read", "used", "repeated")}


@pytest.mark.parametrize("seed", range(2000 if LONG else 60))
def test_stages_say_what_one_process_says(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    write_fleet(chance, tmp_path)
    monkeypatch.setattr(text, "BUCKETS", chance.choice((1, 2, 3, 64, 4096)))
    monkeypatch.setattr(text, "BLOCK_BYTES", chance.choice((1, 5000, 1 << 22)))
    reading = chance.choice(({}, {}, {"cluster": "prod"}, {"time": "2026-11-19"}, {"reset": "earliest"}))
    source = chance.choice((tmp_path, sorted(path for path in tmp_path.rglob("*") if path.is_file())))
    rows = in_stages(files_of(source, **reading), chance, **reading)
    try:
        expected = in_one_process(source, **reading)
    except SnapshotError as error:
        assert "Parquet" in str(error) or not any(row["group"] is not None for row in rows)
    else:
        assert account_of(rows) == expected


def test_all_captures():
    """What the tool of each version prints, and what people post: one folder each, and every file as a stream."""
    for folder in (SAMPLES, POSTED):
        assert account_of(in_stages(files_of(folder))) == in_one_process(folder)
    paths = [path for path in sorted(SAMPLES.rglob("*.txt")) if b"\n" in path.read_bytes()]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert account_of(in_stages(files_of(texts))) == in_one_process(texts)


@pytest.mark.parametrize("seed", range(20))
def test_a_reader_of_many_files_can_be_divided(tmp_path, seed):
    """Parts of a whole reader, pickled, make its groups; the parts of one bucket alone change nothing."""
    chance = random.Random(seed)
    write_fleet(chance, tmp_path)

    def reader():
        reader = SnapshotReader()
        for origin in origins(tmp_path):
            try:
                reader.read(origin, origin.folder)
            except NoText:
                continue
        return reader

    def groups_of(readers):
        found = [one for reader in readers for one in reader.groups()]
        return (Counter((one.group.to_json(), one.place, one.source, one.position) for one in found),
                Counter(reject for reader in readers for reject in reader.account.rejects),
                sum(reader.account.used for reader in readers), sum(reader.account.rows for reader in readers))
    whole = groups_of([reader()])
    for buckets in (1, 3):
        parts = [pickle.loads(pickle.dumps(part)) for *_, part in reader().divide(buckets)]
        extended = [SnapshotReader() for _ in parts]
        for one, part in zip(extended, parts):
            one.extend(part)
        assert groups_of(extended) == whole


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
    rows = [row for row in in_stages(files_of(tmp_path)) if row["group"]]
    assert {(row["group"], row["time"] or None): (row["source"], row["position"]) for row in rows} == expected


def test_groups_without_a_name_stay_different(tmp_path):
    """Documents are called after their lines, tables by one word; a group with such a name is one of them."""
    lines = [{"topics": {"t": i}, "members": []} for i in range(3)] + [{"name": "group", "topics": {}, "members": []}]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, lines)))
    sources = [str(tmp_path / "a.json"), table(OFFSETS[1:], ["t", 0, 1, 2, 1, "c", "/h", "c"])]
    rows = [row for row in in_stages(files_of(sources, cluster=""), cluster="") if row["group"] is not None]
    path = tmp_path / "a.json"
    assert sorted((row["group"], row["moment"]) for row in rows) == [
        (f"{path}:1", None), (f"{path}:2", None), (f"{path}:3", None), ("group", 1), ("group", 2)]


# --- files that are no text ----------------------------------------------------------------------------------------

def test_a_file_that_cannot_be_read_is_one_reject(tmp_path):
    """Named or not: a reject of the file itself, and no other count knows of it. The others are read."""
    (tmp_path / "good.txt").write_text(table(OFFSETS, ["g", "t", 0, 1, 2, 1, "c", "/h", "c"]))
    (tmp_path / "binary.txt").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "fleet.parquet").write_bytes(b"PAR1 and more")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.txt").symlink_to("nowhere")
    files = files_of(tmp_path).to_pylist()
    files += [{"path": path, "cluster": "", "named": True, "content": None}
              for path in ("hdfs://nowhere/x.txt", str(tmp_path / "binary.txt"))]
    table_of = pa.Table.from_pylist([file | {"file": i} for i, file in enumerate(files)], FILES_SCHEMA)
    groups, rejects, ignored, counts = account_of(in_stages(table_of))
    kinds = Counter((Path(source).name, position, reason) for source, position, reason in rejects.elements())
    gone, pipe = map(NO_TEXT["unreadable"].format, ("No such file or directory", "no regular file"))
    assert kinds == {("binary.txt", 0, NO_TEXT["binary"]): 2, ("pipe.txt", 0, pipe): 1,
                     ("fleet.parquet", 0, NO_TEXT["parquet"]): 1, ("x.txt", 0, gone): 1, ("link.txt", 0, gone): 1}
    assert len(groups) == 1 and counts == {"read": 1, "used": 1, "repeated": 0}
    assert {kind for _, _, kind, *_ in ignored} == {"header"}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_file_that_the_worker_does_not_see_ends_the_job(tmp_path, prefix, named):
    """The driver listed it, so the folder is not shared; rejects of all files would hide that."""
    files = pa.Table.from_pylist([{"file": 0, "path": f"{prefix}{tmp_path}/gone.txt", "named": named}], FILES_SCHEMA)
    with pytest.raises(FileNotFoundError, match="gone.txt"):
        in_stages(files)


def test_a_group_that_is_no_row_is_a_reject():
    """A rack that UTF-8 cannot encode comes from JSON; the other groups of its bucket become rows."""
    documents = [{"name": name, "topics": {"t": 1}, "members": [], "partition_racks": {"t": [[rack]]}}
                 for name, rack in (("a", "r"), ("odd", "\ud800"), ("b", "r"))]
    content = "\n".join(map(json.dumps, documents)).encode()
    files = pa.Table.from_pylist([{"file": 0, "path": "x.json", "content": content}], FILES_SCHEMA)
    groups, rejects, *_ = account_of(in_stages(files))
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
        found = [Origin(one, os.path.dirname(one), one) for one in paths]
        clusters = clusters_of(found, None)
        files = pa.Table.from_pylist([{"file": 0, "path": path, "named": True,
                                       "cluster": clusters[os.path.dirname(path)]}], FILES_SCHEMA)
        [row] = [row for row in in_stages(files) if row["group"]]
        assert (row["cluster"], row["time"] or "", row["source"]) == (cluster, time, path)
    [group] = read_groups(place / "x.txt").values()
    assert (group.cluster, group.time) == (cluster, time)


# --- Spark ---------------------------------------------------------------------------------------------------------

@pytest.mark.needs("spark", "java")
def test_spark_changes_nothing(spark, store, tmp_path, monkeypatch):
    """Files by path, relative path and address, and text that only the driver has, in any number of partitions."""
    write_fleet(random.Random(8), tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    files = files_of([tmp_path, tmp_path.name, output_of(random.Random(1), ["a", "b", "c"])]).to_pylist()
    for name in ("g [1],{2}*.2026-11-20.txt", "b.txt"):
        (store / name).write_text(output_of(random.Random(2), ["a", "b", "c"]))
        files.append({"path": f"viewfs:/store/{name}", "cluster": "far", "named": True, "content": None})
    table_of = pa.Table.from_pylist([file | {"file": i} for i, file in enumerate(files)], FILES_SCHEMA)
    local = [file | {"file": i, "content": (store / Path(file["path"]).name).read_bytes()}
             if "viewfs:" in file["path"] else
             file | {"file": i} for i, file in enumerate(files)]
    expected = account_of(in_stages(pa.Table.from_pylist(local, FILES_SCHEMA)))
    for partitions in (1, 5):
        found = text_frame(spark, table_of, partitions).toArrow().to_pylist()
        assert account_of(found) == expected
    other = table_of.slice(0, 1).set_column(1, "path", pa.array(["viewfs:///store/b.txt"]))
    [row] = [row for row in text_frame(spark, other, 2).toArrow().to_pylist() if row["used"] is None]
    assert row["reason"].startswith("must be readable where Spark's workers run (got No such file")
