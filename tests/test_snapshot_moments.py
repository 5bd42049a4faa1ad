"""A group seen several times: moments are told apart, completed, ordered and chosen, and never merged."""
import io
import random
from itertools import permutations

import pytest

from kafka_assign.groups.notes import Note
from kafka_assign.snapshot import SnapshotError, read_groups
from outputs import SAMPLES, table

OFFSETS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
LISTED = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT".split()
STATES = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]


def describe(member="web-1", committed=5, group="shop"):
    """What `--describe` prints of a group with one member and two partitions."""
    return table(OFFSETS, *([group, "t", p, committed, 9, 9 - committed, member, "/h", "web"] for p in range(2)))


def members(member="web-1", group="shop"):
    """What `--members --verbose` prints of the same group."""
    return table(LISTED, [group, member, "/h", "web", 2, "t(0,1)"])


def state(name="Stable", group="shop", count=1):
    """What `--state` prints of the same group."""
    return table(STATES, [group, "h:9092 (1)", "range", name, count])


def folder_of(path, files):
    """A folder with these files."""
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    return path


def seen(source, **options):
    """For each moment its time, members and state, from the earliest on; nothing is rejected."""
    groups = read_groups(source, at="all", **options)
    assert groups.rejects == [] and groups.read == groups.used
    assert groups.moments == dict.fromkeys(groups, len(groups))
    return [(group.time, *group.members, group.state) for group in groups.values()]


DAYS = [("2026-11-20", "web-1", ""), ("2026-11-21", "web-2", "")]


@pytest.mark.parametrize("files", [
    {"shop.2026-11-20.txt": describe("web-1"), "shop.2026-11-21.txt": describe("web-2")},
    {"20261120-describe.txt": describe("web-1"), "20261121-describe.txt": describe("web-2")},
    {"all.2026-11-20": describe("web-1"), "shop.2026-11-20": describe("web-1"), "2026-11-21": describe("web-2")},
])
def test_two_days_in_one_folder_with_a_changed_member_id(tmp_path, files):
    """Merged, the two days were a group that had never existed, with two members and one of them idle."""
    folder = folder_of(tmp_path / "prod", files)
    assert seen(folder) == DAYS
    groups = read_groups(folder)
    assert list(groups) == ["shop"] and groups.moments == {"shop": 2}
    assert (groups["shop"].time, groups["shop"].members) == ("2026-11-21", ("web-2",))


def test_each_day_is_complete(tmp_path):
    files = {}
    for day, member in ("2026-11-20", "web-1"), ("2026-11-21", "web-2"):
        files |= {f"shop.{day}.describe.txt": describe(member), f"shop.{day}.members-verbose.txt": members(member),
                  f"state-shop-{day}.txt": state(), f"shop.{day}.state.txt": state()}
    folder = folder_of(tmp_path, files)
    assert seen(folder) == [("2026-11-20", "web-1", "Stable"), ("2026-11-21", "web-2", "Stable")]
    assert [len(m.owned) for group in read_groups(folder, at="all").values() for m in group.details] == [2, 2]


def test_folders_of_days(tmp_path):
    for day, member in ("2026-11-20", "web-1"), ("2026-11-21", "web-2"):
        folder_of(tmp_path / day, {"describe.txt": describe(member), "all.members.txt": members(member)})
    assert seen(tmp_path, cluster="prod") == DAYS
    groups = read_groups(tmp_path)
    assert (groups.moments, groups["shop"].time, groups["shop"].cluster) == ({"shop": 2}, "2026-11-21", tmp_path.name)


def test_several_groups_a_day(tmp_path):
    folder = folder_of(tmp_path, {
        f"all-groups.{day}.txt": describe(f"{day}-a", group="a") + describe(f"{day}-b", group="b")
        for day in ("2026-11-20", "2026-11-21")} | {"c.txt": describe("c", group="c")})
    groups = read_groups(folder, at="all")
    assert list(groups) == ["a@2026-11-20", "a@2026-11-21", "b@2026-11-20", "b@2026-11-21", "c"]
    assert list(groups.moments.values()) == [2, 2, 2, 2, 1]
    assert read_groups(folder).moments == {"a": 2, "b": 2, "c": 1}


