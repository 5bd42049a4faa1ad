"""Names are chosen by strangers: whatever they are, no output obeys them, loses them or breaks."""
import csv
import io
import json
import os
import re
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from unittest.mock import patch

from hypothesis import given, strategies as st
from typer.testing import CliRunner

from kafka_assign.reports.comparison import compare
from kafka_assign.assignors.registry import assign
from kafka_assign.cli.app import program
from kafka_assign.cli.ranking import show_run
from kafka_assign.cli.output import show_assignment, show_comparisons
from kafka_assign.groups.documents import group_row
from kafka_assign.groups.group import Group
from kafka_assign.life.live import LiveGroup
from kafka_assign.groups.members import Member
from kafka_assign.ranking.rules import NEEDS
from kafka_assign.reports.moves import explain
from kafka_assign.text.words import quoted, shown
from kafka_assign.reports.words import rebalance_words
from kafka_assign.reports.proof import proof_of
from kafka_assign.snapshot import read_groups

TROUBLE = [
    "<script>alert(1)</script>", "<b>", "&lt;", "{{ 7*7 }}", "%s", "{}",            # HTML and templates
    "[red]x[/b]", "[/]", ":smile:",                                                 # Rich's markup
    "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x00", "\x7f", "\t",                # controls of terminals, old and new
    "\r", "\n", "\n\n", "\x85", "\u2028", "\u202e", "\u200b", "\ufeff",    # ends of lines, directions, nothing to see
    ",", '"', "'", ";", "\\", "=1+1", "＝1+1", "$(reboot)", "-", " ",       # CSV, shells, words that mean something
    "注文", "\U0001f600", "e\u0301", "x" * 249]                                     # wide and long
SIDES = {("style", "text-align: left"), ("style", "text-align: right")}           # the only attributes that tables have
names = st.one_of(
    st.sampled_from([one for one in TROUBLE if one.strip()]),
    st.lists(st.sampled_from(TROUBLE) | st.text(max_size=4), min_size=1, max_size=4).map("".join)).map(
        lambda name: "".join(c for c in name if not "\ud800" <= c <= "\udfff")[:249]).filter(bool)


@st.composite
def groups(draw):
    """A group in which every name is trouble, with claims, lag and everything else that is shown."""
    topics = {name: draw(st.integers(0, 3)) for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))}
    ids = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    claims = [(topic, number) for topic, count in topics.items() for number in range(count)]
    maybe = st.none() | names
    members = [Member(name, list(topics), owned=claims[i::len(ids)][:2], instance_id=draw(maybe), client_id=draw(names),
                      host=draw(names), rack=draw(maybe)) for i, name in enumerate(ids)]
    about = {key: draw(names) for key in ("name", "cluster", "state", "strategy", "inferred")}
    return Group(topics, members, lag={topic: [5] * count for topic, count in topics.items()}, type="classic", **about)


def harmless(text):
    """Whether a text for people has nothing but printable characters and ends of lines."""
    return all(c.isprintable() or c == "\n" for c in text)


class Screen(io.StringIO):
    """A terminal that knows no styles, so that every escape would be a name's."""

    def isatty(self):
        return True


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.text += data


def run(words, text=None, **env):
    done = CliRunner(env=env).invoke(program, words, input=text)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def rows_of(text):
    """The rows of a CSV table, without the apostrophes that keep a spreadsheet from running a name or a part of one."""
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert not any(re.search(r'(^|[;\t\r\n])"*[=+@＝＋－＠]', cell) for row in rows for cell in row.values())
    return [{key: re.sub(r"(^|[;\t\r\n])'", r"\1", cell) for key, cell in row.items()} for row in rows]


def error_is_a_line(done):
    return done.stderr.endswith("\n") and done.stderr[:-1].isprintable()


@given(groups())
def test_displays_of_python(group):
    assignment, comparison = assign(group, "fair"), compare(group, ["range", "fair"])
    assert repr(group).isprintable() and quoted(group.name) in repr(group)
    proof = proof_of(assign(group, "sticky"))
    for thing in (assignment, comparison, group.details, group.topics):
        assert harmless(repr(thing))
    notes = "\n".join(fill(str(note)) for note in assignment.notes).splitlines()
    assert len(repr(assignment).splitlines()) == 1 + len(group.members) + len(notes)
    assert harmless(repr(proof))
    later = assign(group, "cooperative-sticky")
    withholding = (later, compare(group, ["cooperative-sticky"]), explain(later))
    assert all(harmless(repr(thing)) for thing in withholding)
    assert all(("withheld until" in repr(thing)) == later.withheld.any() for thing in withholding)
    for thing in (group, assignment, comparison, proof, *withholding):
        page = Tags(thing._repr_html_())
        assert {tag for tag, _ in page.tags} <= {"p", "table", "tr", "td", "th"}
        assert {tuple(one) for _, attributes in page.tags for one in attributes} <= SIDES and harmless(page.text)
    assert all(shown(name) in Tags(group._repr_html_()).text for name in group.members)


