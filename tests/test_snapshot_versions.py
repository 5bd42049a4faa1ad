"""Output of every version of the tool as people post it: alone, mixed, and between other lines."""
import pytest

from kafka_assign.groups.notes import Note
from kafka_assign.snapshot import SnapshotError, read_groups
from outputs import POSTED

V0_9 = (POSTED / "0.9-describe.txt").read_text(encoding="utf-8")
V0_10 = (POSTED / "0.10-describe.txt").read_text(encoding="utf-8")
V0_10_2 = (POSTED / "0.10.2-describe.txt").read_text(encoding="utf-8")
SNUBA = (POSTED / "2.3-describe.txt").read_text(encoding="utf-8")
IDLE = (POSTED / "0.11-describe-idle.txt").read_text(encoding="utf-8")
EPOCHS = (POSTED / "4.0-members-verbose.txt").read_text(encoding="utf-8")
VERBOSE = (POSTED / "1.1-members-verbose.txt").read_text(encoding="utf-8")
STATE_1_1 = (POSTED / "1.1-state.txt").read_text(encoding="utf-8")
SHARE = (POSTED / "share-groups.txt").read_text(encoding="utf-8")


def one(source, **about):
    """The only group in a source, of which nothing is rejected, and the accounts of its reading."""
    groups = read_groups(source, **about)
    (name, group), = groups.items()
    assert groups.rejects == [] and groups.read == groups.used
    return name, group, groups


def owned(group):
    """What each member owns."""
    return {member.id: [tuple(place) for place in member.owned] for member in group.details}


def test_0_9():
    name, group, _ = one(V0_9)
    assert name == "billing" and group.members == ("web_/10.0.0.1",)
    assert (group.details[0].client_id, group.details[0].host) == ("web", "/10.0.0.1")
    assert owned(group) == {"web_/10.0.0.1": [("orders", 0), ("orders", 1)]}
    assert group.offsets.committed.tolist() == [3004, -1, 7] and group.lag.tolist() == [8, 0, 0]
    assert Note("member-ids-not-shown") in group.notes


def test_0_10():
    name, group, _ = one(V0_10)
    assert name == "billing" and group.topics == ("a-topic-of-more-than-thirty-characters", "orders")
    assert owned(group) == {"etl_/10.0.0.2": [("orders", 1)], "web 1_/10.0.0.1": [("orders", 0)]}
    assert group.offsets.committed.tolist() == [7, 3004, -1]


def test_0_10_2_consumer_and_host_glued():
    _, group, groups = one(V0_10_2, group="billing")
    first, second = group.details
    assert (first.id, first.host) == ("consumer-1-of-the-service-billing-30840f59a", "/11.111.111.111")
    assert (second.id, second.host) == ("consumer-2-1cbaa664-e076-47a0-854f-7279d79a4204", "/10.42.2.77")
    assert group.offsets.committed.tolist() == [3004, -1]
    assert [entry.kind for entry in groups.ignored] == ["notice", "header"]


def test_2_3_and_later():
    name, group, _ = one(SNUBA)
    assert name == "snuba-consumers" and group.lag.tolist() == [8, 20345, 20042]
    assert sorted(map(len, owned(group).values())) == [1, 1, 1]


def test_an_idle_member_among_the_offsets():
    _, group, _ = one(IDLE)
    assert group.members == ("consumer-1-1cbaa664-e076-47a0-854f-7279d79a4204",
                             "consumer-4-b91ee930-3ec6-46b9-a430-24d0f1c4c25a")
    assert [len(member.owned) for member in group.details] == [1, 0]
    assert [member.topics for member in group.details] == [("storage-events",)] * 2


def test_epochs_tell_who_assigns():
    name, group, _ = one(EPOCHS)
    assert (name, group.type) == ("l07.billing-v2", "consumer")
    assert owned(group) == {"jmtoqpKjSdadNCMcaW3GxA": [("l07.cdr.voice", number) for number in (3, 4, 5)]}


def test_members_before_2_3():
    _, group, _ = one(VERBOSE)
    assert owned(group) == {"consumer1-3fc8d6f1-581a-4472-bdf3-3515b4aee8c1": [("topic1", 0), ("topic2", 0)],
                            "consumer3-ecea43e4-1f01-479f-8349-f9130b75d8ee": []}


# Whose table is it?

@pytest.mark.parametrize("file, name", [
    ("storage.txt", "storage"), ("storage.describe.txt", "storage"), ("a.b-members.log", "a.b"),
    ("storage", "storage")])