@pytest.mark.parametrize("text, expected", [
    (describe("web-1") + describe("web-2"), [("web-1", ""), ("web-2", "")]),
    (describe("web-1") + members("web-1") + describe("web-2") + members("web-2"), [("web-1", ""), ("web-2", "")]),
    (members("web-1") + describe("web-1") + members("web-2") + describe("web-2"), [("web-1", ""), ("web-2", "")]),
    (describe(committed=5) + members() + describe(committed=7) + members(), [("web-1", ""), ("web-1", "")]),
    (describe() + describe(committed=7) + state(), [("web-1", ""), ("web-1", "Stable")]),
    (describe() + describe() + describe(), [("web-1", "")]),
    (describe("web-1") + describe("web-2") + describe("web-1"), [("web-1", ""), ("web-2", ""), ("web-1", "")]),
    (describe() + members() + members() + state(), [("web-1", "Stable")]),
    (describe() + state() + members(), [("web-1", "Stable")]),
])
def test_the_scroll_of_a_terminal(text, expected):
    assert [moment[1:] for moment in seen(text)] == expected
    assert read_groups(text)["shop"].members[-1] == expected[-1][0]


def test_a_watch_log_of_several_commands(tmp_path):
    """One file for each command, each of which ran three times."""
    times = [("web-1", "Stable", 3), ("web-2", "Stable", 4), ("web-2", "Stable", 5)]
    folder = folder_of(tmp_path, {
        "describe.log": "".join(describe(member, committed) for member, _, committed in times),
        "members.log": "".join(members(member) for member, *_ in times),
        "state.log": "".join(state(name) for _, name, _ in times)})
    assert [moment[1:] for moment in seen(folder)] == [(member, name) for member, name, _ in times]


@pytest.mark.parametrize("files, expected", [
    ({"describe.txt": describe(), "members.txt": members(), "state.txt": state()}, [["offsets", "members", "state"]]),
    ({"a.txt": describe(), "b.txt": members(), "c.txt": state()}, [["offsets", "members", "state"]]),
    ({"a.txt": describe(), "b.txt": describe(committed=7), "c.txt": members()},
     [["offsets"], ["offsets"], ["members"]]),
    ({"a.txt": describe() + state(), "b.txt": members()}, [["offsets", "members", "state"]]),
    ({"before.describe.txt": describe(), "before.members.txt": members(), "after.describe.txt": describe("web-2"),
      "after.members.txt": members("web-2")}, [["offsets", "members"], ["offsets", "members"]]),
    ({"all.describe.txt": describe(), "all.members.txt": members(), "shop.describe.txt": describe(committed=7),
      "shop.members.txt": members()}, [["offsets", "members"], ["offsets", "members"]]),
    ({"shop.describe.txt": describe(), "shop.members.txt": members(), "shop.offsets.txt": describe(committed=7)},
     [["offsets", "members"], ["offsets"]]),
    ({"a/x.txt": describe(), "b/x.txt": members()}, [["offsets"], ["members"]]),
    ({"a/x.txt": describe(), "b/x.txt": describe()}, [["offsets"], ["offsets"]]),
])
def test_a_moment_is_a_place_and_a_time(tmp_path, files, expected):
    """Which outputs belong together follows from folder and name; what they say only keeps them apart."""
    groups = read_groups(folder_of(tmp_path, files), cluster="prod", at="all")
    assert groups.rejects == [] and groups.moments == dict.fromkeys(groups, len(expected))
    found = [[kind for kind, there in (
        ("offsets", group.offsets), ("members", "idle-members-not-shown" not in {note.kind for note in group.notes}),
        ("state", group.state)) if there] for group in groups.values()]
    assert found == expected


@pytest.mark.parametrize("name", ["copy of shop.txt", "shop (1).txt", "shop.describe.txt"])
def test_a_copy_counts_once(tmp_path, name):
    groups = read_groups(folder_of(tmp_path, {"shop.txt": describe() + state(), name: describe()}))
    assert (groups.moments, groups.read, groups.used, groups.repeated) == ({"shop": 1}, 3, 3, 2)
    groups = read_groups([tmp_path / "shop.txt"] * 2)
    assert (groups.moments, groups.read, groups.used, groups.repeated) == ({"shop": 1}, 3, 3, 3)


def test_texts_follow_each_other():
    """Texts have no place, so they are read as if they were one."""
    assert [moment[1:] for moment in seen([describe(), state(), describe("web-2"), state("Empty")])] == [
        ("web-1", "Stable"), ("web-2", "Empty")]