@given(groups())
def test_displays_of_rebalances(group):
    live = LiveGroup("cooperative-sticky", group.topic_counts, group.details)
    live.crash(group.members[0])
    live.delete_topic(group.topics[0])
    for rebalance in live.history:
        assert harmless(repr(rebalance)) and rebalance.event.isprintable() and harmless(rebalance_words(rebalance))
        page = Tags(rebalance._repr_html_())
        assert {tag for tag, _ in page.tags} <= {"p", "table", "tr", "td", "th"} and harmless(page.text)
        members = {name for phase in rebalance.phases for name in phase.consuming}
        assert all(shown(name) in page.text for name in members)
        assert len(repr(rebalance).splitlines()) == 2 + len(members)


@given(groups())
def test_documents_give_names_back(group):
    again = Group.from_json(group.to_json())
    assert group_row(again) == group_row(group)
    assert (again.name, again.members, again.topics) == (group.name, group.members, group.topics)


@given(groups())
def test_tables(group):
    text = group.to_json()
    tables = [run(["compare", "-", "-s", "fair", "--moves"], text), run(["assign", "-", "-s", "fair"], text)]
    for done in tables:
        assert done.exit_code == 0 and harmless(done.stdout) and done.stderr == ""
        name = done.stdout.partition("\ncluster")[0].removeprefix("group ")        # several lines if it is long
        assert "".join(name.split()) == "".join(shown(group.name).split())
        inferred = "".join(f"- {shown(note.text)}" for note in group.notes)
        assert "".join(inferred.split()) in "".join(done.stdout.split())
    members = run(["assign", "-", "-s", "fair"], text, COLUMNS="2000").stdout.partition("\n\n")[2]      # not folded
    assert all(shown(name).rstrip() in members for name in group.members if len(shown(name)) <= 40)   # else shortened


@given(groups())
def test_a_terminal(group):
    with patch.dict(os.environ, TERM="dumb", COLUMNS="80"):
        for form in ("table", "json", "csv"):
            with redirect_stdout(Screen()) as screen:
                show_comparisons([compare(group, ["fair"])], form, moves=True)
                show_comparisons([compare(group, ["fair", "sticky"])], form, prove=True)
                show_assignment(assign(group, "fair"), form)
            assert harmless(screen.getvalue())
            if form == "table":
                bare = re.sub(r"\s", "", screen.getvalue())
                assert re.sub(r"\s", "", shown(group.name)) in bare


@given(groups())
def test_json_gives_names_back(group):
    text = group.to_json()
    compared = run(["compare", "-", "-s", "fair", "--moves", "--format", "json"], text)
    assigned = run(["assign", "-", "-s", "fair", "--format", "json"], text)
    for done in (compared, assigned):
        assert done.exit_code == 0 and harmless(done.stdout) and done.stdout.isascii() and error_is_a_line(done)
    [one] = json.loads(compared.stdout)
    assert (one["group_id"], one["cluster"], one["state"]) == (group.name, group.cluster, group.state)
    assert {move["topic"] for move in one["rows"][1]["moves"]} <= set(group.topics)
    lists = lambda answer: {member: [list(partition) for partition in owned] for member, owned in answer.items()}
    assert json.loads(assigned.stdout)["assignment"] == lists(assign(group, "fair"))
    answer = json.loads(run(["assign", "-", "-s", "cooperative-sticky", "--format", "json"], text).stdout)
    later = assign(group, "cooperative-sticky")
    assert answer["assignment"] == lists(later)
    assert answer.get("target") == (lists(assign(group, "sticky")) if later.withheld.any() else None)


