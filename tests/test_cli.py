"""The command line as its users meet it: in this process and as a program of its own, in pipes and on a terminal."""
import csv
import io
import json
import os
import re
import shlex
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import NAMESPACE_DNS, uuid5

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from kafka_assign.groups.assignment import SUMMARY_KEYS
from kafka_assign.reports.comparison import compare
from kafka_assign.groups.group import Group
from kafka_assign.groups.members import Member
from kafka_assign.assignors.base import Strategy
from kafka_assign.assignors.registry import assign, usual_strategies
from kafka_assign.cli.app import program as commands
from kafka_assign.cli.ranking import show_run
from kafka_assign.snapshot import SnapshotError, read_groups
from kafka_assign.cli.writing import written_to
from kafka_assign.samples import demo_group
from kafka_assign.ranking.judging import rank
from kafka_assign.ranking.rules import NEEDS

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
MAIN = "from kafka_assign.cli.app import main; main()"

HEADER = "GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID\n"
TWO = HEADER + """\
billing  orders  0          3004            3012            8    web-1-5c76   /10.0.0.1  web-1
billing  orders  1          1796            1935            139  web-1-5c76   /10.0.0.1  web-1
billing  orders  2          10              2910            -    web-1-5c76   /10.0.0.1  web-1
billing  orders  3          7               7               0    etl-3d14     /10.0.0.2  etl
search   clicks  0          52              60              8    index-77aa   /10.0.0.3  index
"""


def run(line, text=None):
    """A command line in this process: its exit code, standard output and standard error."""
    done = CliRunner().invoke(commands, shlex.split(line) if isinstance(line, str) else line, input=text)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr)