def test_equal_rows_count_once():
    groups = read_groups(describe() + members() + describe())
    assert (groups.read, groups.used, groups.repeated, groups.moments) == (3, 3, 2, {"shop": 1})


def test_the_order_of_file_names(tmp_path):
    files = {f"shop.{number}.txt": describe(f"web-{number}") for number in (2, 9, 10)}
    folder = folder_of(tmp_path, files)
    assert [moment[1] for moment in seen(folder)] == ["web-2", "web-9", "web-10"]
    groups = read_groups(folder, at="all")
    assert list(groups) == ["shop#1", "shop#2", "shop#3"]
    for paths in permutations(folder.iterdir()):
        assert read_groups(paths)["shop"].members == ("web-10",)


@pytest.mark.parametrize("name, time", [
    ("shop.2026-11-20.txt", "2026-11-20"), ("20261120T0630Z-shop.txt", "2026-11-20T06:30:00Z"),
    ("shop-1795156200.txt", "2026-11-20T06:30:00Z"), ("shop.2026-11-20_06-30-15.log", "2026-11-20T06:30:15"),
    ("shop-2026-13-45.txt", ""), ("shop-12345678.txt", ""), ("shop.txt", "")])
def test_the_time_in_the_name_of_a_file(tmp_path, name, time):
    path = folder_of(tmp_path / "a", {name: describe()}) / name
    assert read_groups(path)["shop"].time == time
    assert read_groups(path, time="2026-01-01")["shop"].time == "2026-01-01"
    assert read_groups(io.StringIO(describe()))["shop"].time == ""


def test_the_time_of_a_document_is_its_own(tmp_path):
    group = read_groups(describe())["shop"]
    folder = folder_of(tmp_path, {"2026-11-20.json": group.to_json(),
                                  "2026-11-22.json": group.replace(time="2026-11-21").to_json()})
    assert [moment[0] for moment in seen(folder)] == ["2026-11-20", "2026-11-21"]


def test_tables_before_2_3_are_named_without_the_time(tmp_path):
    old = "\n".join(line.removeprefix("GROUP").removeprefix("shop ") for line in describe().splitlines())
    folder = folder_of(tmp_path, {f"shop.{day}.describe.txt": old for day in ("2026-11-20", "2026-11-21")})
    assert [moment[0] for moment in seen(folder)] == ["2026-11-20", "2026-11-21"]
    assert list(read_groups(folder)) == ["shop"]


def test_the_moment_that_was_asked_for(tmp_path):
    folder = folder_of(tmp_path, {f"{time}.txt": describe(f"web-{time[6:8]}") for time in (
        "20261120T0630Z", "20261121T0630Z", "20261122")} | {"other.txt": describe(group="other")})
    for at, member in (("2026-11-20", "web-20"), ("2026-11-21T06:29:59Z", "web-20"), ("2026-11-21T06:30:00Z", "web-21"),
                       ("2026-11-21T08:00+02:00", "web-20"), ("2027-01-01", "web-22"), ("latest", "web-22")):
        groups = read_groups(folder, at=at)
        assert groups["shop"].members == (member,) and groups.moments["shop"] == 3
        assert ("other" in groups) == (at == "latest")               # its time is unknown
    with pytest.raises(SnapshotError, match="a moment must not be after 2026-11-19 .the first is of 2026-11-20T06:30"):
        read_groups(folder, at="2026-11-19")
    with pytest.raises(SnapshotError, match="at must be latest, all, or a time in ISO 8601 .got noon."):
        read_groups(folder, at="noon")


def test_outputs_that_are_not_the_only_ones_stay_apart(tmp_path):
    """A state without a time is of one of two days, but of which?"""
    folder = folder_of(tmp_path, {"2026-11-20.txt": describe("web-1"), "2026-11-21.txt": describe("web-2"),
                                  "state.txt": state()})
    groups = read_groups(folder, at="all")
    assert [group.state for group in groups.values()] == ["", ""]
    assert all(Note("outputs-apart", None, ("--state",)) in group.notes for group in groups.values())
    assert [reject.reason[:41] for reject in groups.rejects] == ["a state must come with the members it cou"]
    assert groups.read == groups.used + groups.rejected == 5


