"""Fields once: a group survives its row and its JSON, format 1 is read on, and a new field is one line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from groups import groups
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import Group, GroupError, Member
from kafka_assign.assignors.conformance import random_groups
from kafka_assign.fleet.codec import decode_rows, group_from_row, output_rows, row_from_group
from kafka_assign.fleet.inputs import find_inputs
from kafka_assign.fleet.schemas import GROUP_SCHEMA
from kafka_assign.fleet.text import parquet_rows
from kafka_assign.groups.fields import About
from kafka_assign.groups.notes import Note, instant

ROOT = Path(__file__).resolve().parent.parent
TEXT = st.sampled_from(["", "a", "x y", "\u202e", "\U0001F600"])
NUMBER = st.integers(0, 2**31 - 1)


@st.composite
def full_groups(draw):
    """Groups with anything that a field can hold."""
    group = draw(st.one_of(groups(), st.builds(lambda seed: next(iter(random_groups(seed, 1))), st.integers(0, 99))))
    odd_claims = st.lists(st.tuples(st.sampled_from([*group.topics, "gone"]), st.integers(0, 40)), max_size=4)
    members = [Member(**(vars(group.details[at]) | draw(st.fixed_dictionaries({}, optional={
        "instance_id": TEXT, "client_id": TEXT, "host": TEXT, "rack": TEXT, "version": NUMBER, "counted": NUMBER,
        "generation": st.integers(-2**31, 2**31 - 1), "user_data": st.binary(max_size=3), "owned": odd_claims}))))
        for at in group.listed]
    about = draw(st.fixed_dictionaries({}, optional={
        "name": TEXT, "cluster": TEXT, "state": TEXT, "strategy": TEXT, "type": st.sampled_from(["share", "Classic"]),
        "time": st.sampled_from(["2026-11-20", "2026-11-20T06:30:00.5+02:00"]), "generation": st.integers(-1, 9),
        "moment": st.integers(0, 3),
        "notes": st.lists(st.builds(Note, TEXT.filter(bool), st.none() | NUMBER, st.tuples(TEXT)), max_size=2)}))
    counts = {topic: count for topic, count in group.topic_counts.items() if count}
    column = st.fixed_dictionaries({}, optional={
        topic: st.lists(st.integers(-1, 2**40), min_size=count, max_size=count) for topic, count in counts.items()})
    if draw(st.booleans()):
        about |= {"lag": None, "begin": draw(column), "end": draw(column), "committed": draw(column),
                  "reset": draw(st.sampled_from(["latest", "earliest", "NONE"]))}
    racks = st.lists(st.lists(TEXT.filter(bool), max_size=2), min_size=1)
    about["partition_racks"] = {topic: (draw(racks) * count)[:count] for topic, count in counts.items()
                                if draw(st.booleans())}
    about["topic_ids"] = {topic: "A" * 22 for topic in counts if draw(st.booleans())}
    return group.replace(members=members, **about)


def in_format_1(group):
    """The group in format 1, by its definition."""
    document = {name: getattr(group, name) for name in (
        "name", "type", "state", "strategy", "generation", "time", "cluster", "moment", "topic_ids")}
    document |= {"format": 1, "topics": group.topic_counts, "topic_ids": dict(group.topic_ids)}
    document["partition_racks"] = {topic: [*map(list, rows)] for topic, rows in group.partition_racks.items()}
    document["notes"] = [vars(note) for note in group.notes]
    document["members"] = [
        {name: value for name, value in vars(group.details[at]).items() if value is not None}
        | {"owned": [*map(list, group.details[at].owned)]} for at in group.listed]

    def by_topic(column):
        return {topic: column[group.index[topic] and group.columns.start[group.index[topic]]:][:count].tolist()
                for topic, count in group.topic_counts.items() if count}
    if group.offsets is not None:
        parts = {name: by_topic(getattr(group.offsets, name)) for name in ("begin", "end", "committed")}
        document |= {"reset": group.offsets.reset, "offsets": {
            topic: {name: part[topic] for name, part in parts.items()} for topic in parts["end"]}}
    elif group.lag is not None:
        document["lag"] = by_topic(group.lag)
    return json.dumps(document, default=bytes.hex)


@given(st.lists(full_groups(), min_size=1, max_size=3))
def test_a_group_survives_row_json_and_batch(fleet):
    rows = [row_from_group(group, "fleet", at) for at, group in enumerate(fleet, 1)]
    batch, rejects = decode_rows(pa.RecordBatch.from_pylist(rows, GROUP_SCHEMA))
    assert not rejects
    for at, (group, row) in enumerate(zip(fleet, rows)):
        assert group_from_row(row) == Group.from_json(group.to_json()) == batch.group(at) == group


@given(full_groups())
def test_format_1_is_read_on(group):
    assert Group.from_json(in_format_1(group)) == group


@given(st.lists(full_groups(), min_size=1, max_size=3))
def test_the_table_of_groups_is_input_again(fleet):
    """It has the lag of each partition, null where it is unknown, and null for all else that is unknown."""
    rows = [row_from_group(group.replace(name=f"g{at}"), "fleet", at) for at, group in enumerate(fleet, 1)]
    batch, _ = decode_rows(pa.RecordBatch.from_pylist(rows, GROUP_SCHEMA))
    for group, row in zip(fleet, output_rows(batch.rows).to_pylist()):
        lag = [number for topic in sorted(row["topics"], key=lambda one: group.index[one["topic"]])
               for number in topic["lag"] or [None] * topic["partitions"]]
        expected = [] if group.lag is None else group.lag.tolist()
        assert lag == [None if number < 0 else number for number in expected] or group.lag is None and not any(lag)
        assert row["time"] == (instant(group.time) if group.time else None)
        for name in ("cluster", "state", "strategy", "generation", "moment"):
            assert row[name] == {getattr(About(), name): None}.get(getattr(group, name), getattr(group, name))
        assert "" not in [member[name] for member in row["members"] for name in ("instance_id", "host", "rack")]
        again = group_from_row(row | {"time": group.time})
        assert again.members == group.members and (again.lag is None or again.lag.tolist() == expected)


@pytest.mark.parametrize("flaw, words", [
    ({"members": [{"id": "a", "owned": [{"topic": "t", "partitions": 3}]}]},
     "members[0].owned[0].partitions must be a list (got 3)"),
    ({"members": [{"id": "a", "owned": [{"topc": "t"}]}]},
     "a key of members[0].owned[0] must be one of topic, partitions (got 'topc'); did you mean 'topic'?"),
    ({"members": [{"id": "a", "user_data": "xyz"}]}, "members[0].user_data must be bytes in hex (got 'xyz')"),
    ({"members": [{"topics": []}]}, "members[0].id must be text (got None)"),
    ({"members": [{"id": "a", "version": -2}]}, "version of member a must be a whole number of 32 bits, 0 or more"),
    ({"topics": [{"topic": "t", "partitions": -1}]}, "partitions of topic t must be a number from 0 on (got -1)"),
    ({"topics": [{"topic": "t", "partitions": 2, "end": [1]}]}, "end of t must have an entry for each of 2 partitions"),
    ({"topics": [{"topic": "t", "partitions": 2, "lag": 5}]}, "topics[0].lag must be a list (got 5)"),
    ({"notes": [{"count": 1}]}, "notes must be Notes, each with a kind"),
    ({"reset": "newest"}, "reset must be latest, earliest or none"),
    ({"name": "g"}, "a key of a group must be one of cluster, group_id,")])
def test_what_is_wrong_with_a_row_is_said(flaw, words):
    with pytest.raises(GroupError) as error:
        Group.from_json({"format": 2, "members": [], "topics": []} | flaw)
    assert words in str(error.value) and str(error.value).isprintable()


@pytest.mark.parametrize("names", [("group", "TIME"), ("Group", "time"), ("group_id", "time")])
def test_parquet_may_call_a_group_by_its_former_name(tmp_path, names):
    table = pa.Table.from_pylist([row_from_group(Group({"t": 1}, {"a": ["t"]}, name="g"))], GROUP_SCHEMA)
    called = dict(zip(("group_id", "time"), names))
    table = table.rename_columns([called.get(name, name) for name in table.column_names])
    pq.write_table(table, tmp_path / "a.parquet")
    found = find_inputs([tmp_path])
    assert [file.name for file in found.parquet] == [names[0].lower()] and not found.rejects
    [rows] = parquet_rows("a.parquet", tmp_path / "a.parquet")
    assert rows["group_id"].to_pylist() == ["g"] and rows["source"].to_pylist() == ["a.parquet"]


NEW = '    rack_of_birth: Annotated[str | None, "rack in which it was born"] = None\n'
PROGRAM = '''
import json, sys
import pyarrow as pa
from kafka_assign import Group, Member
from kafka_assign.fleet.codec import decode_rows, output_rows, row_from_group
from kafka_assign.fleet.schemas import COMPARE_TABLES, GROUP_SCHEMA, spark_schema
members = [Member("a", ["t"], rack_of_birth="r9"), Member("b", ["t"])]
group = Group({"t": 2}, members, name="g")
row = row_from_group(group)
assert [member.get("rack_of_birth") for member in row["members"]] == ["r9", None]
again = Group.from_json(group.to_json())
assert again == group and again.details[0].rack_of_birth == "r9" and '"rack_of_birth": "r9"' in group.to_json()
assert again.leave("b").details[0].rack_of_birth == "r9"
batch, rejects = decode_rows(pa.RecordBatch.from_pylist([row], GROUP_SCHEMA))
assert not rejects and batch.group(0) == group
assert [member["rack_of_birth"] for member in output_rows(batch.rows).to_pylist()[0]["members"]] == ["r9", None]
for schema in GROUP_SCHEMA, COMPARE_TABLES["groups"]:
    assert schema.field("members").type.value_type.field("rack_of_birth").type == pa.string()
    assert "rack_of_birth" in spark_schema(schema)["members"].dataType.elementType.names
for wrong in (5, "\\ud800"):
    try:
        Member("a", ["t"], rack_of_birth=wrong)
    except ValueError as error:
        assert "rack_of_birth of member a must be text" in str(error)
    else:
        raise SystemExit("no error")
sys.path.insert(0, sys.argv[1])
import entries
assert "rack in which it was born" in entries.Entry("Member").markdown()
cells = ["".join(cell["source"]) for cell in json.load(open(sys.argv[1] + "/formats.ipynb"))["cells"]]
names = {}
for cell in cells:
    if cell.startswith(("#| echo: false\\nfrom entries", "import json")) or "key or column" in cell:
        exec(cell.replace("\\nMarkdown(", "\\nshown = Markdown("), names)
assert "members.rack_of_birth" in names["shown"].data.replace("&#46;", ".").replace("<wbr>", "")
'''


def test_a_new_field_of_a_member_is_one_line(tmp_path):
    """It is in the row, in JSON there and back, in the Arrow and Spark schemas, and in the tables of the reference."""
    shutil.copytree(ROOT / "kafka_assign", tmp_path / "kafka_assign", ignore=shutil.ignore_patterns("__pycache__"))
    fields = tmp_path / "kafka_assign" / "groups" / "fields.py"
    source = fields.read_text(encoding="utf-8")
    last = next(line for line in source.splitlines(keepends=True) if line.startswith("    version: Annotated"))
    fields.write_text(source.replace(last, last + NEW), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(ROOT / "nbs" / "reference")], cwd=tmp_path,
                          env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert not done.returncode, done.stderr
