"""Histories of snapshots: captures of real groups every few seconds, made from the assignments that their coordinators
stored, show what was so at those moments, and nothing of what happened in between."""
import gzip
import io
import json
from datetime import datetime, timezone
from math import ceil

import pytest

from kafka_assign import Group, Member, read_history, replay
from kafka_assign.groups.notes import Note
from kafka_assign.life.costs import history_row, needless_moves, recorded_row
from kafka_assign.life.rebalance import NOT_KNOWN
from outputs import table
from test_history import FOUND, captures, command, flat, generations, history, paths, trace

SEEN = {  # by capture and seconds between snapshots: states, and rebalances that were alone between two snapshots
    "range-4.3.1": {1: (14, 12), 5: (14, 11), 30: (4, 0)}, "cooperative-3.9.2": {1: (19, 7), 5: (14, 4), 30: (5, 0)},
    "sticky-slow-static-4.3.1": {1: (15, 14), 5: (14, 12), 30: (6, 0)},
    "sticky-static-4.3.1": {1: (11, 9), 5: (11, 9), 30: (7, 2)},
    "python-4.3.1": {1: (23, 17), 5: (22, 14), 30: (11, 1)}, "consumer-4.3.1": {1: (14, 13), 5: (14, 13), 30: (8, 1)}}