def program(line, text="", cwd=None, **variables):
    """The same as a program of its own."""
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    env |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"} | variables
    words = shlex.split(line) if isinstance(line, str) else line
    done = subprocess.run([sys.executable, "-c", MAIN, *words], input=text.encode(), capture_output=True,
                          cwd=cwd, env=env)
    return SimpleNamespace(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


def one_line(text):
    """Whether there is exactly one line, and nothing unprintable in it."""
    return text.endswith("\n") and text[:-1].isprintable() and bool(text.strip())


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


# --- compare -----------------------------------------------------------------------------------------------------

def test_demo_says_what_python_says():
    done = run("compare --demo --format json")
    [group] = json.loads(done.out)
    expected = compare(demo_group())
    assert (done.code, done.err) == (0, "")
    assert group["rows"] == [expected.current.summary(), *expected.rows]
    assert [row["strategy"] for row in group["rows"]] == ["current", *usual_strategies()]
    assert {"group_id", "cluster", "time", "moment", "type", "state", "strategy", "protocol", "generation", "members",
            "topics", "partitions", "lag_known", "inferred", "inferred_notes", "changes", "running", "assumed", "notes",
            "rows", "member_counts", "assigned_by"} == group.keys()
    assert (group["running"], group["notes"]) == ("range", [*expected.notes, expected.price_note])


def test_table_begins_with_facts_and_the_group_as_it_is():
    head, table, _ = run("compare --demo -s fair").out.split("\n\n")
    assert dict(line.split(maxsplit=1) for line in head.splitlines())["strategy"] == "range"
    lines = table.splitlines()
    names = [line.split()[0] for line in lines]
    assert names[names.index("strategy"):] == ["strategy", "current", "range", "fair"]
    assert lines[-2].startswith("range (runs now) ")


def test_columns_appear_only_if_a_row_has_them():
    without_lag = json.dumps({"topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]})
    table = run("compare - -s range --wide", without_lag).out
    assert "lag" not in table.partition("\n\n")[2] and "withheld" not in table and "unassigned" in table
    assert "unassigned" not in run("compare --demo -s range").out
    assert "total" in run("compare - -s range --group billing --wide", TWO).out


def test_figures_that_answer_the_question_unless_all_are_wanted(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    short, wide = run("compare --demo -s fair").out, run("compare --demo -s fair --wide").out
    assert "spread" not in short and "spread" in wide and all(word in short for word in ("kept", "moved", "paused"))
    assert len(short.split("\n\n")) < len(wide.split("\n\n"))            # the others are continued below


def test_csv_is_one_table_with_every_figure():
    rows = rows_of(run("compare - -s range -s fair --format csv", TWO).out)
    assert list(rows[0]) == ["cluster", "group_id", "time", "moment", *SUMMARY_KEYS]
    assert [(row["group_id"], row["strategy"]) for row in rows] == [
        (group, strategy) for group in ("billing", "search") for strategy in ("current", "range", "fair")]
    assert rows[0]["balanced"] == "false" and rows[0]["in_rack"] == "" and rows[0]["lag_unknown"] == "0"


def test_moves_in_all_forms():
    fair = assign(demo_group(), "fair")
    moved = [(*fair.group.at(at), fair.group.members[fair.group.previous[at]], fair.group.members[fair.owner[at]])
             for at in fair.moved.nonzero()[0].tolist()]
    [group] = json.loads(run("compare --demo -s fair --moves --format json").out)
    assert [tuple(move.values()) for move in group["rows"][2]["moves"]] == moved and not group["rows"][1]["moves"]
    table = run("compare --demo -s fair --moves").out.split("\n\n")[-1].splitlines()
    assert [tuple(line.split()[1:]) for line in table[1:]] == [tuple(map(str, move)) for move in moved]


def test_moves_list_partitions_without_an_owner():
    text = json.dumps({"topics": {"t": 1, "u": 1}, "members": [{"id": "a", "topics": ["t"]}]})
    [group] = json.loads(run("compare - -s range --moves --format json", text).out)
    assert group["rows"][1]["moves"] == [{"topic": "t", "partition": 0, "from": None, "to": "a"}]


def test_proofs_in_all_forms():
    sticky = assign(demo_group(), "sticky")
    level, price = (part.tolist() for part in sticky.certificate[:2])
    text = run("compare --demo -s fair -s sticky --prove").out
    table, _, proof, without = text.split("\n\n")[-4:]
    assert table.splitlines()[-1].startswith("sticky") and without == "Without a proof: range, fair\n"
    assert proof.startswith("sticky: no assignment is flatter, and no equally flat one moves fewer\nBalance: ")
    assert "Moves: of 12 partitions with a valid owner, 2 moved" in proof and sticky.moved.sum() == 2
    checked = "Checked by kafka_assign.groups.certificate, which knows no strategy."
    assert proof.splitlines()[-1] == checked
    [group] = json.loads(run("compare --demo -s fair -s sticky --prove --format json").out)
    assert [row.get("proof") for row in group["rows"]] == [None, None, None, {
        "holds": True, "least_moved": 2, "prefer": ["kept", "racks"],
        "levels": dict(zip(sticky, level)), "prices": dict(zip(sticky, price))}]


def test_no_moves_are_claimed_where_owners_are_unknown():
    members = """\
GROUP  CONSUMER-ID  HOST  CLIENT-ID  #PARTITIONS
web    a-1          /h    a          3
web    b-1          /h    b          1
"""
    document = json.dumps({"name": "web", "topics": {"t": 4}, "members": [
        {"id": f"{name}-1", "topics": ["t"], "counted": count} for name, count in (("a", 3), ("b", 1))]})
    for form in ("table", "json"):
        assert not re.search(r"\bt\b.*\b[ab]-1", run(f"compare - -s range --moves --format {form}", document).out)
    [group] = json.loads(run("compare - -s range --moves --format json", document).out)
    row = group["rows"][1]
    assert [row[key] for key in ("moves", "kept", "moved", "placed", "max_load")] == [None, None, None, None, 2]
    assert group["rows"][0]["max_load"] == 3 and "owners are unknown" in group["notes"][0]
    done = run("compare - -s range --fail-if 'moved>1'", document)
    assert done.code == 3 and "web: moved>1 cannot be judged: moved is not known" in done.err
    done = run("compare - --fail-if 'moved>1' -s range", members)
    assert done.code == 3 and "cannot be judged: topics and owners are unknown" in done.err
    assert re.search(r"(?m)^partitions +4$", done.out) and re.search(r"(?m)^current +1 +3 ", done.out)


def test_every_group_has_its_proof():
    done = run("compare - -s sticky --prove --moves", TWO)
    assert (done.code, done.out.count("\nsticky: no assignment is flatter"), done.out.count("Checked by")) == (0, 2, 2)
    assert "Moves: of 4 partitions with a valid owner, 1 moved" in done.out
    assert "Moves: none; every partition that had a valid owner stays" in done.out


def test_a_certificate_that_does_not_hold(monkeypatch):
    def deal(group):
        return [0] * group.columns.size

    def prove(columns, owner):
        return assign(demo_group(), "sticky").certificate

    deal.strategy = Strategy("boasting", deal, prove=prove)
    monkeypatch.setitem(sys.modules, "someones_strategies", SimpleNamespace(deal=deal))
    group = json.dumps({"topics": {"t": 4}, "members": [{"id": id, "topics": ["t"]} for id in "abcd"]})
    done = run("compare - -s someones_strategies:deal -s sticky --prove", group)
    assert done.code == 3 and one_line(done.err) and "condition 2" in done.err and done.out.count("Checked by") == 1
    assert "does not hold: condition 2: a load must be the level or one less (violated by a)" in unwrapped(done.out)
    [answer] = json.loads(run("compare - -s someones_strategies:deal --prove --format json", group).out)
    assert answer["rows"][1]["proof"]["holds"] is False and "condition 2" in answer["rows"][1]["proof"]["reason"]
    assert run("compare - -s someones_strategies:deal", group).code == 0


def test_a_certificate_that_cannot_be_made(monkeypatch):
    def deal(group):
        return [0] * group.columns.size

    def prove(columns, owner):
        raise ValueError("too large\nfor \x1b[1mme")

    deal.strategy = Strategy("shy", deal, prove=prove)
    monkeypatch.setitem(sys.modules, "someones_strategies", SimpleNamespace(deal=deal))
    group = json.dumps({"topics": {"t": 4}, "members": [{"id": id, "topics": ["t"]} for id in "ab"]})
    for form in "table", "json":
        done = run(f"compare - -s someones_strategies:deal -s sticky --prove --format {form}", group)
        assert done.code == 3 and one_line(done.err) and "too large\\nfor \\x1b[1mme" in done.err
        assert "\x1b" not in done.out and "sticky" in done.out


def test_each_group_has_its_block_and_one_can_be_picked():
    assert re.findall(r"(?m)^group +(\S+)", run("compare - -s range", TWO).out) == ["billing", "search"]
    assert re.findall(r"(?m)^group +(\S+)", run("compare - -s range -g search", TWO).out) == ["search"]
    groups = json.loads(run("compare - -s range --format json", TWO).out)
    assert [group["group_id"] for group in groups] == ["billing", "search"]


def test_several_groups_can_be_picked():
    done = run("compare - -s range -g search -g billing --format csv", TWO)
    assert list(dict.fromkeys(row["group_id"] for row in rows_of(done.out))) == ["billing", "search"]
    done = run("compare - -s range -g search -g biling", TWO)
    assert (done.code, done.out) == (2, "") and "did you mean 'billing'?" in done.err


def test_many_groups_have_a_line_each_first():
    lines = [json.dumps({"name": f"g{i}", "strategy": "range", "state": "Stable", "topics": {"t": 2 + i},
                         "members": [{"id": "a", "topics": ["t"], "owned": [["t", 0]]}]}) for i in range(4)]
    three, four = (run("compare - -s range", "\n".join(lines[:count])).out for count in (3, 4))
    assert three.startswith("group        g0\n")
    table, rest = four.split("\n\n\n", 1)
    rows = [line.split() for line in table.splitlines()[-4:]]
    assert [row[:6] for row in rows] == [[f"g{i}", "Stable", "range", "1", str(2 + i), str(1 + i)] for i in range(4)]
    assert rest == three.rstrip("\n") + "\n\n\n" + run("compare - -s range", lines[3]).out


def test_the_strategy_that_runs_is_marked():
    done = run("compare - -s fair", json.dumps({"topics": {"t": 2}, "strategy": "roundrobin",
                                                "members": [{"id": "a", "topics": ["t"]}]}))
    assert done.out.count("(runs now)") == 1 and re.search(r"(?m)^roundrobin \(runs now\) ", done.out)
    named = run("compare --demo -s range --format json").out
    assert [row["strategy"] for row in json.loads(named)[0]["rows"]] == ["current", "range"]
    document = json.dumps({"topics": {"t": 2}, "strategy": "theirs", "members": [{"id": "a", "topics": ["t"]}]})
    done = run("compare - -s fair", document)
    assert "(runs now)" not in done.out and "theirs" in done.out.split("\n\n")[-1]
    [group] = json.loads(run("compare - -s fair --format json", document).out)
    assert group["running"] is None and "theirs" in group["notes"][0]
    assert group["notes"][1:] == [
        "shown for comparison; for Python clients only (kafka_assign.clients): fair"]


MEMBERS = """\
GROUP  CONSUMER-ID  HOST  CLIENT-ID  #PARTITIONS  ASSIGNMENT
g      a-1          /h    a          4            orders(0,1,2,3)
g      b-1          /h    b          0            -

GROUP  COORDINATOR (ID)  ASSIGNMENT-STRATEGY  STATE   #MEMBERS
g      k:9092 (1)        range                Stable  2
"""


def with_equal_subscriptions(text):
    """The group that text shows, as JSON in which every member subscribes to its topic."""
    group = read_groups(text)["g"]
    return (group.subscribe(group.members, ["orders"]) if group.topics else group).to_json()


DOUBT = "range cannot have produced this assignment: orders on a-1, b-1; check the subscriptions (a misspelled topic?)"


@pytest.mark.parametrize("changes", ["", "--leave b-1", "--join 1 --like a-1"])
def test_owners_that_the_strategy_cannot_have_produced_are_doubted_above_its_row(changes):
    """As when b subscribes to another topic, which nobody has told; text does not say that they are equal."""
    text = with_equal_subscriptions(MEMBERS)
    done = run(f"compare - -s sticky {changes}", text)
    lines = re.sub(r"\s+", " ", done.out)
    assert lines.count(DOUBT) == 1 and lines.index(DOUBT) < lines.index(" range (runs now)")
    [group] = json.loads(run(f"compare - -s sticky --format json {changes}", text).out)
    assert group["notes"][0].startswith(DOUBT)
    assert run(f"compare - -s sticky --format csv {changes}", text).err.startswith(f"g: {DOUBT}")


@pytest.mark.parametrize("old, new", [
    ("4            orders(0,1,2,3)\ng      b-1          /h    b          0            -",
     "2            orders(0,1)\ng      b-1          /h    b          2            orders(2,3)"),
    (" range ", " sticky "), ("Stable  2", "PreparingRebalance  2"), ("Stable  2", "Stable  3"),
    ("orders(0,1,2,3)", "-"),
])
def test_owners_that_may_be_right_are_not_doubted(old, new):
    """Nor are those of which the text shows too little."""
    text = with_equal_subscriptions(MEMBERS.replace(old, new))
    assert old in MEMBERS and "cannot have produced" not in run("compare -", text).out


def test_an_idle_member_under_range_subscribes_to_nothing_that_is_shown():
    done = unwrapped(run("compare -", MEMBERS).out)
    assert "so the idle members (b-1) subscribe to none of them" in done and "misspelled topic?" in done


def test_partitions_that_are_not_in_the_input_raise_no_doubt():
    """Under range, a would own the two first of these five partitions, of which the text shows three."""
    rows = ("".join(f"{cell!s:{width}}" for cell, width in zip(
        ("g", "orders", number, 1, 1, 0, f"{name}-1", "/h", name), (9, 8, 11, 16, 16, 5, 13, 11, 0)))
        for number, name in ((0, "a"), (3, "b"), (4, "b")))
    cut = HEADER + "\n".join(rows) + "\n\n" + MEMBERS.partition("\n\n")[2]
    cut = with_equal_subscriptions(cut)
    assert "partitions-missing" in run("compare - --format json", cut).out
    assert "cannot have produced" not in run("compare -", cut).out


def test_a_topic_that_does_not_exist_is_said_by_every_command():
    group = Group({"orders": 2}, {"a": ["orders"], "b": ["orders"], "c": ["oders"]}, name="g", strategy="range",
                  owned={"a": [("orders", 0)], "b": [("orders", 1)]})
    words, text = "oders does not exist; did they mean orders? (1 subscriber: c)", group.to_json()
    for line in ("compare -", "compare - --leave a", "assign - -s range", "rank -"):
        assert re.sub(r"\s+", " ", run(line, text).out).count(words.partition(" (")[0]) == 1
        assert words in run(f"{line} --format json", text).out
    assert compare(group).notes[0] == str(compare(group)["range"].notes[0]) == words
    assert words not in run("compare - --leave c", text).out + run("compare - --partitions oders=1", text).out


LONG = "a-very-long-name-of-a-topic-that-somebody-thought-was-a-good-idea-"


@pytest.mark.parametrize("line", ["compare - --moves --prove", "compare - --wide", "assign - -s sticky", "rank - --all",
                                  "compare - -s fair --join 2 --moves"])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_nothing_is_wider_than_the_terminal(line, width, monkeypatch):
    topics = {f"{name}-{LONG}{name}": 40 for name in ("clicks", "views")}
    ids = [f"consumer-{LONG[:30]}-{uuid5(NAMESPACE_DNS, str(i))}" for i in range(4)]
    owned = {ids[0]: [[topic, number] for topic in topics for number in range(40)]}
    members = [{"id": name, "topics": list(topics), "owned": owned.get(name, [])} for name in ids]
    text = json.dumps({"name": f"the-{LONG}group", "state": "Stable", "strategy": "range", "topics": topics,
                       "lag": {topic: [1_000_000] * 40 for topic in topics}, "members": members})
    monkeypatch.setenv("COLUMNS", str(width))
    done = run(line, text)
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= width
    assert "\u2026" not in done.out and not re.search(r"(?m) $", done.out)


def test_no_name_is_cut_in_a_narrow_table(monkeypatch):
    """The pieces of each column of a name, one below the other, make the name."""
    ids = [f"consumer-{LONG}{uuid5(NAMESPACE_DNS, str(i))}" for i in range(3)]
    text = json.dumps({"topics": {"t": 3}, "members": [{"id": name, "topics": ["t"]} for name in ids]})
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("assign - -s range", text).out.split("\n\n")[1].splitlines()
    end = lines[0].index("partitions")
    assert "".join(line[:end].strip() for line in lines[1:]) == "".join(sorted(ids))
    assert [line[end:].split() for line in lines[1:] if line[end:].strip()] == [["1", f"t:{i}"] for i in range(3)]


@pytest.mark.parametrize("width", [30, 50, 80])
def test_a_list_of_partitions_is_never_broken_inside_a_number(width, monkeypatch):
    text = json.dumps({"topics": {"t": 300}, "members": [{"id": "a", "topics": ["t"]}]})
    monkeypatch.setenv("COLUMNS", str(width))
    found = run("assign - -s range", text).out.partition("t:")[2].split("\n\n")[0]
    assert "\x1f" not in found and list(map(int, re.findall("[0-9]+", found))) == list(range(300))


def test_interrupted_in_a_line(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
    monkeypatch.setattr("kafka_assign.snapshot.read_groups", interrupted)
    done = run("compare -")
    assert (done.code, done.out, done.err) == (130, "", "kafka-assign: interrupted\n")


# --- rank --------------------------------------------------------------------------------------------------------

def test_rank_says_what_python_says():
    groups = read_groups(SAMPLES / "kafka-4.3.1")
    rows = rank(groups)
    done = run(f"rank {SAMPLES}/kafka-4.3.1 --format json")
    assert done.code == 0 and json.loads(done.out) == rows and rows
    done = run(f"rank {SAMPLES}/kafka-4.3.1 --all -s range -s sticky --joins orders+payments --format csv")
    expected = rank(groups, ["range", "sticky"], [["orders", "payments"]], everything=True)
    assert any(row["steps"] for row in expected)
    in_cells = [row | {"steps": "; ".join(row["steps"])} for row in expected]
    assert [{key: value or None for key, value in row.items()} for row in rows_of(done.out)] == [
        {key: None if value in (None, "") else str(value) for key, value in row.items()} for row in in_cells]
    comma = run(f"rank {SAMPLES}/kafka-4.3.1 --joins orders,payments --all -s range -s sticky --format csv")
    assert comma.out == done.out
    done = run(f"rank {SAMPLES}/kafka-4.3.1 --joins orders+payments --format json")
    assert json.loads(done.out) == rank(groups, joins=[["orders", "payments"]])


def test_rank_lists_each_remedy_once(monkeypatch):
    """A row has the name of its need and the number of its remedy; below the table, no remedy occurs twice."""
    monkeypatch.setenv("COLUMNS", "400")
    needs = [need for need in rank(read_groups(SAMPLES / "generated-fleet.jsonl")) if need["need"] != "abandoned"][:50]
    common, table, remedies, *_ = run(f"rank {SAMPLES}/generated-fleet.jsonl").out.split("\n\n")
    assert common == "cluster generated"
    head, *rows, more = table.splitlines()
    texts = [" ".join(text.split()) for text in re.split(r"(?m)^\[\d+\]", remedies)[1:]]
    numbers = [int(row[head.index("remedy"):].strip("[]")) for row in rows]
    assert [(row[:head.index("reason")].split()[-1], texts[number - 1]) for row, number in zip(rows, numbers)] == [
        (need["need"], need["remedy"]) for need in needs]
    assert len(set(texts)) == len(texts) == max(numbers) < len(needs) and more.startswith("and ")


def test_rank_names_a_group_once():
    common, table, *_ = run(f"rank {SAMPLES}/kafka-4.3.1 --all").out.split("\n\n")
    needs = rank(read_groups(SAMPLES / "kafka-4.3.1"), everything=True)
    names = {need["rank"]: need["group_id"] for need in needs if need["need"] != "abandoned"}
    starts = [line.split()[:2] for line in table.splitlines()[1:] if line[:5].strip()]
    assert common == "cluster kafka-4.3.1" and starts == [[str(place), name] for place, name in names.items()]


EMPTY = [Group({"t": 2}, {}, name=f"old-{at:03}", state="Empty", lag={"t": [at, 1]}) for at in range(502)]


def test_groups_without_members_are_one_line_unless_they_are_asked_for():
    text = "".join(f"{group.to_json()}\n" for group in [*read_groups(SAMPLES / "kafka-4.3.1").values(), *EMPTY])
    done = run("rank -", text)
    assert "old-" not in done.out.partition("records wait for")[0] and "512 groups, 507 need attention\n" in done.out
    assert ("records wait for 503 groups without members (kafka-4.3.1/nightly-batch, old-001, old-002 and 500 more): "
            "--need abandoned lists them\n") in done.out
    assert "at least " in done.out              # some lag of nightly-batch is not known
    listed = run("rank - --need abandoned", text).out
    assert "no active members while" in listed and "--need abandoned" not in listed
    for form in ("json", "csv"):                # nothing is missing for programs
        assert run(f"rank - --format {form}", text).out.count("no active members while") == 503
    alone = run("rank -", EMPTY[1].to_json()).out
    assert "abandoned  no active members while 2 records wait" in alone and "--need" not in alone
    beside = run("rank -", EMPTY[1].to_json() + "\n" + Group({"t": 1}, {"a": ["t"]}, {"a": [("t", 0)]}).to_json()).out
    assert beside.startswith("2 records wait for 1 group without members (old-001): --need abandoned lists them\n")
    assert "no group needs attention" not in beside


@pytest.mark.parametrize("options, wanted", {
    "--need lag --need overload": lambda row, _: row["need"] in ("lag", "overload"),
    "--need stream": None,
    "--limit 4": lambda row, places: row["rank"] in places[:4],
    "--need lag --limit 2": lambda row, places: row["need"] == "lag" and row["rank"] in places[:2],
    "--limit 1000000 --all": lambda *_: True}.items())
def test_rank_shows_the_rows_that_are_asked_for(options, wanted):
    """As they are without the filter, with the same ranks."""
    line = f"rank {SAMPLES}/generated-fleet.jsonl --format csv {'--all ' * ('--all' in options)}"
    done = run(f"{line} {options.replace('--all', '')}")
    if wanted is None:
        assert done.code == 2 and "--need: a need must be one of two-owners, failing, no-owner" in done.err
        assert "(got 'stream')" in done.err and one_line(done.err)
        return
    rows = rows_of(run(line).out)
    needs = re.findall("--need (\\S+)", options)
    places = list(dict.fromkeys(row["rank"] for row in rows if not needs or row["need"] in needs))
    assert rows_of(done.out) == [row for row in rows if wanted(row, places)] != []
    left = len(places) - int((re.findall("--limit (\\d+)", options) or [10 ** 6])[0])
    assert ("--limit leaves out" in done.err) == (left > 0)
    assert left <= 0 or f"--limit leaves out {left} groups\n" in done.err


def test_rank_chooses_groups_by_name_and_by_lag():
    file = SAMPLES / "generated-fleet.jsonl"
    groups, columns = read_groups(file), ("group_id", "need", "reason")
    rows = rank(groups)

    def shown(options):
        return {tuple(row[key] for key in columns) for row in rows_of(run(f"rank {file} --format csv {options}").out)}
    for least in (0, 1000, 200_000):
        lagging = {name for name, one in groups.items() if one.lag is not None and sum(
            lag for lag in one.lag.tolist() if lag > 0) >= least or not least}
        assert shown(f"--min-lag {least}") == {
            tuple(row[key] for key in columns) for row in rows if row["group_id"] in lagging} != set()
    name = rows[0]["group_id"]
    assert shown(f"-g {name}") == {tuple(row[key] for key in columns) for row in rows if row["group_id"] == name}
    assert run(f"rank {file} -g {name}").out.endswith("1 group, 1 needs attention\n")
    wrong = run(f"rank {file} -g {name}x")
    assert wrong.code == 2 and f"did you mean '{name}'?" in wrong.err
    assert "no group has this need" in run(f"rank {file} -g {name} --need incurable").out


def test_a_cluster_is_chosen_if_the_input_names_it_and_named_if_not(tmp_path):
    both = "".join(f"{Group({'t': 2}, {}, lag={'t': [5, 5]}, name='g', cluster=one).to_json()}\n" for one in ("a", "b"))
    for name in ("east", "west"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "describe.txt").write_text(TWO)
    (tmp_path / "both.jsonl").write_text(both)

    def clusters(line, text=None):
        found = json.loads(run(f"compare {line} -s range --format json", text).out)
        return {(one["cluster"], one["group_id"]) for one in found}
    assert clusters("- --cluster b", both) == clusters(f"{tmp_path}/both.jsonl --cluster b") == {("b", "g")}
    assert clusters(f"{tmp_path}/east {tmp_path}/west --cluster west") == {("west", "billing"), ("west", "search")}
    assert clusters(f"{tmp_path}/east --cluster prod") == {("prod", "billing"), ("prod", "search")}
    assert clusters("- --cluster prod", TWO) == {("prod", "billing"), ("prod", "search")}
    (tmp_path / "west" / "describe.txt").write_text("""\
GROUP   CONSUMER-ID  HOST       CLIENT-ID  #PARTITIONS  ASSIGNMENT
search  index-77aa   /10.0.0.3  index      1            clicks(0)
search  index-88bb   /10.0.0.4  index      0            -
""")                                                                # of the same group, in another folder
    [one] = json.loads(run(f"compare {tmp_path}/east {tmp_path}/west --cluster prod -g search --format json").out)
    assert (one["cluster"], one["members"]) == ("prod", 2)
    assert [row["cluster"] for row in rows_of(run("rank - --cluster a --format csv", both).out)] == ["a"]


def test_rank_with_nothing_to_say_and_what_it_refuses(tmp_path):
    member = {"id": "a", "topics": ["t"], "owned": [["t", 0]]}
    fine = json.dumps({"name": "fine", "topics": {"t": 1}, "members": [member]})
    assert run("rank -", fine).out == "no group needs attention\n"
    assert run("rank - --format csv", fine).out.count("\n") == 1
    assert json.loads(run("rank - --format json", fine).out) == []
    done = run("rank - --joins t+clciks", fine.replace('"t": 1', '"t": 1, "clicks": 1'))
    assert done.code == 2 and "did you mean 'clicks'?" in done.err and one_line(done.err)
    (tmp_path / "groups.parquet").write_bytes(b"PAR1" + bytes(20))
    done = run(f"rank {tmp_path}/groups.parquet")
    assert done.code == 3 and "Parquet" in done.err and "fleet" in done.err and one_line(done.err)


def test_rank_needs_the_base_install_only():
    code = f"""
import sys
from kafka_assign.cli.app import main
sys.argv = ["kafka-assign", "rank", {str(SAMPLES)!r}, "--format", "csv"]
try:
    main()
finally:
    print(*{{name.split(".")[0] for name in sys.modules}}, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and not {"pandas", "pyspark", "pyarrow", "matplotlib"} & set(done.stderr.split())


def test_rank_names_groups_without_an_answer(monkeypatch):
    module = SimpleNamespace(deal=lambda group: [0] * 4 if group.name == "billing" else [7])
    monkeypatch.setitem(sys.modules, "someones_strategies", module)
    done = run("rank - --all -s someones_strategies:deal", TWO)
    [error] = [line for line in done.err.splitlines() if line.startswith("search: ")]
    assert done.code == 3 and "got 7 to 7" in error and "billing" in done.out


# --- moments -----------------------------------------------------------------------------------------------------

def two_days(folder):
    """A group as seen on two days, with one member id changed in between."""
    for day, name in (("2026-11-20", "etl-3d14"), ("2026-11-21", "etl-9999")):
        (folder / f"billing.describe.{day}.txt").write_text(TWO.replace("etl-3d14", name))
    return folder


def test_two_days_in_a_folder_are_two_moments(tmp_path):
    done = run(f"compare {two_days(tmp_path)} -s range -g billing --format json")
    [group] = json.loads(done.out)
    assert (group["members"], group["partitions"], group["time"]) == (2, 4, "2026-11-21")
    assert done.err.startswith("billing: 2 moments in the input, the latest is used")
    both = json.loads(run(f"compare {tmp_path} -s range -g billing --at all --format json").out)
    assert [group["time"] for group in both] == ["2026-11-20", "2026-11-21"] and {len(g["rows"]) for g in both} == {2}
    [first] = json.loads(run(f"compare {tmp_path} -s range -g billing --at 2026-11-20T12:00:00Z --format json").out)
    assert first["time"] == "2026-11-20"
    rows = rows_of(run(f"compare {tmp_path} -s range --at all --format csv").out)
    assert {row["time"] for row in rows} == {"2026-11-20", "2026-11-21"}
    rows = rows_of(run(f"assign {tmp_path} -s range -g billing --format csv").out)
    assert {row["time"] for row in rows} == {"2026-11-21"} and "etl-9999" in {row["previous"] for row in rows}
    assert "moments" in run(f"rank {tmp_path}").err
    done = run(f"assign {tmp_path} -s range -g billing --at all")
    assert done.code == 2 and "2026-11-20" in done.err and one_line(done.err)
    done = run(f"compare {tmp_path} --at yesterday")
    assert done.code == 2 and one_line(done.err) and "a time in ISO 8601 (got 'yesterday')" in done.err
    assert run("fleet compare x -o y --at yesterday").code == run("rank x --at yesterday").code == 2


def test_one_file_with_two_moments():
    done = run("compare - -g billing -s range --format json", TWO + TWO.replace("etl-3d14", "etl-9999"))
    [group] = json.loads(done.out)
    assert group["members"] == 2 and group["time"] is None and "2 moments" in done.err
    both = rows_of(run("compare - -g billing -s range --at all --format csv", TWO + TWO.replace("etl-3d14", "x")).out)
    assert [row["moment"] for row in both] == ["1", "1", "2", "2"]


def test_time_as_named_and_no_remark_on_one_moment():
    done = run("compare - -g search --time 2026-11-20T06:30:00Z", TWO)
    assert re.search(r"(?m)^time +2026-11-20T06:30:00Z$", done.out) and "moment" not in done.out + done.err


@pytest.mark.parametrize("reset, lag, unknown", [
    ("latest", 10, 0), ("earliest", 110, 0), ("none", 10, 1), ("Smallest", 110, 0), ("error", 10, 1),
    ("by_duration:P7D", 10, 1)])
def test_lag_without_a_commit(reset, lag, unknown):
    begin = {"begin": [0, 0]} if lag == 110 else {}
    text = json.dumps({"name": "g", "topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}], "offsets": {
        "t": {"end": [100, 100], "committed": [-1, 90], **begin}}})
    done = run(f"compare - -s range --reset {reset} --format json", text)
    [group] = json.loads(done.out)
    assert [group["rows"][1][key] for key in ("lag_total", "lag_unknown")] == [lag, unknown]
    assert run("compare - -s range --format json", text).out != done.out or reset == "latest"


def test_files_of_one_folder_complete_each_other(tmp_path):
    for what in ("describe", "members-verbose", "state"):
        (tmp_path / what).write_bytes((SAMPLES / "kafka-4.3.1" / f"orders-billing.{what}.txt").read_bytes())
    [group] = json.loads(run(["compare", *map(str, tmp_path.iterdir()), "--format", "json"]).out)
    assert (group["group_id"], group["strategy"], group["state"]) == ("orders-billing", "sticky", "Stable")
    assert (group["members"], group["cluster"]) == (4, tmp_path.name)
    [group] = json.loads(run(["compare", str(tmp_path), "--cluster", "prod", "--format", "json"]).out)
    assert group["cluster"] == "prod"


def test_racks_of_a_file_reach_the_assignor(tmp_path):
    """Each member gets the partitions with a replica near it, as KIP-881's range does."""
    file = tmp_path / "racks.json"
    file.write_text(json.dumps({"members": {"web-1": "east", "etl-3d14": "west"}, "partitions": {
        "orders": [["east"], ["east"], ["west"], ["west"]]}}))
    done = run(f"assign - -s range -g billing --racks {file} --format json", TWO)
    found = json.loads(done.out)
    assert found["assignment"] == {"web-1-5c76": [["orders", 0], ["orders", 1]],
                                   "etl-3d14": [["orders", 2], ["orders", 3]]}
    assert "racks-unknown" not in {note["kind"] for note in found["inferred_notes"]}
    blind = json.loads(run("assign - -s range -g billing --format json", TWO).out)
    assert blind["assignment"] != found["assignment"]
    assert "racks-unknown" in {note["kind"] for note in blind["inferred_notes"]}
    [row] = json.loads(run(f"rank - --racks {file} -s range --all --format json", TWO).out)[:1]
    assert row["group_id"] == "billing"


@pytest.mark.parametrize("text, words", {
    '{"members": {"etl": "east", "wed-1": "east"}}':
        "a member in racks must be a member of the input (got 'wed-1'); did you mean 'web-1'?",
    '{"partitions": {"clicks": [["a"]], "order": []}}':
        "a topic in racks must be a topic of the input (got 'order'); did you mean 'orders'?",
    '{"member": {"etl": "east"}}':
        "a key of racks must be one of members, partitions (got 'member'); did you mean 'members'?",
    '{"members": ["x"]}': 'racks.members must be an object (got ["x"])',
    '{"members": {"etl": 7}}': "rack of member etl-3d14 must be text (got 7)",
    '{"partitions": {"orders": [["a"]]}}': "must be a list of 4 entries",
    "[": "racks must be JSON (got "}.items())
def test_a_file_of_racks_that_does_not_fit(tmp_path, text, words):
    file = tmp_path / "racks.json"
    file.write_text(text)
    done = run(f"compare - --racks {file}", TWO)
    assert done.code == 3 and done.out == "" and one_line(done.err)
    assert f"{file}: " in done.err and words in done.err


def test_same_name_in_two_clusters():
    done = run(f"compare {SAMPLES} -g py-etl -s range --format json")
    assert [group["cluster"] for group in json.loads(done.out)] == ["kafka-2.8.2", "kafka-3.9.2", "kafka-4.3.1"]
    [group] = json.loads(run(f"compare {SAMPLES} -g kafka-3.9.2/py-etl -s range --format json").out)
    assert (group["group_id"], group["cluster"]) == ("py-etl", "kafka-3.9.2")


def test_what_was_inferred_is_said():
    assert "\ninferred:\n-  subscriptions: " in run("compare - -g search", TWO).out
    done = run("compare - -s range --format csv", TWO)
    assert "billing, search: inferred: " in done.err and len(done.err.splitlines()) == 2 and done.code == 0
    [group] = json.loads(run("compare - -g search -s range --format json", TWO).out)
    answer = json.loads(run("assign - -g search -s range --format json", TWO).out)
    assert group["inferred_notes"] == answer["inferred_notes"]
    assert [note["kind"] for note in group["inferred_notes"]][:2] == [
        "subscriptions-certain", "members-assumed-dynamic"]
    assert "; ".join(note["text"] for note in group["inferred_notes"]) == group["inferred"]


def test_groups_of_the_broker_are_marked():
    """Only its own assignor moves anything, and so pauses it: the group never rebalances as another strategy would."""
    done = run(f"compare {SAMPLES}/kafka-4.3.1 -g new-proto --format json")
    [group] = json.loads(done.out)
    assert group["assigned_by"] == "the broker" and group["notes"][0].startswith("the broker assigns this group")
    assert group["running"] == "uniform"
    assert {row["strategy"]: row["moved"] for row in group["rows"] if row["paused"] is not None} == {"uniform": 0}


@pytest.mark.parametrize("client_id, running", [
    ("consumer-g-1", "kafka-sticky"), ("billing", "kafka-sticky"), ("sarama", None), ("rdkafka", None),
    ("kafka-python-3.0.12-2", None)])
def test_an_assignor_of_another_library_is_not_foretold(client_id, running):
    """Sarama's sticky has the same name as Kafka's, so its row must not be marked, nor judged by --fail-if."""
    group = Group({"t": 2}, [Member("a", ["t"], client_id=client_id)], strategy="sticky")
    text = group.to_json()
    [found] = json.loads(run("compare - -s range --format json", text).out)
    assert found["running"] == running
    java = "the group's leader (Java, by client id)", "the group's leader"
    assert bool(running) == (found["assigned_by"] in java)
    judged = run("compare - --fail-if moved>0", text)
    assert judged.code == (0 if running else 2) and ("by their ids" in judged.err) == (not running)


# --- assign ------------------------------------------------------------------------------------------------------

def test_assign_in_all_forms(tmp_path):
    group = read_groups(TWO)["billing"]
    expected = {member: [list(partition) for partition in owned] for member, owned in assign(group, "fair").items()}
    answer = json.loads(run("assign - -s fair -g billing --format json", TWO).out)
    assert (answer["group_id"], answer["assignment"], answer["unassigned"]) == ("billing", expected, [])
    assert answer["summary"] == assign(group, "fair").summary()
    for name in ("a.json",):
        done = run(["assign", "-", "-s", "fair", "-g", "billing", "-o", str(tmp_path / name)], TWO)
        assert (done.code, done.out) == (0, "") and json.loads((tmp_path / name).read_text()) == answer
    run(["assign", "-", "-s", "fair", "-g", "billing", "-o", str(tmp_path / "a.csv")], TWO)
    rows = rows_of((tmp_path / "a.csv").read_text())
    assert list(rows[0]) == ["cluster", "group_id", "time", "moment", "topic", "partition", "member", "previous"]
    for member, owned in expected.items():
        assert [[row["topic"], int(row["partition"])] for row in rows if row["member"] == member] == owned
    assert "orders:0,2" in run("assign - -s roundrobin -g billing", TWO).out


def test_assign_wants_one_group():
    done = run("assign - -s range", TWO)
    assert done.code == 2 and one_line(done.err) and "billing, search" in done.err


def test_reference_vectors_are_input():
    case = (ROOT / "tests/reference/range.jsonl").read_text().splitlines()[0]
    answer = json.loads(run("assign - -s org.apache.kafka.clients.consumer.RangeAssignor --format json", case).out)
    assert answer["assignment"] == json.loads(case)["expected"]


# --- withheld partitions -----------------------------------------------------------------------------------------

JOINED = json.dumps({"name": "billing", "topics": {"orders": 5, "late,\"u\"": 1}, "members": [
    {"id": "owner", "topics": ["orders", "late,\"u\""],
     "owned": [*(["orders", n] for n in range(5)), ["late,\"u\"", 0]]},
    {"id": "new,\"n\"", "topics": ["orders"]}]})


def withholding():
    return assign(Group.from_json(JOINED), "cooperative-sticky")


UNTIL = "withheld until the member that may still consume them has revoked them; a second rebalance assigns them"


def unwrapped(text):
    return " ".join(text.split())


def test_withheld_in_a_comparison():
    done = run("compare - -s sticky -s cooperative-sticky", JOINED)
    lines = done.out.split("\n\n")[1].splitlines()
    heads = " ".join(line for line in lines[:-3]).split()
    column = heads.index("withheld") - heads.index("strategy")
    counts = {line.split()[0]: line.split()[column] for line in lines[-3:]}
    assert withholding().withheld.sum() == 3 and counts == {"current": "0", "sticky": "0", "cooperative-sticky": "3"}
    assert f"cooperative-sticky: 3 partitions {UNTIL}" in unwrapped(done.out) and "sticky: 3 moved" not in done.out
    [group] = json.loads(run("compare - -s cooperative-sticky --format json", JOINED).out)
    assert [row["withheld"] for row in group["rows"]] == [0, 3]
    assert group["notes"] == [f"cooperative-sticky: 3 partitions {UNTIL}"]
    done = run("compare - -s cooperative-sticky --format csv", JOINED)
    assert [row["withheld"] for row in rows_of(done.out)] == ["0", "3"] and one_line(done.err) and UNTIL in done.err


def test_withheld_in_lists_of_moves():
    a = withholding()
    expected = [(*a.group.at(at), a.group.members[a.target[at]]) for at in a.withheld.nonzero()[0].tolist()]
    line = "compare - -s sticky -s cooperative-sticky --moves --format"
    [group] = json.loads(run(f"{line} json", JOINED).out)
    current, sticky, cooperative = group["rows"]
    assert [(move["topic"], move["partition"], move["to"]) for move in cooperative["moves"]] == expected
    assert all(move["withheld"] is True for move in cooperative["moves"])
    assert sticky["moves"] and not any("withheld" in move for move in sticky["moves"])
    table = run(f"{line} table", JOINED).out.split("\n\n")[-1].splitlines()
    assert table[0].split()[-1] == "withheld" and [row.split()[-1] for row in table[1:]] == ["-"] * 3 + ["yes"] * 3
    for form in "json", "table":
        assert "withheld" not in run(f"compare - -s sticky --moves --format {form}", JOINED).out.partition("from")[2]


def test_withheld_in_an_assignment():
    a = withholding()
    names = [*a.group.members, ""]
    done = run("assign - -s cooperative-sticky --format csv", JOINED)
    rows = rows_of(done.out)
    assert list(rows[0])[-3:] == ["member", "previous", "target"]
    assert [(row["member"], row["target"]) for row in rows] == [
        (names[owner], names[target]) for owner, target in zip(a.owner, a.target)]
    assert sum(row["member"] == "" and row["target"] == 'new,"n"' for row in rows) == 3
    assert one_line(done.err) and f"billing: 3 partitions {UNTIL}" in done.err
    answer = json.loads(run("assign - -s cooperative-sticky --format json", JOINED).out)
    target = {member: [list(one) for one in own] for member, own in assign(a.group, "sticky").items()}
    kept = {member: [list(one) for one in own] for member, own in a.items()}
    assert (answer["assignment"], answer["target"], answer["unassigned"]) == (kept, target, [])
    assert answer["assignment"]['new,"n"'] == [] and answer["notes"] == [f"3 partitions {UNTIL}"]
    shown = run("assign - -s cooperative-sticky", JOINED).out
    table = shown.split("\n\n")[1].splitlines()
    assert table[0].split() == ["member", "target", "partitions", "assignment"]
    assert [line.split()[0] for line in table[1:]] == ['new,"n"', "owner", "-"]
    later = ",".join(str(a.group.at(at)[1]) for at in a.withheld.nonzero()[0].tolist())
    assert re.fullmatch(rf'- +new,"n" +3 +orders:{later}', table[-1].rstrip())
    assert unwrapped(shown).endswith(f"3 partitions {UNTIL}")


@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_no_word_of_a_target_if_nothing_is_withheld(form):
    for line in ("assign - -s sticky", "assign - -s cooperative-sticky --leave owner"):
        done = run(f"{line} --format {form}", JOINED)
        assert done.code == 0 and "target" not in done.out and "withheld until" not in done.out + done.err


def test_lag_of_withheld_partitions_is_in_their_row():
    document = json.loads(JOINED) | {"lag": {"orders": [1, 2, 4, 8, 16], "late,\"u\"": [32]}}
    table = run("assign - -s cooperative-sticky", json.dumps(document)).out.split("\n\n")[1].splitlines()[1:]
    lags = [int(line.split()[-2]) for line in table]
    a = withholding()
    later = sum(2 ** at for at in range(5) if a.withheld[a.group.columns.start[a.group.index["orders"]] + at])
    assert lags == [0, 63 - later, later]


def test_a_condition_on_what_is_withheld():
    assert run("compare - -s cooperative-sticky --fail-if 'withheld>2'", JOINED).code == 1
    assert run("compare - -s cooperative-sticky --fail-if 'withheld>3'", JOINED).code == 0
    assert run("compare - -s sticky --fail-if 'withheld>0'", JOINED).code == 0


def test_a_remedy_that_takes_a_second_rebalance_says_so():
    group = json.loads(JOINED) | {"strategy": "cooperative-sticky"}
    rows = rows_of(run("rank - -s sticky --format csv", json.dumps(group)).out)
    assert rows and {row["remedy"].partition(";")[0] for row in rows} == {
        "kafka-cooperative-sticky (runs now): 3 moves, 3 withheld until a second rebalance"}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_group_that_runs_java_s_sticky_is_not_told_our_figures_are_its(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    document = json.dumps(json.loads(JOINED) | {"strategy": name})
    done = run("compare - -s sticky -s cooperative-sticky", document)
    assert re.findall(r"(?m)^(.*) \(runs now\) ", done.out) == [f"kafka-{name}"]
    said = unwrapped(done.out)
    assert f"kafka-{name} forecasts Kafka's own {name} assignor, which the group is assumed to run" in said
    assert f"the strategy {name} of this package computes the exact optimum" in said
    [group] = json.loads(run("compare - -s sticky --format json", document).out)
    assert [row["strategy"] for row in group["rows"]] == ["current", f"kafka-{name}", "sticky"]
    assert (group["strategy"], group["running"]) == (name, f"kafka-{name}")
    for java in "StickyAssignor", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor":
        assert run(f"assign - -s {java}", JOINED).code == 0


def vector(case, **about):
    """A group of the vectors of `kafka-sticky`, as JSON."""
    lines = (Path(__file__).parent / "reference" / "kafka-sticky.jsonl").read_text(encoding="utf-8").splitlines()
    [found] = [one for one in map(json.loads, lines) if one["id"] == case]
    return json.dumps(found | about)


FAILING = {"kafka-sticky-0250": "endless", "kafka-sticky-0185": "NullPointerException",
           "kafka-sticky-0154": "IllegalStateException"}                 # as Kafka's own classes ended


@pytest.mark.parametrize("case, kind", FAILING.items())
def test_a_rebalance_that_fails_is_an_answer(case, kind):
    """In place of the row there is a note, and a ranking begins with the group; a condition cannot be judged."""
    runs = vector(case, name="doomed", strategy="sticky")
    done = run("compare - -s sticky", runs)
    assert done.code == 0 and not done.err and "(runs now)" not in done.out
    assert f"kafka-sticky has no row, because the next rebalance of the group fails: {kind}: " in unwrapped(done.out)
    done = run("compare - --fail-if 'moved>=0'", runs)
    assert done.code == 3 and "doomed: --fail-if cannot be judged: " in done.err and kind in done.err
    assert run("compare - -s sticky --fail-if 'moved<0'", runs).code == 0
    named = run("compare - -s sticky -s kafka-sticky", vector(case, name="fine", strategy=""))
    assert named.code == 3 and f"fine: kafka-sticky: {kind}: " in named.err and "\nsticky " in named.out
    ranked = run("rank - -s sticky --format json", f"{runs}\n{vector(case, name='fine', strategy='')}")
    rows = json.loads(ranked.out)
    assert ranked.code == 0 and [row["group_id"] for row in rows if row["need"] == "failing"] == ["doomed"]
    assert rows[0]["group_id"] == "doomed" and rows[0]["reason"].startswith(f"its next rebalance fails: {kind}: ")
    assert rows[0]["strategy"] in ("range", "roundrobin")
    assert "; stop all members (kill those that hang), wait until the group is Empty" in rows[0]["remedy"]


# --- what cannot be used -----------------------------------------------------------------------------------------

UNUSABLE = {
    "empty": b"", "blank": b"\n\n", "binary": bytes(range(256)) * 4, "header without rows": HEADER.encode(),
    "another tool": b"NAMESPACE  NAME  READY\ndefault  web-1  1/1\n",
    "a list": b"billing\nsearch\n", "an error": b"Error: Consumer group 'ghost' does not exist.\n",
    "other JSON": b'{"topics": 7}', "broken JSON": b'{"topics": {', "two columns": b"a b\n"}


@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("command", ["compare", "assign -s range", "rank"])
def test_unusable_as_the_sole_input(content, command, tmp_path):
    (tmp_path / "input").write_bytes(content)
    done = run([*command.split(), str(tmp_path / "input")])
    assert (done.code, done.out) == (3, "") and one_line(done.err) and "input" in done.err
    assert "Traceback" not in done.err


def test_missing_file():
    done = run("compare no/such/file")
    assert (done.code, done.out, done.err) == (3, "", "kafka-assign: no/such/file: No such file or directory\n")


def test_cut_row_is_rejected_and_the_rest_is_used(tmp_path):
    (tmp_path / "cut.txt").write_text(TWO + "search   clicks  1          5\n")
    done = run(["compare", str(tmp_path / "cut.txt"), "-s", "range"])
    assert done.code == 3 and one_line(done.err) and "cut.txt:7: " in done.err
    assert re.findall(r"(?m)^group +(\S+)", done.out) == ["billing", "search"]


def test_many_rejects_are_not_all_told():
    bad = "search   clicks  one        5               9               4    index-77aa   /10.0.0.3  index\n"
    done = run("compare - -s range", TWO + bad * 100)
    assert done.code == 3 and len(done.err.splitlines()) == 21 and done.err.endswith("and 80 more rejected rows\n")


def test_large_file_with_one_bad_line(tmp_path):
    path, rest = tmp_path / "large.txt", "3004            3012            8    web-1-5c76   /10.0.0.1  web-1\n"
    with open(path, "w") as file:
        file.write(HEADER.replace("TOPIC   ", "TOPIC         "))
        for topic in range(100000, 101000):
            file.writelines(f"billing  topic-{topic}  {number:<9}  {rest}" for number in range(500))
        file.write(f"billing  topic-100000  x          {rest}")
    assert path.stat().st_size > 50e6
    done = program(["compare", str(path), "-s", "range", "--format", "json"])
    assert done.code == 3 and ":500002: " in done.err.splitlines()[-1]
    assert json.loads(done.out)[0]["partitions"] == 500_000


SAMPLE_FILES = sorted(path for path in SAMPLES.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", SAMPLE_FILES, ids=lambda path: path.relative_to(SAMPLES).as_posix())
def test_every_sample_on_standard_input(path):
    content = path.read_bytes()
    done = CliRunner().invoke(commands, ["compare", "-", "-s", "fair", "--format", "json"], input=content)
    try:
        groups = read_groups(path, "")
    except SnapshotError:
        assert (done.exit_code, done.stdout) == (3, "") and one_line(done.stderr) and "<stdin>" in done.stderr
    else:
        assert done.exit_code == 3 * bool(groups.rejects)
        assert [group["group_id"] for group in json.loads(done.stdout)] == [group.name for group in groups.values()]
    shows_members = re.search(r"\.(describe|offsets-verbose|members|members-verbose)\.txt", path.name)
    if shows_members and len(content.splitlines()) > 2 and b"Error" not in content and "share" not in path.name:
        assert done.exit_code == 0, done.stderr


def test_ignored_files_of_a_folder_are_one_line():
    done = run(f"compare {SAMPLES}/kafka-4.3.1 -g wide -s range")
    assert done.code == 0 and one_line(done.err) and done.err.startswith("ignored: ")


# --- what is used wrongly ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("line, hint", {
    "compare": "--bootstrap-server, --demo", "compare --demo x": "give one of these: files",
    "compare --demo -s rnage": "did you mean 'range'?", "compare --demo -s fair:max=2": "no option 'max'",
    "compare --demo --strategy no.such.module:deal": "must be importable",
    "compare --demo --group dmo": "did you mean 'demo'?", "compare --demo --moved": "--moves",
    "compare --demo --format xml": "'table', 'json', 'csv'",
    "compare --demo --format csv --moves": "it must be json or table with --moves, --prove, --restart or --rolling",
    "compare --demo --format csv --prove": "one table of figures", "compare --demo --format csv --rolling": "(got csv)",
    "compare --demo --format csv --restart anna": "it must be json or table",
    "assign x": "--strategy", "assign -s range": "give one of these: files, - for standard input, --bootstrap-server",
    "compare --demo --cluster a --cluster b": "--cluster: must be given once (got it 2 times)",
    "compare --demo --format csv --wide --format json": "--format: must be given once", "rank": "give one of",
    "assign x -s range -g a -g b": "--group: must be given once", "assign x -s range -s fair": "--strategy: must be",
    "assign x -s range -o no/such/folder/y": "--output: its folder must exist (got 'no/such/folder/y')",
    "rank --bootstrap-server x:1 --timeout inf": "'--timeout'", "rank --bootstrap-server x:1 --timeout 1e10": "86400",
    "rank --bootstrap-server x:1 --timeout nan": "'--timeout'", "fleet compare x -o y --time-limit inf": "86400",
    "rank x --joins a": "--joins: a join must have the form TOPIC+TOPIC (got 'a')",
    "rank x --at all --at all": "--at: must be given once",
    "fleet compare x -o y --joins a+b,c+d": "(got 'a+b,c+d')",
    "strategies --format json --format csv": "--format: must be given once",
    "compare x --time yesterday": "'--time': must be a time in ISO 8601 (got 'yesterday')",
    "rank x --at latst": "'--at': must be latest, or all, or a time in ISO 8601 (got 'latst')",
    "fleet compare x -o y -o z": "--output: must be given once", "compare --demo --reset never": "'earliest'",
    "fleet": "fleet --help", "fleet compare x": "--output", "fleet compare x -o y -s rnage": "did you mean 'range'?",
    "fleet comprae": "compare", "comprae --demo": "compare", "--nonsense": "--help"}.items())
def test_wrong_use(line, hint):
    done = run(line)
    assert (done.code, done.out) == (2, "") and one_line(done.err) and hint in done.err


def test_a_strategy_that_fails_on_one_group_hides_no_other(monkeypatch):
    module = SimpleNamespace(deal=lambda group: [0] * 4 if group.name == "billing" else [7])
    monkeypatch.setitem(sys.modules, "someones_strategies", module)
    done = run("compare - -s someones_strategies:deal --format json", TWO)
    rows = {group["group_id"]: [row["strategy"] for row in group["rows"]] for group in json.loads(done.out)}
    assert done.code == 3 and rows == {"billing": ["current", "someones_strategies:deal"], "search": ["current"]}
    assert "search: strategy 'someones_strategies:deal': owner must be -1 or the place of one of 1 members" in done.err
    assert run("assign - -g search -s someones_strategies:deal", TWO).code == 3


@pytest.mark.parametrize("line", [
    "compare - -s someones_strategies:deal", "assign - -g search -s someones_strategies:deal"])
def test_a_bug_of_somebodys_strategy_is_told_in_a_line(monkeypatch, line):
    monkeypatch.setitem(sys.modules, "someones_strategies", SimpleNamespace(
        deal=lambda group: group.nonsense if group.name == "search" else [0] * 4))
    done = run(line, TWO)
    assert done.code == 3 and ("billing" in done.out) == line.startswith("compare")
    assert "strategy 'someones_strategies:deal' must not raise (got AttributeError: " in done.err and one_line(done.err)
    assert re.search(r"test_cli\.py, line \d+\)$", done.err)


@pytest.mark.parametrize("error, words", [
    (TypeError("no\nsuch"), r"TypeError: no\\nsuch"), (MemoryError(), "MemoryError"), (EOFError(), "EOFError"),
    (AssertionError(), "AssertionError"), (RecursionError("too deep"), "RecursionError: too deep"),
    (OverflowError("too large"), "OverflowError: too large"), (KeyError("t"), "KeyError: 't'")],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "")
@pytest.mark.parametrize("condition", ["", "--fail-if 'moved>=0'"])
def test_an_error_nobody_thought_of_is_a_line(monkeypatch, error, words, condition):
    """With the innermost place in this package, however deep in another the error is."""
    def fails(*_):
        raise error
    monkeypatch.setattr("kafka_assign.cli.output.show_comparisons", fails)
    done = run(f"compare --demo -s fair {condition}")
    assert done.code == 3 and one_line(done.err)
    assert re.fullmatch(rf"kafka-assign: {words} \(kafka_assign/cli/app\.py, line \d+\)\n", done.err)


@pytest.mark.parametrize("code, expected", [(0, 0), (1, 3), ("words", 3), (None, 0), (143, 143)])
def test_an_exit_of_others_is_no_answer(monkeypatch, code, expected):
    monkeypatch.setattr("kafka_assign.cli.output.show_comparisons", lambda *_: sys.exit(code))
    assert run("compare --demo").code == expected


def test_help_and_version():
    assert run("--version").out.startswith("kafka-assign 0.")
    assert run("").out == run("--help").out
    for command in ("compare", "assign", "rank", "strategies", "fleet", "fleet compare"):
        done = run(f"{command} --help")
        assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80, command


# --- as a program ------------------------------------------------------------------------------------------------

def test_in_an_empty_folder(tmp_path):
    done = program("compare --demo", cwd=tmp_path)
    assert (done.code, done.err) == (0, "") and "roundrobin" in done.out and not list(tmp_path.iterdir())


def test_a_pipe_is_folded_only_at_its_columns_and_not_coloured():
    whole, plain, wide = (program("compare --demo --wide", **columns).out
                          for columns in ({}, {"COLUMNS": "80"}, {"COLUMNS": "400"}))
    assert "\x1b" not in whole + plain + wide and whole.split("\n\n")[:2] == wide.split("\n\n")[:2]
    assert max(map(len, plain.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    assert len(whole.splitlines()) < len(wide.splitlines())              # paragraphs are folded at 100 columns
    assert {line.split(":")[0] for line in whole.split("\n\n")[2].splitlines()} == {
        "leader", "shown for comparison; for Python clients only (kafka_assign.clients)",
        "switch is what a change to a strategy moves"}
    narrow = program("compare --demo --wide", COLUMNS="40").out
    figures = [sorted(re.findall(r"\d[\d,]*", text.partition("\n\n")[2])) for text in (narrow, plain, wide)]
    assert figures[0] == figures[1] == figures[2] and max(map(len, narrow.splitlines())) <= 40


def test_reader_that_stops_early_is_no_error(tmp_path):
    document = {"topics": {"t": 40}, "members": [{"id": "a", "topics": ["t"]}]}
    lines = [json.dumps({"name": f"group-{i}", **document}) for i in range(400)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(MAIN)} compare many.jsonl -s range --moves"
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.stdout.split(), done.stderr) == (["min", "max", "balance"], "")


def test_names_that_the_locale_cannot_encode():
    text = json.dumps({"name": "注文", "topics": {"t": 1}, "members": [{"id": "é\x9b", "topics": ["t"]}]})
    for form in ("table", "csv", "json"):
        done = program(f"assign - -s range --format {form}", text, PYTHONIOENCODING="ascii")
        assert done.code == 0, done.err


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are POSIX's")
@pytest.mark.parametrize("line", ["compare --demo --moves --prove --wide", f"rank {SAMPLES} --all",
                                  f"compare {SAMPLES} -s range",
                                  f"compare {SAMPLES}/kafka-4.3.1 -g orders-billing --moves --prove --join new:orders",
                                  f"assign {SAMPLES}/kafka-4.3.1 -g wide -s fair", "strategies"])
@pytest.mark.parametrize("columns", [80, 200])
def test_on_a_terminal(line, columns):
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    env |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    with subprocess.Popen([sys.executable, "-c", MAIN, *line.split()], stdin=theirs, stdout=theirs,
                          stderr=subprocess.DEVNULL, env=env) as process:
        os.close(theirs)
        output = b""
        try:
            while piece := os.read(ours, 65536):
                output += piece
        except OSError:  # Linux says so when the other side is closed
            pass
    os.close(ours)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", output.decode())
    assert process.returncode == 0 and bare != output.decode()
    assert max(len(row) for row in bare.splitlines() ) <= columns


def test_loads_only_what_it_needs():
    code = "import sys, kafka_assign.cli.app; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"numpy", "pandas", "pyspark", "pyarrow", "matplotlib"} & set(done.stdout.split())


def test_shell_completes_strategies():
    done = program("", _KAFKA_ASSIGN_COMPLETE="complete_bash", COMP_CWORD="3",
                   COMP_WORDS="kafka-assign compare --strategy ro")
    assert done.out.split() == ["roundrobin"]


# --- fleet -------------------------------------------------------------------------------------------------------

def test_fleet_without_its_extra(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("kafka_assign.fleet.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run(f"fleet compare {SAMPLES} -o {tmp_path}")
    assert (done.code, done.out) == (3, "") and one_line(done.err) and "pip install 'kafka_assign[spark]'" in done.err


def test_a_run_ends_on_one_screen(capsys, monkeypatch):
    """Whatever the names, of the most groups that are listed, each with several needs, after another run."""
    monkeypatch.setenv("COLUMNS", "80")
    ranking = [{"rank": rank, "cluster": "east", "group_id": f"{'注文' * 60}-{rank}", "time": None, "moment": None,
                "need": need, "reason": f"{need} " * 30, "remedy": f"[{rank}] " * 30}
               for rank in range(1, 13) for need in ("idle", "overload")]
    counts = dict.fromkeys(("files", "rows", "groups"), {"used": 345})
    tables = {"attention": {"rows": 24} | dict.fromkeys(NEEDS, 0) | {"idle": 12, "overload": 12},
              "changes": {"new": 1, "persisting": 23, "resolved": 2}}
    once = SimpleNamespace(path="run-1", ranking=lambda first: ranking[:first], rejected=1, counts=counts,
                           tables=tables)
    show_run(once, "table", "runs")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["345 groups in 345 files, 1 reject; needs since the last run: 1 new, 2 resolved",
                         "24 needs (all with --format csv): idle 12, overload 12"]
    assert [line[:2].strip() for line in lines[2:-1:2]] == [str(rank) for rank in range(1, 11)]
    assert all("idle, overload: [" in line for line in lines[3:-1:2]) and lines[-1] == "run  runs/run-1"
    assert len(lines) <= 24 and max(map(cell_len, lines)) <= 80
    once.ranking = lambda first: []
    show_run(once, "table", "runs")
    assert capsys.readouterr().out.splitlines()[1:] == ["no group needs attention", "run  runs/run-1"]


@pytest.mark.needs("spark", "java")
def test_fleet_interrupted_in_a_line(tmp_path):
    words = ["fleet", "compare", str(SAMPLES), "-o", str(tmp_path / "runs")]
    with subprocess.Popen([sys.executable, "-c", MAIN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True) as process:
        while b"comparing " not in process.stderr.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, b"") and b"Traceback" not in err
    assert err.splitlines()[-1] == b"kafka-assign: interrupted"
    assert not [path for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")]


# --- what other forms show ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("command", ["compare -", "assign - -s range"])
def test_notes_of_csv_are_on_standard_error(command):
    done = run(f"{command} --group billing --join 1 --format csv", TWO)
    assert done.code == 0 and "ids of new members are made up" in done.err
    assert "range and roundrobin sort static members first" in done.err and "inferred: " in done.err


def test_ranking_without_a_group_that_can_be_judged():
    done = run(["rank", str(SAMPLES / "kafka-4.3.1" / "all-groups.state.txt")])
    assert done.code == 3 and "no group needs attention" not in done.out
    assert done.err.splitlines()[-1] == (
        "kafka-assign: no group can be judged, because the input shows no topics: add the output of --describe")


def test_ranking_says_how_many_groups_there_are():
    groups = read_groups(SAMPLES / "kafka-4.3.1" / "all-groups.describe.txt")
    listed = len({row["rank"] for row in rank(groups)})
    done = run(["rank", str(SAMPLES / "kafka-4.3.1" / "all-groups.describe.txt")])
    assert done.out.splitlines()[-1] == f"{len(groups)} groups, {listed} need attention"


def test_ranking_says_which_partitions_are_not_in_the_input():
    text = TWO.replace("orders  3 ", "orders  9 ")
    done = run("rank - --all", text)
    assert "billing: 6 partitions not in the input, inferred from the highest number seen" in done.err
    assert "not in the input, inferred" not in run("rank - --all", TWO).err


def test_ranking_says_that_idle_members_are_not_in_the_input():
    """The output of --describe shows members that own partitions only, so an idle one would pass unnoticed."""
    assert one_line(run("rank - --all", TWO).err) and "billing, search: idle members are not in the input" in (
        run("rank - --all", TWO).err)
    assert "idle members" not in run("rank - --all", demo_group().to_json()).err


def test_names_of_groups_are_never_shortened(monkeypatch):
    name = "payments-service-of-the-european-region-consumer"
    text = read_groups(TWO)["billing"].replace(name=name).to_json() + "\n"
    head, *lines = run("rank - --all", text).out.partition("\n\n")[0].splitlines()
    start, end = head.index("group"), head.index("need")
    assert "".join(line[start:end].strip() for line in lines) == name
    monkeypatch.setenv("COLUMNS", "200")
    assert name in run("rank - --all", text).out


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    done = run(f"assign - -s range -g billing -o {tmp_path}/x.xlsx", TWO)
    assert done.code == 2 and "must end in .json, .csv or .txt" in done.err
    assert list(tmp_path.iterdir()) == []
    assert run(f"assign - -s range -g billing -o {tmp_path}/x.out --format csv", TWO).code == 0


# --- nothing is lost, and nothing waits for ever ---------------------------------------------------------------------

def test_an_output_that_is_an_input_is_refused(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(demo_group().to_json())
    before = file.read_bytes()
    done = run(["assign", str(file), "-s", "range", "-o", str(file)])
    assert done.code == 2 and "it must not be an input" in done.err and file.read_bytes() == before
    assert run(["assign", str(file), "-s", "range", "-o", str(tmp_path / "other.json")]).code == 0
    assert sorted(os.listdir(tmp_path)) == ["group.json", "other.json"]


def test_a_file_without_a_name_is_not_the_current_folder():
    assert run(["rank", ""]).code == run(["compare", ""]).code == 2


def test_a_key_that_occurs_twice_is_an_error(tmp_path):
    file = tmp_path / "twice.json"
    file.write_text('{"topics": {"t": 1, "t": 2}, "members": []}')
    done = run(["compare", str(file)])
    assert done.code == 3 and "the key 't' occurs twice in an object" in done.err


def test_a_time_that_is_none_is_an_error(tmp_path):
    file = tmp_path / "noon.json"
    file.write_text('{"topics": {"t": 1}, "members": [], "time": "noon"}')
    done = run(["compare", str(file)])
    assert done.code == 3 and "time must be in ISO 8601, or empty (got 'noon')" in done.err


@pytest.mark.parametrize("words", ["--help", "--version", "compare --help", "strategies", "compare --demo"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line(words, unbuffered):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "kafka_assign", *words.split()], stdout=full,
                              stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr) == (3, "kafka-assign: No space left on device\n")


def test_cells_of_csv_are_no_formulas():
    members = [f"{sign}cmd" for sign in "=+-@＝＋－＠"]
    group = Group({"t": 8}, dict.fromkeys(members, ["t"]), name="=1+1")
    done = run(["assign", "-", "-s", "range", "--format", "csv"], group.to_json())
    assert done.code == 0 and all(f"'{name}" in done.out for name in members)
    assert not re.search(r"(?m)(^|,)[=+@＝＋－＠]", done.out)


@pytest.mark.parametrize("between", ";\t\n\r")
def test_parts_of_cells_are_no_formulas(between):
    """As a spreadsheet sees them that splits lines at semicolons, or at tabs, and knows no quotes within a cell."""
    names = [f"x{between}{quote}{sign}1" for sign in "=+-@＝" for quote in ("", '"')]
    group = Group({"t": 10}, dict.fromkeys(names, ["t"]), name="g")
    done = CliRunner().invoke(commands, ["assign", "-", "-s", "range", "--format", "csv"], input=group.to_json())
    text = done.stdout_bytes.decode()
    assert done.exit_code == 0 and not re.search(rf'{between}"*[=+@＝-]', text)
    rows = csv.DictReader(io.StringIO(text, newline=""))
    assert {re.sub(r"(^|[;\t\r\n])'", r"\1", row["member"]) for row in rows} == set(names)


# --- an output is replaced -------------------------------------------------------------------------------------------

def wrote(file, folder, expected=0):
    """Write an assignment to `file`; what is then in the folder."""
    done = run(["assign", "-", "-s", "range", "--format", "csv", "-o", str(file)], demo_group().to_json())
    assert done.code == expected, done.err
    return sorted(os.listdir(folder)), done.err


def test_an_output_beside_files_of_the_user(tmp_path):
    """None of them is the place where an output is made."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".a.csv.part").symlink_to(victim)
    (tmp_path / ".b.csv.part").write_text("mine, too")
    for name in "a.csv", "b.csv":
        wrote(tmp_path / name, tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".a.csv.part", ".b.csv.part", "a.csv", "b.csv", "victim"]
    assert victim.read_text() == "mine" and (tmp_path / ".b.csv.part").read_text() == "mine, too"


def test_two_outputs_at_once(tmp_path):
    file = str(tmp_path / "a.txt")
    with written_to(file):
        print("first")
        with written_to(file):
            print("second")
        assert Path(file).read_text() == "second\n"
    assert Path(file).read_text() == "first\n" and os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes, links and pipes are POSIX's")
def test_an_output_keeps_its_mode_and_its_link(tmp_path):
    target, link, broken = tmp_path / "target.csv", tmp_path / "link.csv", tmp_path / "broken.csv"
    target.write_text("before")
    link.symlink_to(target.name)
    broken.symlink_to("later.csv")
    for mode in 0o600, 0o664, 0o755:
        target.chmod(mode)
        wrote(link, tmp_path)
        assert stat.S_IMODE(target.stat().st_mode) == mode and "previous" in target.read_text() and link.is_symlink()
    wrote(broken, tmp_path)
    assert broken.is_symlink() and "previous" in (tmp_path / "later.csv").read_text()
    before = os.umask(0o027)
    try:
        wrote(tmp_path / "new.csv", tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX's")
def test_an_output_that_is_a_device_or_a_pipe(tmp_path):
    wrote(os.devnull, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    assert wrote(tmp_path / "pipe", tmp_path)[0] == ["pipe"]
    assert reader.communicate()[0].startswith("cluster,group_id,")


def test_an_output_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    names, error = wrote(tmp_path / "folder", tmp_path, 3)
    assert names == ["folder"] and error == f"kafka-assign: {tmp_path / 'folder'}: Is a directory\n"
    if Path("/dev/full").exists():
        assert wrote("/dev/full", tmp_path, 3)[1] == "kafka-assign: /dev/full: No space left on device\n"