@given(groups())
def test_csv_gives_names_back(group):
    text = group.to_json()
    rows = rows_of(run(["assign", "-", "-s", "fair", "--format", "csv"], text).stdout_bytes.decode())
    assert [(row["group_id"], row["topic"], int(row["partition"])) for row in rows] == [
        (group.name, *group.at(at)) for at in range(group.columns.size)]
    names_and_nobody = [*group.members, ""]
    assert [row["member"] for row in rows] == [names_and_nobody[at] for at in assign(group, "fair").owner]
    later = assign(group, "cooperative-sticky")
    rows = rows_of(run(["assign", "-", "-s", "cooperative-sticky", "--format", "csv"], text).stdout_bytes.decode())
    assert [row["member"] for row in rows] == [names_and_nobody[at] for at in later.owner]
    if later.withheld.any():
        assert [row["target"] for row in rows] == [names_and_nobody[at] for at in later.target]
    rows = rows_of(run(["compare", "-", "-s", "fair", "--format", "csv"], text).stdout_bytes.decode())
    assert [row["group_id"] for row in rows] == [group.name] * 2


@given(st.lists(st.tuples(names, names), max_size=3), names)
def test_rankings(needs, folder):
    said = {"need": "no-owner", "kind": 2, "affected": 7, "strategy": "fair",
            "reason": "7 subscribed partitions without an owner",
            "remedy": "fair: 7 placed", "steps": ["restart a dynamic member", "=1+1"]}
    ranking = [{"rank": rank, "cluster": cluster, "group_id": group, "time": None, "moment": None, **said}
               for rank, (cluster, group) in enumerate(needs, 1)]
    counts = dict.fromkeys(("files", "rows", "groups"), {"read": 1, "used": 1, "rejected": 0})
    found = {"rows": len(needs)} | dict.fromkeys(NEEDS, 0) | {"no-owner": len(needs)}
    tables = {"attention": found, "changes": {"new": 0, "persisting": 1, "resolved": 0}}
    run = SimpleNamespace(path=Path("run-1"), ranking=lambda first: ranking, rejected=0, counts=counts, tables=tables)
    with patch.dict(os.environ, TERM="dumb", COLUMNS="80"):
        for form in ("table", "json", "csv"):
            with redirect_stdout(Screen()) as screen:
                show_run(run, form, folder)
            with redirect_stdout(io.StringIO()) as pipe:
                show_run(run, form, folder)
            assert harmless(screen.getvalue()) and (form == "csv" or harmless(pipe.getvalue()))
            if form == "csv":
                assert [(row["cluster"], row["group_id"]) for row in rows_of(pipe.getvalue())] == needs
            if form == "json":
                assert json.loads(pipe.getvalue())["ranking"] == ranking


@given(groups(), names)
def test_errors_are_a_line(group, name):
    text = group.to_json()
    path = f"no/such/{name}".replace("\x00", "")
    for words in (["compare", "-", "--group", f"no {name}"], ["compare", "-", "-s", f"no {name}"],
                  ["compare", "-", "-s", f"fair:{name}=1"], ["compare", "-", "--format", name], ["compare", path],
                  [f"no {name}"], ["compare", "-", f"--no{name}"], ["assign", "-", "-s", "range", "-o", path]):
        done = run(words, text)
        assert done.exit_code in (2, 3) and done.stdout == "" and error_is_a_line(done), words


def as_java_prints(*lines):
    """Cells in columns, where a character beyond U+FFFF takes two places."""
    room = [[len(cell.encode("utf-16-be")) // 2 for cell in line] for line in lines]
    widths = [max(column) + 1 for column in zip(*room)]
    return "".join("".join(cell + " " * (width - own) for cell, own, width in zip(line, owns, widths)) + "\n"
                   for line, owns in zip(lines, room))


@given(names, names, names)
def test_tables_of_the_tool(group, member, client):
    """What the tool prints has no quotes: a name with an end of line in it cuts its row, which is then rejected."""
    text = as_java_prints("GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split(),
                          [group, "orders", "0", "5", "9", "4", member, "/10.0.0.1", client])
    for form in ("table", "json", "csv"):
        done = run(["compare", "-", "-s", "fair", "--format", form], text)
        assert done.exit_code in (0, 3)
        assert all(line.isprintable() for line in done.stderr.split("\n"))
        assert form == "csv" or harmless(done.stdout)
    if all(name.isprintable() and name == name.strip() != "-" for name in (group, member, client)):
        [one] = read_groups(text).values()
        assert (one.name, one.members, one.details[0].client_id) == (group, (member,), client)
