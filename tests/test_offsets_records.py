"""Records of `__consumer_offsets` as bytes: written by kafka-python's encoder from the schemas in Kafka's jars, by
members that make up their bytes, and cut off. Each says what its line in a dump says, or is a reject."""
import gzip
import json
import re
import uuid
import zipfile
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st
from test_cli import one_line, run
from test_history import FOUND, LOGS

from kafka_assign import read_history
from kafka_assign.clients import records
from kafka_assign.life.offsets_records import dump_lines
from kafka_assign.life.offsets_topic import OffsetsReader
from kafka_assign.protocol.wire import Assigned, Subscription, encode_assignment, encode_subscription

NAMES = {2: "GroupMetadata", 3: "ConsumerGroupMetadata", 4: "ConsumerGroupPartitionMetadata",
         5: "ConsumerGroupMemberMetadata", 6: "ConsumerGroupTargetAssignmentMetadata",
         7: "ConsumerGroupTargetAssignmentMember", 8: "ConsumerGroupCurrentMemberAssignment"}
schemas = pytest.mark.needs("broker")               # which is where Kafka's jars are


class Record(NamedTuple):
    """A record as kafka-python returns it, in part."""
    key: bytes | None
    value: bytes | None
    offset: int = 0
    partition: int = 0
    timestamp: int = 1664531116553


# --- an encoder that shares nothing with the decoder -----------------------------------------------------------------

@cache
def schema(name):
    """A schema in Kafka's jars, with the structs that it shares in their places."""
    from jars import jars_folder
    from kafka.protocol.schemas.load_json import _resolve_common_structs
    [jar] = jars_folder().glob("kafka-group-coordinator-[0-9]*.jar")
    with zipfile.ZipFile(jar) as file:
        found = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read(f"common/message/{name}.json").decode()))
    _resolve_common_structs(found["fields"], {one["name"]: one["fields"] for one in found.get("commonStructs", [])})
    return found


def snaked(value):
    """A value with the names of its fields in the form of kafka-python."""
    if isinstance(value, list):
        return [snaked(one) for one in value]
    if isinstance(value, dict):
        return {re.sub("(?<!^)(?=[A-Z])", "_", name).lower(): snaked(one) for name, one in value.items()}
    return value


def encoded(name, value, version, first=None):
    """The bytes of a value by its schema in Kafka's jars, after two bytes: `first`, or the version."""
    from kafka.protocol.schemas import StructField
    flexible = schema(name)["flexibleVersions"] != "none" and version >= int(schema(name)["flexibleVersions"][:-1])
    data = StructField(schema(name)).encode(snaked(value), version=version, compact=flexible, tagged=flexible)
    return (version if first is None else first).to_bytes(2, "big") + data


def record(kind, key, value, version=0):
    names = [name[0].lower() + name[1:] for name in (one["name"] for one in schema(f"{NAMES[kind]}Key")["fields"])]
    return Record(encoded(f"{NAMES[kind]}Key", dict(zip(names, key)), 0, kind),
                  None if value is None else encoded(f"{NAMES[kind]}Value", value, version))


def values(fields, version):
    """Values of a struct with these fields, by name."""
    return st.fixed_dictionaries({one["name"][0].lower() + one["name"][1:]: value_of(one, version) for one in fields
                                  if version >= int(one["versions"].split("+")[0])})


def value_of(field, version):
    kind, many = field["type"].removeprefix("[]"), field["type"].startswith("[]")
    if "fields" in field:
        made = values(field["fields"], version)
    elif kind.startswith("int"):
        made = st.integers(-(1 << int(kind[3:]) - 1), (1 << int(kind[3:]) - 1) - 1)
    else:
        made = {"string": st.text(max_size=300), "bytes": st.none(), "uuid": st.uuids()}[kind]
    made = st.lists(made, max_size=3) if many else made
    return st.none() | made if "nullableVersions" in field else made