@pytest.mark.parametrize("undated, expected", [
    ({"m.txt": members("web-2")}, [("2026-11-20", 0), ("2026-11-21", 2)]),
    ({"m.txt": members("web-1"), "s.txt": state()}, [("2026-11-20", 2), ("2026-11-21", 0)]),
    ({"shop.members.txt": members("web-2"), "shop.state.txt": state()}, [("2026-11-20", 0), ("2026-11-21", 2)]),
    ({"m.txt": members("web-3")}, [("", 2), ("2026-11-20", 0), ("2026-11-21", 0)]),           # of neither day
    ({"m.txt": members("web-1") + members("web-2")}, [("2026-11-20", 2), ("2026-11-21", 2)])])
def test_an_output_without_a_time_belongs_to_the_moment_whose_members_it_shows(tmp_path, undated, expected):
    """Each moment is shown by its time, and the partitions that the output of --members names in it."""
    folder = folder_of(tmp_path, {"2026-11-20.txt": describe("web-1"), "2026-11-21.txt": describe("web-2")} | undated)
    groups = read_groups(folder, at="all")
    seen = [(group.time, 2 * ("idle-members-not-shown" not in {note.kind for note in group.notes}))
            for group in groups.values()]
    assert seen == expected
    if "" not in dict(expected):
        assert not any(note.kind == "outputs-apart" and "--members" in note.subjects and known
                       for group, (_, known) in zip(groups.values(), expected) for note in group.notes)


def test_an_output_without_a_time_that_fits_two_moments_joins_neither(tmp_path):
    folder = folder_of(tmp_path, {"2026-11-20.txt": describe(committed=5), "2026-11-21.txt": describe(committed=7),
                                  "m.txt": members()})
    groups = read_groups(folder, at="all")
    assert [group.time for group in groups.values()] == ["", "2026-11-20", "2026-11-21"]
    assert all(any(note.kind == "outputs-apart" for note in group.notes) for group in groups.values())


def test_an_output_that_two_moments_share_joins_nothing(tmp_path):
    """Equal rows of one kind say nothing about the other kinds: the files stay apart, and notes say so."""
    folder = folder_of(tmp_path, {"a.txt": describe() + state("Stable"), "b.txt": describe() + state("Dead", count=2),
                                  "c.txt": members()})
    groups = read_groups(folder, at="all")
    assert [group.state for group in groups.values()] == ["Stable", "Dead", ""] and groups.rejects == []
    apart = [[note.subjects for note in group.notes if note.kind == "outputs-apart"] for group in groups.values()]
    assert apart == [[("--members",)], [("--members",)], [("--describe", "--state")]]
    groups = read_groups(folder_of(tmp_path / "one", {"a.txt": describe() + state(), "c.txt": members()}))
    assert "outputs-apart" not in {note.kind for note in groups["shop"].notes}


def test_one_output_that_contradicts_itself():
    """A second row for a partition with other offsets of the same member, or without a member, is a reject."""
    for owner, other in ("web-1", "web-1"), ("web-1", "-"), ("-", "web-1"):
        rows = [["shop", "t", 0, 5, end, end - 5, member, *(["-", "-"] if member == "-" else ["/h", "web"])]
                for end, member in ((9, owner), (8, other))]
        groups = read_groups(table(OFFSETS, *rows))
        assert groups["shop"].members == () if owner == "-" else ("web-1",) and groups.moments == {"shop": 1}
        assert groups["shop"].lag.tolist() == [4]
        assert [reject.reason for reject in groups.rejects] == [
            "partition t-0 must have one state (line 3 says otherwise)"]


def test_offsets_and_members_that_contradict_each_other(tmp_path):
    """They are the only ones of their kind; the members that `--members` shows count, and no phantom is left."""
    folder = folder_of(tmp_path, {"describe.txt": describe("web-1"), "members.txt": members("web-2")})
    groups = read_groups(folder)
    assert groups["shop"].members == ("web-2",) and groups["shop"].previous.tolist() == [0, 0]
    assert groups.rejected == 2 and groups.read == groups.used + groups.rejected == 3


def test_a_folder_read_in_any_order(tmp_path):
    files = {f"{day}.{what}.txt": text for day in ("2026-11-20", "2026-11-21")
             for what, text in (("describe", describe(day)), ("members", members(day)), ("state", state()))}
    paths, chance = list(folder_of(tmp_path, files).iterdir()), random.Random(7)
    expected = {key: group.to_json() for key, group in read_groups(sorted(paths), at="all").items()}
    assert len(expected) == 2
    for _ in range(10):
        chance.shuffle(paths)
        assert {key: g.to_json() for key, g in read_groups(paths, at="all").items()} == expected