def test_the_file_names_the_group(tmp_path, file, name):
    (tmp_path / file).write_text(IDLE, encoding="utf-8")
    for source in tmp_path, tmp_path / file:
        key, group, _ = one(source)
        assert (key, group.name) == (name, name) and Note("name-guessed", None, ("of the file",)) in group.notes


@pytest.mark.parametrize("line", [
    "$ bin/kafka-consumer-groups.sh --bootstrap-server b:9092 --describe --group storage",
    "[me@host ~]$ kafka-consumer-groups --group=storage --describe", "Consumer group 'storage' has no active members.",
    "> kafka-consumer-groups.bat --describe --group 'storage'"])
def test_a_command_or_notice_names_the_group(tmp_path, line):
    (tmp_path / "notes.txt").write_text(f"{line}\n\n{IDLE}", encoding="utf-8")
    key, group, _ = one(tmp_path / "notes.txt")
    assert (key, group.name) == ("storage", "storage")
    assert "name: of the command or notice above the table" in group.inferred


def test_the_caller_names_the_group(tmp_path):
    (tmp_path / "notes.txt").write_text(IDLE, encoding="utf-8")
    key, group, _ = one(tmp_path / "notes.txt", group="storage")
    assert key == group.name == "storage" and "name" not in group.inferred


def test_a_group_without_a_name():
    key, group, _ = one(IDLE)
    assert (key, group.name) == ("group", "") and "name" not in group.inferred


def test_commands_one_after_the_other():
    text = "".join(f"$ kafka-consumer-groups.sh --describe --group {name}\n\n{IDLE}\n" for name in "ab")
    groups = read_groups(text)
    assert list(groups) == ["a", "b"] and groups.used == 4 and groups.rejects == []


def test_tables_of_one_group_complete_each_other(tmp_path):
    offsets = IDLE.replace("storage-events", "topic1        ").replace(
        "consumer-1-1cbaa664-e076-47a0-854f-7279d79a4204   ", "consumer1-3fc8d6f1-581a-4472-bdf3-3515b4aee8c1   ")
    offsets = "\n".join(line for line in offsets.splitlines() if "consumer-4" not in line)
    offsets = offsets.replace("/10.42.2.77                    consumer-1", "/127.0.0.1                     consumer1")
    for what, text in ("describe", offsets), ("members", VERBOSE), ("state", STATE_1_1):
        (tmp_path / f"web.{what}.txt").write_text(text, encoding="utf-8")
    name, group, groups = one(tmp_path)
    assert (name, group.strategy, group.state, len(group.members), groups.used) == ("web", "range", "Stable", 2, 4)


# All at once

def test_all_versions_in_one_text():
    """Prompts, notices, tables of all versions one after the other; each group is as it is alone."""
    texts = {"billing": V0_9, "snuba-consumers": SNUBA, "l07.billing-v2": EPOCHS, "storage": IDLE, "night": VERBOSE}
    alone = {name: one(text, group=name)[1] for name, text in texts.items()}
    mixed = "".join(f"[me@host ~]$ kafka-consumer-groups.sh --describe --group {name}\nSLF4J: no logger\n{text}"
                    f"Warning: no topic of {name} is new.\n" for name, text in texts.items()) + SHARE
    groups = read_groups(mixed)
    assert groups.keys() == alone.keys() and groups.rejects == []
    for name, group in groups.items():
        notes = [note for note in group.notes if note.kind != "name-guessed"]
        assert group.replace(notes=notes).to_json() == alone[name].to_json()
    assert {entry.kind for entry in groups.ignored} == {"prompt", "log", "notice", "header", "share"}


@pytest.mark.parametrize("text", [V0_9, V0_10, V0_10_2, SNUBA, IDLE, EPOCHS, VERBOSE])
def test_cut_anywhere_loses_its_own_row_only(text):
    """A row that is cut anywhere is accounted for, and all other rows are used."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if "PARTITION" in line) + 1
    rows = len(lines) - at
    for length in range(1, len(lines[at])):
        cut = "\n".join([*lines[:at], lines[at][:length], *lines[at + 1:]])
        try:
            groups = read_groups(cut, group="g")
        except SnapshotError:
            assert rows == 1
            continue
        assert groups.read == groups.used + groups.rejected == rows and groups.rejected <= 1


def test_share_groups_alone():
    with pytest.raises(SnapshotError, match="share groups have no assignment of partitions to members"):
        read_groups(SHARE)