NUMBERS = st.integers(0, 2**31 - 1)
PAIRS = st.lists(st.tuples(st.sampled_from(["a", "b-c"]), NUMBERS), unique=True, max_size=4)


def by_topic(pairs):
    found = {}
    for topic, number in pairs:
        found.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in found.items()]


@st.composite
def members(draw, value):
    """A value of type 2 whose members sent something; and it as the tool prints it."""
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    sent, printed = [], []
    for one in value["members"]:
        topics, owned, given, data, rack, number = (draw(some) for some in (
            st.lists(st.text("abc", min_size=1)), PAIRS, PAIRS, st.none() | st.binary(max_size=9),
            st.none() | st.text("r", min_size=1), NUMBERS))
        subscription = ConsumerProtocolSubscription(
            topics=topics, user_data=data, owned_partitions=snaked(by_topic(owned)), generation_id=number, rack_id=rack)
        assignment = ConsumerProtocolAssignment(assigned_partitions=snaked(by_topic(given)), user_data=data)
        sent.append(one | {"subscription": subscription.encode(version=3), "assignment": assignment.encode(version=3)})
        printed.append(one | {
            "subscription": {"topics": topics, "userData": data, "ownedPartitions": by_topic(owned),
                             "generationId": number, "rackId": rack},
            "assignment": {"assignedPartitions": by_topic(given), "userData": data}})
    return value | {"members": sent}, value | {"members": printed}


def as_printed(value, tagged):
    """A value as the tool prints it: ids and bytes as text, without tagged fields."""
    if isinstance(value, dict):
        return {name: as_printed(one, tagged) for name, one in value.items() if name not in tagged}
    if isinstance(value, list):
        return [as_printed(one, tagged) for one in value]
    return urlsafe_b64encode(value.bytes).decode()[:22] if isinstance(value, uuid.UUID) else value


def unpacked(line):
    """Key and value of a line; the bytes in it as bytes."""
    def to_bytes(value):
        if isinstance(value, dict):
            return {name: b64decode(one) if name == "userData" and one is not None else to_bytes(one)
                    for name, one in value.items()}
        return [to_bytes(one) for one in value] if isinstance(value, list) else value
    key, payload = re.search(r" key: (\{.*?\}\}) payload: (.*)$", line, re.S).groups()
    return json.loads(key), to_bytes(json.loads(payload))


@schemas
@pytest.mark.parametrize("kind, version", [*((2, version) for version in range(5)), (3, 0), (5, 0), (6, 0), (7, 0)])
@given(data=st.data())
def test_records_of_kafkas_schemas_are_decoded(kind, version, data):
    made = data.draw(values(schema(f"{NAMES[kind]}Value")["fields"], version))
    printed = made
    if kind == 2:
        made, printed = data.draw(members(made | {"protocolType": "consumer"}))
    key = data.draw(st.lists(st.text(max_size=40), min_size=2, max_size=2))[:2 if kind in (5, 7) else 1]
    rejects = []
    [line] = dump_lines([record(kind, key, made, version)], rejects.append)
    found, payload = unpacked(line)
    assert not rejects and line.isascii() and (found["type"], [*found["data"].values()]) == (str(kind), key)
    tagged = {"metadataHash", "assignmentTimestamp", "assignmentEpochs", "classicMemberMetadata"}
    assert payload == {"version": str(version), "data": as_printed(printed, tagged)}