def test_the_captures_are_one_moment_each():
    groups = read_groups(SAMPLES)
    assert set(groups.moments.values()) == {1}


# --- notices name the state of a group ----------------------------------------------------------------------------

REBALANCING = "\nWarning: Consumer group 'shop' is rebalancing.\n"
EMPTY = "\nConsumer group 'shop' has no active members.\n"


@pytest.mark.parametrize("text, expected", [
    (REBALANCING + describe(), ["rebalancing"]), (describe() + REBALANCING, ["rebalancing"]),
    (EMPTY + describe("-"), ["Empty"]), (REBALANCING + describe() + REBALANCING + members(), ["rebalancing"]),
    (REBALANCING + describe() + state("Stable"), ["Stable"]), (describe() + REBALANCING.replace("shop", "web"), [""]),
    (describe("a") + REBALANCING + describe("b") + describe("c"), ["", "rebalancing", ""]),
])
def test_a_notice_names_the_state_of_the_moment_that_follows_it(text, expected):
    groups = read_groups(text, at="all")
    assert [group.state for group in groups.values()] == expected
    assert "notice" in {entry.kind for entry in groups.ignored} and groups.rejects == []
    assert {group.type for group in groups.values()} == {""}            # the notice is the same in both protocols


def test_standard_error_in_a_file_of_its_own(tmp_path):
    folder = folder_of(tmp_path, {"orders.describe.txt": describe(), "orders.describe.err.txt": REBALANCING})
    [group] = read_groups(folder).values()
    assert group.state == "rebalancing"
    days = {f"shop.2026-11-2{day}.txt": describe(f"web-{day}") for day in (0, 1)}
    folder = folder_of(tmp_path / "days", days | {"shop.2026-11-21.err": REBALANCING})
    assert [group.state for group in read_groups(folder, at="all").values()] == ["", "rebalancing"]
    hours = {f"{name}.txt": describe(f"web-{name}") for name in "ab"}
    folder = folder_of(tmp_path / "hours", hours | {"b.err.txt": REBALANCING})
    assert [group.state for group in read_groups(folder, at="all").values()] == ["", "rebalancing"]
    folder = folder_of(tmp_path / "unclear", hours | {"x.err.txt": REBALANCING})
    assert [group.state for group in read_groups(folder, at="all").values()] == ["", ""]


@pytest.mark.parametrize("before, said", [("", True), (EMPTY, False), (REBALANCING, True)])
def test_a_group_without_members_of_an_unknown_state_says_so(before, said):
    [group] = read_groups(before + describe("-")).values()
    assert (Note("members-not-shown") in group.notes) is said


# --- partitions that are not in the input ---------------------------------------------------------------------------

def test_partitions_that_are_not_in_the_input_are_counted():
    rows = [["shop", "t", p, 5, 9, 4, "web-1", "/h", "web"] for p in range(12)]
    words = "{} not in the input, inferred from the highest number seen"
    [group] = read_groups(table(OFFSETS, rows[0], rows[11])).values()
    assert words.format("10 partitions") in group.inferred.split("; ") and group.topic_counts == {"t": 12}
    damaged = table(OFFSETS, *rows).replace("t     3 ", "t     x ")
    groups = read_groups(damaged)
    assert len(groups.rejects) == 1 and words.format("1 partition") in groups["shop"].inferred.split("; ")
    [group] = read_groups(table(OFFSETS, *rows)).values()
    assert "not in the input" not in group.inferred

def test_a_folder_named_after_a_day_is_no_cluster(tmp_path, monkeypatch):
    day = tmp_path / "prod" / "2026-11-19"
    day.mkdir(parents=True)
    (day / "wide.describe.txt").write_text((SAMPLES / "kafka-4.3.1" / "wide.describe.txt").read_text())
    for folder, source in ((day, "."), (day, day), (day.parent, "."), (day.parent, "2026-11-19")):
        monkeypatch.chdir(folder)
        [group] = read_groups(str(source)).values()
        assert (group.cluster, group.time) == ("prod", "2026-11-19")