def iso(second):
    return datetime.fromtimestamp(second, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def truth(capture):
    """By group: when each state began, from the topic, and when the rebalance that led to it began, from the broker."""
    return {name: [(one.answered or one.joined or one.start, one.start or one.joined, one) for one in group.generations]
            for name, group in history(capture, "broker and topic").items()}


def moments(capture, every):
    """The seconds at which the groups are captured."""
    ends = [end for states in truth(capture).values() for end, _, _ in states]
    return range(ceil(min(ends)) + 1, ceil(max(ends)) + every + 1, every)


def state(one):
    """Who is a member, and who owns what."""
    return {known.name(id) for id, known in one.members.items()}, one.owners


def at(states, second):
    """The generation of a group that a capture shows, and whether the next one had begun."""
    past = [one for end, _, one in states if end <= second]
    return past and past[-1], any(start <= second < end for end, start, _ in states)


def group_of(name, one, second, rebalancing):
    """What a capture shows of a group; while it rebalances, members are new, and own what they owned before."""
    members = [Member(id, known.topics or (), client_id=known.client, host=f"/{known.host}",
                      instance_id=known.instance or None, owned=one.assigned.get(id, ()))
               for id, known in one.members.items()]
    new = [Member("new-1", ["t"], client_id="new", host="/h")] * rebalancing
    state = "PreparingRebalance" if rebalancing else "Stable" if members else "Empty"
    guess = [Note("subscriptions-unknown", None, ("some members subscribe by a regular expression",))] * any(
        known.topics is None for known in one.members.values())
    return Group(one.counts, members + new, name=name, type="classic", state=state, time=iso(second),
                 strategy=one.protocol, notes=guess)


def captured(capture, every):
    """The groups of each moment, by second."""
    return {second: [group_of(name, one, second, rebalancing) for name, states in truth(capture).items()
                     for one, rebalancing in [at(states, second)] if one] for second in moments(capture, every)}


def as_documents(folder, groups_at, ending=".jsonl"):
    """The files of `capture --every`."""
    folder.mkdir(exist_ok=True)
    for second, groups in groups_at.items():
        text = "".join(group.to_json() + "\n" for group in groups)
        (folder / f"{iso(second).replace(':', '-')}{ending}").write_bytes(
            gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
    return folder


def states(capture, every):
    """The states that snapshots show, by group, each once: when, which members, who owns what."""
    found = {}
    for name, known in truth(capture).items():
        found[name] = []
        for second in moments(capture, every):
            one, rebalancing = at(known, second)
            if one and not rebalancing and (not found[name] or found[name][-1][1:] != state(one)):
                found[name].append((second, *state(one)))
    return found


@pytest.mark.parametrize("every", [1, 5, 30])
@captures
def test_every_state_is_that_of_its_moment(capture, every, tmp_path):
    """No member and no owner is wrong, and a rebalance that is alone between two snapshots is found, if it changed
    anything."""
    found = read_history(as_documents(tmp_path, captured(capture, every)))
    assert {name: [(one.seen, *state(one)) for one in group.generations] for name, group in found.items()} == states(
        capture, every)
    alone = 0
    for name, known in truth(capture).items():
        seen = {one.seen for one in found[name].generations}
        usable = [second for second in moments(capture, every) if at(known, second)[0] and not at(known, second)[1]]
        for former, second in zip(usable, usable[1:]):
            between = [one for end, _, one in known if former < end <= second]
            if len(between) == 1 and state(between[0]) != state(at(known, former)[0]):
                assert second in seen
                alone += 1
    assert (len(generations(found)), alone) == SEEN[capture][every]
    for one in generations(found):
        told, _ = at(truth(capture)[one.group_id], one.seen)
        exact = "topics" not in one.missing
        assert exact == all(known.topics is not None for known in told.members.values())
        assert one.members == {
            id: known if exact else known._replace(topics=None) for id, known in told.members.items()}
        assert (one.protocol, one.whole) == (told.protocol, True)


@captures
def test_what_lies_between_snapshots_is_missing(capture, tmp_path):
    """Neither a number, nor a cause, nor a duration is made up; what is known is a lower bound, or true."""
    found = read_history(as_documents(tmp_path, captured(capture, 5)))
    for name, group in found.items():
        told = history(capture, "broker and topic")[name]
        for one in group.generations:
            assert (one.generation, one.start, one.joined, one.answered, one.causes, one.pauses, one.leader) == (
                -1, None, None, None, [], [], "")
            there, unknown = bool(one.members), any(known.topics is None for known in one.members.values())
            assert one.missing == ["generation", "start", "joined", "answered", "causes", *["leader"] * there,
                                   *["protocol"] * (there and not one.protocol), *["topics"] * unknown, "pauses"]
        row, real = history_row(group, recorded_row(group)), history_row(told, recorded_row(told))
        assert row["moves"] <= real["moves"] and 2 * row["moves"] > real["moves"]
        assert row | {"moves": 0} == {"group_id": name, "rebalances": None, "moves": 0, "paused": None, "longest": None,
                                      "period": None, "causes": "", "clients": ""}
        assert needless_moves(group) is None
        for drawn in group.rebalances:
            assert {*drawn.phases[1].consuming} <= {NOT_KNOWN} and drawn.phases[1].title.startswith("by ")


@captures
def test_logs_tell_more_than_snapshots(capture, tmp_path):
    """Beside logs, dumps and traces, in whatever order, snapshots of the same groups change nothing."""
    snapshots = as_documents(tmp_path / "snapshots", captured(capture, 5))
    for source in ("broker", "both", "topic"):
        assert trace(read_history([snapshots, *paths(capture, source)])) == trace(history(capture, source))
    with (tmp_path / "trace").open("w") as file:
        history(capture, "both").write(file)
    assert trace(read_history(tmp_path)) == trace(history(capture, "both"))


@captures
def test_the_order_and_the_form_of_snapshots_change_nothing(capture, tmp_path):
    """Files in another order, packed, all in one text or stream, or written as traces that overlap."""
    groups_at = captured(capture, 5)
    folder = as_documents(tmp_path / "a", groups_at)
    whole, files = read_history(folder), sorted(folder.iterdir(), reverse=True)
    text = "".join(path.read_text() for path in files)
    for source in (files, as_documents(tmp_path / "b", groups_at, ".jsonl.gz"), text, io.BytesIO(text.encode())):
        assert trace(read_history(source)) == trace(whole)
    halves = [read_history(files[:len(files) // 2 + 3]), read_history(files[len(files) // 2 - 3:])]
    for at, half in enumerate(halves):
        with (tmp_path / f"{at}.jsonl").open("w") as file:
            half.write(file)
    again = read_history([tmp_path / "1.jsonl", tmp_path / "0.jsonl", files[3]])
    assert trace(again) == trace(whole)
    assert sum(log.lines for log in whole.logs) == text.count("\n") == sum(log.groups for log in whole.logs)


def as_text(group, *kinds):
    """What Kafka's tool prints of a group."""
    owner = {pair: one for one in group.details for pair in one.owned}
    columns = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    rows = [[group.name, *pair, 5, 9, 4, *((owner[pair].id, owner[pair].host, owner[pair].client_id)
                                           if pair in owner else "---")]
            for topic, count in group.topic_counts.items() for pair in [(topic, number) for number in range(count)]]
    static = any(one.instance_id for one in group.details)                     # else there is no column for it
    numbers = {one.id: {topic: [str(number) for name, number in sorted(one.owned) if name == topic]
                        for topic, _ in sorted(one.owned)} for one in group.details}
    members = [[group.name, one.id, *[one.instance_id or ""] * static, one.host, one.client_id, len(one.owned),
                ", ".join(f"{topic}({','.join(own)})" for topic, own in numbers[one.id].items()) or "-"]
               for one in group.details]
    notice = f"\nWarning: Consumer group '{group.name}' is rebalancing.\n" if "Prep" in group.state else (
        f"\nConsumer group '{group.name}' has no active members.\n" if not members else "")
    printed = {"describe": notice + table(columns, *rows) * bool(rows), "members": notice + table(
        ["GROUP", "CONSUMER-ID", *["GROUP-INSTANCE-ID"] * static, "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"],
        *members) * bool(members),
        "state": notice + table(["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"], [
            group.name, "h:9092 (1)", group.strategy or "-", group.state, len(members)])}
    return {kind: printed[kind] for kind in kinds or printed}


@pytest.mark.parametrize("kinds", [(), ("describe",), ("members",)], ids=" ".join)
@pytest.mark.parametrize("capture", ["range-4.3.1", "sticky-slow-static-4.3.1"])
def test_text_of_the_tool(capture, kinds, tmp_path):
    """In files for each kind of output; what they do not show is missing, and subscriptions are not guessed."""
    groups_at = captured(capture, 5)
    for second, [group] in groups_at.items():
        for kind, text in as_text(group, *kinds).items():
            (tmp_path / f"{iso(second).replace(':', '-')}.{kind}.txt").write_text(text)
    group, = read_history(tmp_path).values()
    whole = [state for states in states(capture, 5).values() for state in states if state[1] or kinds != ("members",)]
    assert [one.seen for one in group.generations] == [second for second, *_ in whole]
    for one, (second, _, owners) in zip(group.generations, whole):
        [told] = groups_at[second]
        assert one.owners == owners or kinds == ("describe",)             # which shows no instance ids
        assert {pair: id for id, own in one.assigned.items() for pair in own} == {
            pair: each.id for each in told.details for pair in each.owned}
        assert one.members.keys() <= {*told.members} and ("members" in one.missing) == (
            kinds == ("describe",) and bool(told.members))
        known = {each.id: tuple(sorted(each.topics)) for each in told.details}
        assert all(each.topics in (None, known[id]) for id, each in one.members.items())
        static = {each.id: each.instance_id or "" for each in told.details}
        dynamic = None if kinds == ("describe",) else ""                 # a member's id begins with its client's
        assert all(each.instance == (static[id] or dynamic) for id, each in one.members.items())


def test_a_history_of_snapshots_under_another_strategy(tmp_path):
    """It steps from snapshot to snapshot. What is unknown of what happened is unknown of what would have: how many
    rebalances, for how long, and what static members would have spared."""
    found = read_history(as_documents(tmp_path, captured("range-4.3.1", 1)))
    result = replay(found, ["range", "cooperative-sticky"], static=45)
    recorded, same, other = result.rows
    assert (recorded.moves, recorded.known) == (same.moves, same.forecast) == (59, 12)
    assert other.moves == 56
    assert {(row.rebalances, row.paused, row.static) for row in result.rows} == {(None, None, None)}
    assert result.notes == ("orders: only snapshots tell of it, so how often it rebalanced, and how long members were "
                            "away, is unknown; moves are those from one snapshot to the next",)


def test_subscriptions_that_are_inferred_are_unknown(tmp_path):
    """Of two members of which one owns nothing, the other may be the only subscriber."""
    members = [Member(id, ["t"], owned=own, client_id="c", host="/h") for id, own in (("a", [("t", 0)]), ("b", []))]
    shown = as_text(Group({"t": 1}, members, name="g", state="Stable", strategy="range"))
    for second in (8, 9):
        (tmp_path / f"2026-11-26T11-08-0{second}Z.txt").write_text("".join(shown.values()))
    found = read_history(tmp_path)
    [one] = found["g"].generations
    assert [known.topics for known in one.members.values()] == [None, None] and "topics" in one.missing
    result = replay(found, ["range"], static=45)
    assert [row[3:6] for row in result.rows] == [(None, 0, None), (None, None, None)]
    assert any("not replayed, because members or their topics are unknown" in note for note in result.notes)


def two(second, *owned, cluster="", state="Stable", ids=("m-1", "n-1"), instances=(None, None), counts=(None, None),
        **about):
    """A capture of a group with two members that own these partitions."""
    members = [Member(id, ["t"], client_id=id[0], host="/h", instance_id=instance, owned=[("t", one) for one in own],
                      counted=count) for id, instance, count, own in zip(ids, instances, counts, owned)]
    return Group({"t": 4}, members, name="g", type="classic", state=state, cluster=cluster, strategy="range",
                 time=f"2026-11-26T11:08:{second:02}Z" if second is not None else "", **about).to_json() + "\n"


def test_what_one_snapshot_does_not_show_is_no_change():
    """A member that owns nothing is not in the output of --describe, and without --verbose no owner is in that of
    --members. Of what does not differ, the snapshot that shows most stays."""
    idle = [Note("idle-members-not-shown")]
    text = two(1, [0, 1, 2, 3], notes=idle) + two(2, [0, 1, 2, 3], []) + two(3, [0, 1, 2, 3], notes=idle)
    [one] = read_history(text)["g"].generations
    assert (one.seen % 60, [*one.members], one.whole) == (2, ["m-1", "n-1"], True)
    found = read_history(text + two(4, [0, 1], [2, 3]))["g"].generations
    assert [one.seen % 60 for one in found] == [2, 4]
    counted = [two(at, [], [], ids=ids, counts=(2, 2)) for at, ids in ((1, ("m-1", "n-1")), (3, ("m-1", "n-2")))]
    [one, last] = read_history("".join([counted[0], two(2, [0, 1], [2, 3]), counted[1]]))["g"].generations
    assert [(one.seen % 60, one.whole), (last.seen % 60, last.whole)] == [(2, True), (3, False)]
    assert "assignment" in last.missing and "members" not in last.missing


PARTS = {  # notes of a snapshot, and what is missing besides
    (): [], ("idle-members-not-shown",): ["members"], ("members-not-counted",): ["members", "assignment"],
    ("members-missing",): ["members", "assignment"], ("owners-missing",): ["assignment"],
    ("partitions-missing",): ["assignment"], ("subscriptions-agree",): ["topics"], ("subscriptions-certain",): []}


@pytest.mark.parametrize("kinds", PARTS, ids=",".join)
def test_what_the_notes_of_a_snapshot_leave_open_is_missing(kinds):
    found = read_history("".join(two(at, [0, 1], [2, at], notes=[Note(kind, 1) for kind in kinds]) for at in (3, 4)))
    [one, *_] = found["g"].generations
    assert [name for name in one.missing if name in ("members", "topics", "assignment")] == PARTS[kinds]
    assert (one.assigned == {}) == ("assignment" in PARTS[kinds])
    assert (recorded_row(found["g"]).moves is None) == ("assignment" in PARTS[kinds])


def test_an_empty_group_owns_nothing_whichever_partitions_are_shown():
    text = two(1, [0, 1], [2, 3]) + two(2, state="Empty", notes=[Note("partitions-missing", 1)])
    [_, one] = read_history(text)["g"].generations
    assert (one.members, one.assigned, one.whole) == ({}, {}, True)


def test_a_partition_with_two_owners_has_none():
    [one] = read_history(two(1, [0, 1], [1, 2]))["g"].generations
    assert "assignment" in one.missing and not one.assigned


def test_a_static_member_that_is_back_under_another_id_changes_nothing():
    for instances, count in ((None, None), 2), (("pod-1", None), 1):
        text = "".join(two(at, [0, 1], [2, 3], ids=(f"m-{at}", "n-1"), instances=instances) for at in (1, 2))
        assert len(read_history(text)["g"].generations) == count


def test_groups_of_several_clusters():
    """A name that is in one cluster only needs no cluster."""
    text = "".join(two(at, [0, 1], [at], cluster=cluster) for at in (2, 3) for cluster in ("x", "y"))
    found = read_history(text)
    assert {name: len(group.generations) for name, group in found.items()} == {"x/g": 2, "y/g": 2}
    assert [*read_history(two(1, [0], [1], cluster="x"))] == ["g"]


def test_snapshots_have_no_zone_to_set():
    with pytest.raises(ValueError, match="a zone must be that of a log that has none"):
        read_history(two(1, [0], [1]), zones={"": "Europe/Rome"})


def test_what_is_no_snapshot_is_refused_as_before(tmp_path):
    """A moment without a time, one in which the group rebalances, JSON and tables of something else, broken JSON."""
    for text in (two(None, [0], [1]), two(1, [0], [1], state="PreparingRebalance"), '{"format": 2}\n',
                 '{"a": 1}\n{"b\n', "TOPIC PARTITION\nt 0\n", "INFO nothing here\n"):
        (tmp_path / "a.txt").write_text(text)
        found = read_history(tmp_path)
        assert not found and not found.logs[0].problem
        code, out, err = command(tmp_path)
        assert (code, out) == (3, "") and "no rebalance of a group here" in err and "snapshots with their times" in err


def test_a_row_that_cannot_be_used_is_named(tmp_path):
    text = two(1, [0, 1], [2, 3]) + two(2, [0], [1])[:90] + "\n" + two(3, [0, 2], [1, 3])
    (tmp_path / "a.jsonl").write_text(text)
    [log] = read_history(tmp_path).logs
    assert log.problem.startswith("line 2: JSON must be whole") and (log.lines, log.groups) == (3, 2)
    code, out, err = command(tmp_path, "-g", "g")
    assert code == 3 and "2 states in snapshots in 2.0 s" in out and f"{tmp_path}/a.jsonl: line 2: JSON must be" in err


@pytest.mark.parametrize("name", ["Stabilized group h generation 3 with 9 members", "g\nGROUP TOPIC", "\x1b[31mred"])
def test_a_group_that_is_named_like_a_message_or_a_table(name):
    lines = [json.dumps(json.loads(two(at, [0, 1], [at])) | {"group_id": name}) + "\n" for at in (2, 3)]
    found = read_history("".join(lines))
    assert [*found] == [name] and len(found[name].generations) == 2


def test_the_command_counts_no_rebalances(tmp_path):
    """Conditions hold only if they must; a table has one line for all snapshots."""
    folder = as_documents(tmp_path / "in", captured("range-4.3.1", 5))
    out = command(folder)[1]
    assert "rebalances" not in out.splitlines()[0]
    assert "no number of rebalances: only snapshots tell of the group" in flat(out)
    code, out, err = command(folder, "-g", "orders", "--static", "45s")
    first, *_ = out.split("\n\n")
    assert (code, err) == (0, "") and first == (
        "orders: 14 states in snapshots in 90.0 s; one or more rebalances led from each to the next")
    assert "19 snapshots 19 19 -" in flat(out) and "of 14 states: number of 14, start of 14" in flat(out)
    assert "by cause" not in out and "45 s" not in out and "not needed" not in out and "assumed" not in out
    [row] = json.loads(command(folder, "--format", "json", "-s", "range")[1])
    assert [row[key] for key in ("rebalances", "moves", "by_cause", "by_member", "needless", "longest")] == [
        None, 59, [], [], None, None]
    assert row["logs"] == [{"log": "19 snapshots", "lines": 19, "messages": 19, "clock": "-"}]
    assert [(one["rebalances"], one["moves"]) for one in row["rows"]] == [(None, 59), (None, 59)]
    assert command(folder, "--format", "csv")[1].splitlines()[1] == "orders,recorded,,,59,,,12,,"
    for condition, code, words in (
            ("moves>58", 1, "moves is 59"), ("moves<59", 0, ""), ("moves>59", 3, "moves is at least 59"),
            ("moves<60", 3, "moves is at least 59"), ("rebalances>1", 3, "rebalances is not known")):
        found = command(folder, "--fail-if", condition)
        assert found[0] == code and words in found[2]
    found = command(folder, "--strict")
    assert found[0] == 3 and "only snapshots tell of it" in found[2]
    later = json.loads(command(folder, "--since", "2026-11-27", "--format", "json", "-s", "range")[1])
    assert [(one["rebalances"], one["moves"], one["paused"]) for row in later for one in (row, *row["rows"])] == [
        (None, 0, None)] * 3


def test_unknown_states_are_drawn_as_unknown(tmp_path):
    """A cooperative member may have lost a partition and got it back between two snapshots."""
    folder = as_documents(tmp_path / "in", captured("cooperative-3.9.2", 5))
    assert command(folder, "-g", "billing", "--timeline", tmp_path / "t.svg")[0] == 0
    assert "by 11:10:" in (tmp_path / "t.svg").read_text()