@schemas
@pytest.mark.parametrize("capture", FOUND)
def test_records_say_as_bytes_what_their_lines_say(capture):
    """All records of a capture are written as bytes again. Cut off anywhere, they are rejects."""
    as_lines, as_bytes, read = OffsetsReader(), OffsetsReader(), 0
    with gzip.open(LOGS / capture / "truth/offsets-topic.dump.gz", "rt") as file:
        lines = [line for line in file if re.search(r' key: \{"type":"[235678]"', line)]
    for line in lines:
        key, payload, time = *re.search(r" key: (\{.*?\}\}) payload: (.*)$", line).groups(), re.search(
            r"CreateTime: (\d+)", line)[1]
        kind, key = int(json.loads(key)["type"]), [*json.loads(key)["data"].values()]
        value = None if payload == "<DELETE>" else json.loads(payload)["data"]
        if value and kind == 2 and value["protocolType"] not in ("consumer", ""):
            continue
        made = record(kind, key, to_send(value, kind), 3 if kind == 2 else 0)._replace(timestamp=int(time))
        rejects = []
        [again, *_] = dump_lines([made], rejects.append)
        said = as_bytes.line(again)
        assert said == as_lines.line(line) and not rejects
        read += len(said)
        for end in range(0, len(made.value or b""), 7):
            assert not [*dump_lines([made._replace(value=made.value[:end])], rejects.append)]
        assert len(rejects) == len(range(0, len(made.value or b""), 7))
    assert read > 20


def to_send(value, kind):
    """A value of a dump with bytes and ids in place of what the tool decodes."""
    if isinstance(value, list):
        return [to_send(one, kind) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: to_send(one, kind) for name, one in value.items()}
    if "topicId" in made:
        made["topicId"] = uuid.UUID(bytes=urlsafe_b64decode(made["topicId"] + "=="))
    if "subscription" in made:
        sent, given = value["subscription"], value["assignment"]
        owned, assigned = ([(one["topic"], number) for one in some for number in one["partitions"]]
                           for some in (sent.get("ownedPartitions") or (), given["assignedPartitions"]))
        made |= {"subscription": encode_subscription(Subscription(sent["topics"], owned=owned)),
                 "assignment": encode_assignment(Assigned(assigned))}
    return made


# --- bytes that anybody may write ------------------------------------------------------------------------------------

def text(value):
    return len(value.encode()).to_bytes(2, "big") + value.encode()


def blob(data):
    return len(data).to_bytes(4, "big") + data


def generation(group, number, sent, given=encode_assignment(Assigned([("a", 0)])), kind="consumer"):
    """A record of type 2 whose only member sent these bytes and was given those."""
    member = b"".join([text("M-1"), b"\xff\xff", text("web"), text("/h"), bytes(8), blob(sent), blob(given)])
    return Record(b"\0\2" + text(group), b"".join([
        b"\0\3", text(kind), number.to_bytes(4, "big"), text("range"), text("M-1"), bytes(8), b"\0\0\0\1", member]))


SENT = encode_subscription(Subscription(["a"]))
GOOD = generation("good", 7, SENT)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=60), st.sampled_from(range(-1, 12)))
def test_bytes_that_nobody_understands_cost_no_other_record(key, value, kind):
    key = kind.to_bytes(2, "big") + key if kind >= 0 else key
    rejects = []
    lines = [*dump_lines([GOOD, Record(key, value), Record(None, value), GOOD], rejects.append)]
    assert [OffsetsReader().line(one) for one in (lines[0], lines[-1])] == [OffsetsReader().line(lines[0])] * 2
    assert len(rejects) >= 1 and all(one.isprintable() and one.startswith("__consumer_offsets-0,") for one in rejects)


@given(st.data())
def test_a_record_that_is_changed_anywhere_is_a_line_or_a_reject(data):
    value = bytearray(GOOD.value)
    for place in data.draw(st.lists(st.integers(0, len(value) - 1), max_size=4)):
        value[place] = data.draw(st.sampled_from([0, 1, 127, 128, 255]))
    value = bytes(value[:data.draw(st.integers(0, len(value)))])
    rejects = []
    lines = [*dump_lines([GOOD._replace(value=value)], rejects.append)]
    assert len(lines) <= 1
    for line in lines:
        assert line.isascii() and OffsetsReader().line(line) is not None


@pytest.mark.parametrize("length", [b"\xff" * 9, b"\xff\xff\xff\xff\x0f", b"\x80" * 100_000])
def test_a_length_that_cannot_be_is_a_reject(length):
    rejects = []
    assert not [*dump_lines([Record(b"\0\5" + text("g") + text("m"), b"\0\0" + length)], rejects.append)]
    assert len(rejects) == 1


def test_groups_of_other_programs_say_nothing():
    assert not [*dump_lines([generation("sink", 1, b"\xff", kind="connect")], pytest.fail)]


def test_what_one_member_sent_is_unknown_and_the_rest_is_not():
    rejects = []
    [line] = dump_lines([generation("g", 7, b"\xff" * 40)], rejects.append)
    [one] = read_history(line + "\n")["g"].generations
    assert one.assigned == {"M-1": (("a", 0),)} and one.members["M-1"].topics is None and "topics" in one.missing
    assert rejects == ["__consumer_offsets-0, offset 0: what member 'M-1' sent: the version of a subscription must be "
                       "0 or more (got -1)"]


@pytest.mark.parametrize("old, new", [
    ('"group":"g"', '"group":5'), ('"group":"g"', '"group":null'), ('"group":"g"', '"group":"\\ud800"'),
    ('"generation":7', '"generation":"7"'), ('"memberId":"M-1"', '"memberId":null'),
    ('"clientId":"web"', '"clientId":[]'), ('"protocol":"range"', '"protocol":5'), ('"topics":["a"]', '"topics":[1]'),
    ('"partitions":[0]', '"partitions":[-1]'), ('"partitions":[0]', '"partitions":"x"')])
def test_a_value_that_kafka_does_not_write_costs_no_other_record(old, new):
    """A leader may send any partition; a dump may be edited."""
    line, good = dump_lines([generation("g", 7, SENT), GOOD], pytest.fail)
    assert [*read_history(f"{line}\n{good}\n")] == ["g", "good"]
    assert [*read_history(f"{line.replace(old, new)}\n{good}\n")] == ["good"] and old in line


def test_claims_that_cannot_be_decoded_are_unknown():
    rejects = []
    [line] = dump_lines([generation("g", 7, SENT[:-3])], rejects.append)
    assert unpacked(line)[1]["data"]["members"][0]["subscription"]["ownedPartitions"] is None and len(rejects) == 1


def new(kind, key, value):
    return Record(kind.to_bytes(2, "big") + b"".join(map(text, key)), value and b"\0\0" + value)


def compact(value):
    return bytes([len(value.encode()) + 1]) + value.encode()


ID = bytes(range(16))


def new_group(regex="", names=("a",)):
    """A group of the new protocol: its only member, its epoch and its target assignment."""
    member = b"".join([b"\0\0", compact("web"), compact("/h"), bytes([len(names) + 1]), *map(compact, names),
                       compact(regex), bytes(4), b"\0\0"])
    target = b"\2" + ID + b"\3" + bytes(4) + (1).to_bytes(4, "big") + b"\0\0"
    return [new(5, ["g", "M"], member), new(3, ["g"], b"\0\0\0\2\0"), new(7, ["g", "M"], target),
            new(6, ["g"], b"\0\0\0\2\0")]


@pytest.mark.parametrize("topics, before", [({ID: "a"}, []), ({}, [
    new(4, ["g"], b"\2" + ID + compact("a") + bytes(3) + b"\2\1\0\0")])])
def test_ids_of_topics_get_their_names(topics, before):
    """From the cluster or, until Kafka 4.0, from a record of the group, which also names deleted topics."""
    lines = [*dump_lines([*before, *new_group()], pytest.fail, topics)]
    [one] = read_history("\n".join(lines))["g"].generations
    assert one.assigned == {"M": (("a", 0), ("a", 1))} and one.whole and "topics" not in one.missing


def test_topics_without_a_name_and_regular_expressions_are_unknown():
    [one] = read_history("\n".join(dump_lines(new_group(), pytest.fail)))["g"].generations
    assert one.assignment is None and "topics" in one.missing
    lines = dump_lines(new_group("a.*", ()), pytest.fail, {ID: "a"})
    [one] = read_history("\n".join(lines))["g"].generations
    assert one.members["M"].topics is None and "topics" in one.missing and one.whole


def test_a_group_named_like_a_message_says_nothing_else():
    """Records that say nothing of use, such as deletions and current assignments, are no messages either."""
    name = "Stabilized group x generation 5 with 2 members"
    current = new(8, [name, "M"], (2).to_bytes(4, "big") + bytes(4) + b"\0\1\1\0")
    deleted = [new(kind, [name, "M"], None) for kind in (5, 7, 8)]
    lines = [*dump_lines([current, *deleted, generation("g", 1, SENT)], pytest.fail)]
    assert len(lines) == 5 and [*read_history("\n".join(lines))] == ["g"]


def test_names_reach_a_terminal_as_escapes():
    lines = [*dump_lines([generation("g\x1b[2J\x7f\u202e", 1, SENT)], pytest.fail)]
    assert all(one.isprintable() and one.isascii() for one in lines)
    assert [*read_history("\n".join([*lines, ""]))] == ["g\x1b[2J\x7f\u202e"]


# --- a topic, as a consumer that answers as asked has it --------------------------------------------------------------

class Topic:
    """A cluster with the offsets topic, and the only consumer of it; `parts`: the records of each partition."""
    error, begin, stuck = 0, 0, False

    def __init__(self, monkeypatch, *parts):
        self.parts, self.closed, self.sought = parts, False, []
        monkeypatch.setattr(records, "ask_cluster", lambda config, timeout, ask: ask(self))
        monkeypatch.setattr("kafka.KafkaConsumer", lambda **config: self)

    def describe_topics(self, names=None):
        about = [{"name": "__consumer_offsets", "error_code": self.error, "partitions": self.parts}]
        return about if names else [*about, {"name": "a", "topic_id": str(uuid.UUID(bytes=ID)), "error_code": 0}]

    def end_offsets(self, places, most):
        return {place: max([0, *(one.offset + 1 for one in self.parts[place.partition])]) for place in places}

    def beginning_offsets(self, places, most):
        return dict.fromkeys(places, self.begin)

    def offsets_for_times(self, asked, most):
        found = {place: next((one for one in self.parts[place.partition] if one.timestamp >= time), None)
                 for place, time in asked.items()}
        return {place: one and SimpleNamespace(offset=one.offset) for place, one in found.items()}

    def assign(self, places):
        [self.place] = places

    def seek(self, place, offset):
        self.at = offset
        self.sought.append((place.partition, offset))

    def poll(self, milliseconds, most):
        """The next two records, and one that was written meanwhile."""
        if self.stuck:
            return {}
        found = [one for one in self.parts[self.place.partition] if one.offset >= self.at][:2]
        self.at = found[-1].offset + 1
        late = generation("late", 9, SENT)._replace(offset=self.at)
        return {self.place: [*found, late] if found[-1] is self.parts[self.place.partition][-1] else found}

    def position(self, place):
        return self.at

    def close(self):
        self.closed = True


def placed(made, partition=0, begin=0):
    return [one._replace(partition=partition, offset=begin + at, timestamp=1000 * at) for at, one in enumerate(made)]


CAPTURE = "capture --history --bootstrap-server k:1"


def test_all_partitions_are_read_to_the_end_that_they_had(monkeypatch):
    commit = Record(b"\0\1" + text("g"), b"")
    topic = Topic(monkeypatch, placed([commit, generation("b", 1, SENT), commit]), [], placed(new_group(), 2))
    done = run(CAPTURE)
    assert done.code == 0 and not done.err and topic.closed and topic.sought == [(0, 0), (1, 0), (2, 0)]
    found = read_history(done.out)
    assert [*found] == ["b", "g"] and found["g"].generations[0].assigned == {"M": (("a", 0), ("a", 1))}
    assert run(f"{CAPTURE} --since 1970-01-01").out == done.out                     # a day begins with its first moment


def test_only_the_partitions_of_named_groups_are_read(monkeypatch):
    """Hash codes: -2070039661; 2112; and the least integer, whose absolute value is 0 in Kafka."""
    names = "orders-billing", "Aa", "polygenelubricants"
    topic = Topic(monkeypatch, placed([generation(names[2], 1, SENT)]), placed([generation(names[0], 1, SENT)], 1),
                  placed([generation(names[1], 1, SENT), generation("other", 1, SENT)], 2), [], [])
    assert [*read_history(run(f"{CAPTURE} -g {' -g '.join(names)}").out)] == sorted(names)
    assert topic.sought == [(0, 0), (1, 0), (2, 0)]


@pytest.mark.parametrize("begin, whole", [(0, False), (2, True)])
def test_assignments_of_the_new_protocol_need_all_that_was_stored_before(monkeypatch, begin, whole):
    """Without the records before T, another member may be missing, and be one that has partitions."""
    made = placed([generation("b", 1, SENT), GOOD, *new_group()])[begin:]
    topic = Topic(monkeypatch, made)
    topic.begin = begin
    done = run(f"{CAPTURE} --since 1970-01-01T00:00:02Z")
    [one] = read_history(done.out)["g"].generations
    assert topic.sought == [(0, 2)] and one.whole == whole and ("assignment" in one.missing) != whole
    assert [*read_history(done.out)] == ["g"]


def test_no_topic_no_right_and_no_answer_are_a_line_each(monkeypatch, tmp_path):
    topic = Topic(monkeypatch)
    topic.error = 3
    wrong = [(run(CAPTURE), "there is no topic __consumer_offsets: no group has used this cluster yet")]
    topic.error = 29
    wrong.append((run(CAPTURE), "it must have the rights Read and Describe on that topic"))
    topic.error, topic.parts, topic.stuck = 0, [placed([GOOD])], True
    wrong.append((run(f"{CAPTURE} --timeout 0.1 -o {tmp_path}/file"), "no record of __consumer_offsets-0 within 0.1 s"))
    topic.parts, topic.stuck = [placed([Record(b"\0\1", b"")])], False
    wrong.append((run(f"{CAPTURE} -g g"), "__consumer_offsets holds no generation of 'g' yet"))
    for done, words in wrong:
        assert done.code == 3 and not done.out and one_line(done.err) and f"k:1: {words}" in done.err.replace(
            "this client may not read __consumer_offsets: ", ""), done.err
    assert not [*tmp_path.iterdir()]


def test_what_cannot_be_decoded_is_counted(monkeypatch):
    Topic(monkeypatch, placed([Record(b"\0\2", b"")] * 50 + [GOOD]))
    done = run(CAPTURE)
    assert done.code == 3 and [*read_history(done.out)] == ["good"]
    *first, last = done.err.splitlines()
    assert len(first) == 20 and last == "and 30 more records that cannot be decoded"


@pytest.mark.parametrize("options, words", [
    ("--since 2026-11-20", "--since: it must come with --history"), ("--for 2h", "--for: it must come with --every"),
    ("--every 30s", "--every: it must come with --output"), ("--every 30 -o x", "as in 45s (got '30')"),
    ("--every 1s -o x", "it must be 2s or more (got '1s')"),
    ("--history --reset none", "--reset: it must come without --history"),
    ("--history --every 30s -o x", "--every: it must come without --history"),
    ("--history -o x.csv", "a file must end in .log or .txt (got 'x.csv')"), ("--history --since x", "ISO 8601")])
def test_options_that_do_not_go_together(options, words):
    done = run(f"capture --bootstrap-server k:1 {options}")
    assert done.code == 2 and words in done.err and one_line(done.err) and not done.out
