"""Output in other shapes: quoted, from logs of containers, of other tools; and text that is something else."""
import io
import json
import re
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st
from test_build import printed, printed_groups

from kafka_assign.snapshot import SnapshotError, read_groups, sources
from kafka_assign.snapshot.remarks import FOREIGN_TEXTS
from outputs import POSTED, SAMPLES, mangled, table

KAFKA = SAMPLES / "kafka-4.3.1"
DESCRIBE, MEMBERS, STATE = ((KAFKA / f"orders-billing.{what}.txt").read_text(encoding="utf-8")
                            for what in ("describe", "members-verbose", "state"))
WHOLE = read_groups(DESCRIBE + MEMBERS + STATE)["orders-billing"].to_json()
RPK = (POSTED / "rpk-describe.txt").read_text(encoding="utf-8")
RPK_JSON = (POSTED / "rpk-describe.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("prefix", [
    "> ", "> > ", ">", "kafka-0  | ", "kafka-0 |", "broker_1| ", "2026-11-20T06:30:00.123456789Z ",
    "2026-11-20T06:30:00+00:00 stdout F ", "[2026-11-20 06:30:00,123] ", "kafka-0  | 2026-11-20 06:30:00 ",
    "[pod/kafka-0/kafka] ", "Nov 20 06:30:01 host1 kafka-check[123]: ", "Nov  2 06:30:01 host1 cron: "])
@pytest.mark.parametrize("repeat", [1, 40])
def test_what_precedes_every_line_is_removed(prefix, repeat):
    """Line by line, and by the block."""
    text = "".join(prefix + line for line in (DESCRIBE * repeat + MEMBERS + STATE).splitlines(keepends=True))
    groups = read_groups(text)
    assert (groups.rejects, groups.read) == ([], 18 + 4 + 1)
    assert groups["orders-billing"].to_json() == WHOLE


def test_times_of_a_log_may_differ_in_length():
    lines = (DESCRIBE + MEMBERS + STATE).splitlines(keepends=True)
    text = "".join(f"2026-11-20T06:30:00.{'1' * (number % 9 + 1)}Z {line}" for number, line in enumerate(lines))
    assert read_groups("Attaching to kafka-0\n" + text)["orders-billing"].to_json() == WHOLE


@pytest.mark.parametrize("size", [1, 100, 1 << 22])
def test_the_size_of_blocks_does_not_matter(size):
    noise = "kafka-0 | INFO GROUP BY a CONSUMER-ID of a TOPIC\n" * 400
    text = noise + "".join(f"kafka-0 | {line}" for line in (DESCRIBE + MEMBERS + STATE).splitlines(keepends=True))
    with patch.object(sources, "BLOCK_BYTES", size):
        groups = read_groups(io.BytesIO(text.encode()))
    assert groups["orders-billing"].to_json() == WHOLE and groups.read == groups.used == 23


def test_nothing_is_removed_without_such_a_header():
    text = "2026-11-20 06:30:00 INFO GROUP BY 7\n" + DESCRIBE
    assert {entry.kind for entry in read_groups(text).ignored} == {"log", "header"}


@pytest.mark.parametrize("text, rows", [(RPK, 5), (RPK_JSON, 7)], ids=["text", "json"])
def test_rpk(text, rows):
    groups = read_groups(text)
    group = groups["billing"]
    assert (groups.rejects, groups.read, groups.used) == ([], rows, rows)
    assert (group.state, group.strategy) == ("Stable", "range")
    assert group.offsets.committed.tolist() == [3004, 1796, -1, 7] and group.lag.tolist() == [8, 4, 0, 0]
    assert group.previous.tolist() == [1, 1, 0, -1]
    assert [(m.client_id, m.instance_id, m.host) for m in group.details] == [
        ("etl", "etl-static", "10.0.0.2"), ("web", None, "10.0.0.1")]
    assert "1 partition without a commit: counted as lag 0" in group.inferred


def test_rpk_prints_several_groups():
    other = RPK.replace("billing", "night  ").replace("Stable", "Empty ")
    groups = read_groups(RPK + "\n" + other)
    assert list(groups) == ["billing", "night"] and [group.state for group in groups.values()] == ["Stable", "Empty"]
    assert (groups.read, groups.used, groups.rejects) == (10, 10, [])
    both = json.dumps(json.loads(RPK_JSON) + json.loads(RPK_JSON.replace("billing", "night")))
    assert list(read_groups(both + "\n")) == ["billing", "night"]


@pytest.mark.parametrize("length", range(1, len(RPK.splitlines()[9])))
def test_a_truncated_row_of_rpk_costs_itself_only(length):
    """Cut behind its lag, a row shows a partition without an owner; nothing can tell."""
    lines = RPK.splitlines()
    header = lines[8]
    lines[9] = lines[9][:length]
    groups = read_groups("\n".join(lines))
    assert groups.read == groups.used + groups.rejected == 5
    whole = header.index("LAG") < length <= header.index("MEMBER-ID")
    assert groups.rejected == (0 if whole else 1)


@pytest.mark.parametrize("line", [
    "orders 0 3004 2 3012 8 m c", "orders 0 3004 2 3012 8 m", "GROUP  MEMBER-ID", "TOPIC MEMBER-ID HOST"])
def test_a_line_of_rpk_that_lacks_columns(line):
    """Their last column is the host; a row or header without all columns is one reject, or no table."""
    squeezed = "GROUP    g\nMEMBERS  1\nTOPIC PARTITION CURRENT-OFFSET LOG-START-OFFSET LOG-END-OFFSET LAG MEMBER-ID " \
               "CLIENT-ID HOST\norders 1 3004 2 3012 8 m c h\n"
    groups = read_groups(RPK + "\n" + squeezed + line + "\n")
    assert groups.read == groups.used + groups.rejected and "billing" in groups


def test_a_row_below_a_summary_needs_a_header_of_its_own():
    """Otherwise it would be a row of the group before."""
    groups = read_groups(RPK + "\n" + "GROUP    night\nSTATE    Empty\nMEMBERS  0\n" + RPK.splitlines()[9] + "\n")
    assert list(groups) == ["billing", "night"] and groups["night"].topics == () and groups.repeated == 0
    assert groups.read == groups.used == 6 and "text" in {entry.kind for entry in groups.ignored}


def test_the_answer_of_burrow_is_no_group():
    """Its JSON has no member ids and no end offsets."""
    partition = {"topic": "t", "partition": 0, "owner": "/h", "client_id": "c", "end": {"offset": 10}, "current_lag": 5}
    text = json.dumps({"status": {"group": "g", "partitions": [partition]}}) + "\n"
    with pytest.raises(SnapshotError, match="line 1: no group here .json.: JSON without topics and members of a group"):
        read_groups(text)
    groups = read_groups([io.StringIO(text), DESCRIBE])
    assert [(entry.kind, entry.lines) for entry in groups.ignored if entry.kind == "json"] == [("json", 1)]


ODD = [None, -2, 2.5, 10**20, "x", [], {}, [7], True]


def test_odd_values_are_one_complaint():
    """Any value of the JSON replaced by another: groups whose account adds up, or one line that says what is wrong."""
    def replaced(value, path, odd):
        if not path:
            return odd
        copy = value.copy()
        copy[path[0]] = replaced(value[path[0]], path[1:], odd)
        return copy

    def paths(value, path=()):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, part in items:
            yield (*path, key)
            yield from paths(part, (*path, key))

    document = json.loads(RPK_JSON)
    for path in paths(document):
        for odd in ODD:
            try:
                groups = read_groups(json.dumps(replaced(document, path, odd)) + "\n")
            except SnapshotError as error:
                assert str(error).startswith("<text>: ") and str(error).isprintable()
            else:
                assert groups.read == groups.used + groups.rejected


@pytest.mark.parametrize("line, looks", [
    ("Topic: orders\tPartitionCount: 3\tReplicationFactor: 1", "what kafka-topics.sh prints"),
    ('kafka_consumergroup_lag{consumergroup="g",topic="t",partition="0"} 7', "metrics of Prometheus"),
    ('# HELP lag Current\nlag{topic="t"} 7', "metrics of Prometheus"),
    ("<!doctype html>", "HTML or XML"), ("group: shop", "YAML"), ("group,topic,partition,lag", "comma-separated text"),
    ("| group | topic |", "a table of Jira or Markdown"),
    ("CONSUMER GROUP   STATE    TOPIC     PARTITION  CURRENT OFFSET", "a table of ns4kafka, which has no owners")])
def test_text_that_is_something_else_says_what_it_looks_like(line, looks):
    with pytest.raises(SnapshotError) as caught:
        read_groups(line + "\n")
    assert f"(it looks like {looks}); save what kafka-consumer-groups.sh --describe --all-groups prints" in str(
        caught.value)


def test_every_kind_of_foreign_text_is_tested():
    marks = test_text_that_is_something_else_says_what_it_looks_like.pytestmark[0].args[1]
    assert {looks for _, looks in marks} == {looks for looks, _ in FOREIGN_TEXTS} - {"what rpk cluster offsets prints"}


def test_another_command_of_rpk_shows_the_owners():
    with pytest.raises(SnapshotError, match="rpk cluster offsets prints.; save what rpk group describe GROUP prints"):
        read_groups("  GROUP  TOPIC  PARTITION  LAG  LAG %  COMMITTED OFFSET  LATEST OFFSET  CONSUMER ID\n")


def test_prefixed_streams():
    text = "".join("> " + line for line in DESCRIBE.splitlines(keepends=True))
    assert list(read_groups(io.BytesIO(text.encode()))) == ["orders-billing"]


# --- rows from grep, text after tables -----------------------------------------------------------------------------

ROWS = DESCRIBE.split("\n", 2)[2].splitlines()
PREFIXES = [lambda at, row: f"{at + 13}:{row}", lambda at, row: f"orders.describe.txt:{row}",
            lambda at, row: f"./captures/a.log:{at + 3}:{row}"]


@pytest.mark.parametrize("prefixed", PREFIXES)
def test_what_grep_adds_to_a_table_is_removed(prefixed):
    table = DESCRIBE.strip("\n").splitlines()
    [group] = read_groups("".join(prefixed(at, row) + "\n" for at, row in enumerate(table))).values()
    assert group == read_groups(DESCRIBE)["orders-billing"]


@pytest.mark.parametrize("prefixed", [lambda at, row: row, *PREFIXES])
def test_rows_without_their_header_are_no_table(prefixed):
    """Nothing tells what their cells mean; each line is counted."""
    text = "".join(prefixed(at, row) + "\n" for at, row in enumerate(ROWS))
    with pytest.raises(SnapshotError, match="line 1: no group here .text.: no output of kafka-consumer-groups.sh"):
        read_groups(text)
    groups = read_groups([io.StringIO(text), DESCRIBE])
    assert [(entry.kind, entry.lines) for entry in groups.ignored if entry.source == "<stream>"] == [("text", 18)]


@pytest.mark.parametrize("fence", ["```\n", "~~~\n", "```text\n"])
def test_fences_are_ignored(fence):
    groups = read_groups(fence + DESCRIBE + fence)
    assert groups.rejects == [] and groups.read == 18
    assert [entry.lines for entry in groups.ignored if entry.kind == "text"] == [2]
    assert groups["orders-billing"] == read_groups(DESCRIBE)["orders-billing"]


@pytest.mark.parametrize("after", [
    "\nI restarted broker 2 at 10:30, then it was fine.\n", "\n--\nJane Doe, team 7\n", "Thanks, Jane\n",
    "\nWe have 12 partitions - see TICKET-4711 for the other 3 topics, and what was done in the end.\n"])
def test_text_around_a_table(after):
    """Above the first header it is ignored; below, it may be a damaged row, so it is a reject."""
    groups = read_groups("We see this:\n\n" + DESCRIBE + after)
    lines = sum(bool(line.strip()) for line in after.splitlines())
    assert len(groups.rejects) == lines and groups.read == 18 + lines and groups.used == 18
    assert [entry.lines for entry in groups.ignored if entry.kind == "text"] == [1]
    assert groups["orders-billing"] == read_groups(DESCRIBE)["orders-billing"]


@pytest.mark.parametrize("damaged", [
    ROWS[3][:60], ROWS[3][:20], ROWS[3].replace("/127", " 127"), "x" + ROWS[3], "\n" + ROWS[3][:60],
    "\n" + ROWS[3].replace("  0  ", " zero", 1), "\n" + ROWS[3][:30]])
def test_a_damaged_row_after_a_table_is_a_reject(damaged):
    groups = read_groups(DESCRIBE + damaged + "\n")
    assert len(groups.rejects) + len(groups) + groups.repeated >= 2 and groups.read == groups.used + len(groups.rejects)


@pytest.mark.parametrize("change, words", [
    (lambda line: "| " + " | ".join(line.split()) + " |", "it looks like a table of Jira or Markdown"),
    (lambda line: ",".join(line.split()), "it looks like comma-separated text"),
    (lambda line: line[:80], "the lines are wrapped or cut"),
    (lambda line: line[:60] + "\n" * line.count("7") + line[60:110] + "\n" + line[110:], "save the output with")])
def test_the_message_says_what_happened_to_a_table(change, words):
    with pytest.raises(SnapshotError) as caught:
        read_groups("".join(change(line) + "\n" for line in DESCRIBE.strip().splitlines()))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_an_empty_line_behind_a_prefix_is_blank():
    groups = read_groups("".join(f"kafka-1  | {line}" for line in DESCRIBE.splitlines(keepends=True)))
    assert {entry.kind for entry in groups.ignored} == {"header"} and groups.read == 18


# --- terminals ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("color", ["\x1b[32m{}\x1b[0m", "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K", 
                                   "\x1b[38;2;1;2;3m{}\x1b[?25h",
                                   "\x1b]0;title\x07{}"])
@pytest.mark.parametrize("word", ["GROUP", "orders-billing", "CLIENT-ID", "range"])
def test_colors_are_removed(color, word):
    text = DESCRIBE + MEMBERS + STATE
    groups = read_groups(text.replace(word, color.format(word)))
    assert groups["orders-billing"].to_json() == WHOLE and groups.rejects == []
    lines = "".join(color.format(line) + "\n" for line in text.splitlines())
    assert read_groups(lines)["orders-billing"].to_json() == WHOLE


@pytest.mark.parametrize("blank, pasted_as", [(" ", "\xa0"), ("  ", "\xa0 "), ("  ", " \xa0")])
def test_non_breaking_spaces_of_pasted_text_are_blanks(blank, pasted_as):
    """Some programs make them of all blanks, or of every second one. Where the header has none, a name has them."""
    rows = [["g", topic, 0, 5, 9, 4, "consumer-g-1-64e50cad", "/h", "c"] for topic in ("t", "u\xa0v")]
    text = table("GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split(), *rows)
    pasted = read_groups(text.replace("\xa0", "_").replace(blank, pasted_as))
    [plain], [group] = read_groups(text).values(), pasted.values()
    assert (plain.topics, group.topics, pasted.rejects) == (("t", "u\xa0v"), ("t", "u_v"), [])
    assert group.lag.tolist() == plain.lag.tolist() == [4, 4] and group.members == plain.members


def test_half_a_color_costs_its_row_only():
    lines = DESCRIBE.splitlines(keepends=True)
    for at in range(0, len(lines[3]), 7):
        damaged = lines[3][:at] + "\x1b[" + lines[3][at:]
        groups = read_groups("".join([*lines[:3], damaged, *lines[4:]]))
        assert groups.read == groups.used + groups.rejected == 18 and groups.rejected <= 1


def test_wrapped_at_different_places_is_one_reject_for_each_line():
    lines = DESCRIBE.strip().splitlines()
    text = "\n".join([lines[0][:90], lines[0][90:], *(part for at, line in enumerate(lines[1:])
                                                      for part in (line[:90 - at * 4], line[90 - at * 4:]))])
    with pytest.raises(SnapshotError, match="and not all in the same place: save the output with `> file.txt`"):
        read_groups(text + "\n")
    groups = read_groups(text + "\n\n" + DESCRIBE.replace("orders-billing", "another-group1"))
    assert [*groups] == ["another-group1"] and (groups.used, groups.rejected) == (18, 36)


@st.composite
def wrapped_tables(draw):
    """Tables of a group, each broken by a terminal or between cells, and the text without breaks."""
    topics, ids, owner, known, instance = draw(printed_groups())
    without_commits = {partition: (-1, end) for partition, (_, end) in known.items()}      # so that LAG is right
    members, offsets = printed("g", (topics, ids, owner, without_commits, instance))
    def by_width(table, least):
        width = draw(st.integers(least, len(table.strip().splitlines()[0]) - 1))
        return "".join(line[at:at + width] + "\n" for line in table.splitlines()
                       for at in range(0, len(line) or 1, width))
    def by_cells(table):
        count = draw(st.integers(2, 8))
        return "\n" + "".join(f"{' '.join(words[:count])}\n{' '.join(words[count:])}\n"
                              for words in map(str.split, table.strip().splitlines()))
    return members + offsets, by_width(members, 40) + draw(st.sampled_from([by_cells(offsets), by_width(offsets, 30)]))


@given(wrapped_tables())
def test_wrapped_lines_are_read_as_if_they_were_not(tables):
    plain, wrapped = (read_groups(text) for text in tables)
    assert wrapped["g"] == plain["g"] and wrapped.rejects == plain.rejects == []
    assert (wrapped.read, wrapped.used) == (plain.read, plain.used)


@given(wrapped_tables(), st.integers(0, 2**32), st.integers(1, 4))
def test_damaged_wrapped_lines(tables, seed, count):
    text = mangled(tables[1].splitlines(keepends=True), seed, count)
    try:
        groups = read_groups(text + "\n")
    except SnapshotError as error:
        assert str(error).isprintable()
    else:
        assert groups.read == groups.used + groups.rejected


def test_a_wrapped_table_among_others():
    """Other tables before and after it, a prompt, and an end without a newline."""
    lines, alone = DESCRIBE.strip().splitlines(), read_groups(DESCRIBE)["orders-billing"]
    broken = "\n".join(part for line in lines for part in (line[:100], line[100:]))
    for before, after in ("", ""), (MEMBERS, ""), ("", STATE), (MEMBERS, "$ date\n" + STATE), (STATE + "\n", MEMBERS):
        groups = read_groups(before + broken + "\n" + after)
        assert groups.rejects == [] and groups["orders-billing"].lag.tolist() == alone.lag.tolist()
    assert read_groups(broken)["orders-billing"].columns.size == 18
    with pytest.raises(SnapshotError, match="make the terminal wider"):
        read_groups(broken.replace(lines[5][:100], lines[5][:60] + "\n" + lines[5][60:100]))


def test_a_header_in_three_lines():
    columns = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    lines = [columns, *(["g", "t", str(number), "5", "9", "4", f"m-{number}", "/h", "c"] for number in range(4))]
    text = "".join(" ".join(line[at:at + 3]) + "\n" for line in lines for at in (0, 3, 6))
    groups = read_groups(text)
    assert groups.rejects == [] and groups["g"].previous.tolist() == [0, 1, 2, 3]
    assert read_groups(text + "\n" + DESCRIBE)["orders-billing"] == read_groups(DESCRIBE)["orders-billing"]


def test_a_row_as_long_as_the_terminal_is_wide_may_end_there():
    columns = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    text = table(columns, *(["g", "t", number, 5, 9, 4, f"m-{number}", "/h", "c" * size]
                            for number, size in enumerate((12, 3, 3, 12, 3))))
    width = len(text.strip().splitlines()[2])
    assert width < len(text.strip().splitlines()[0])
    wrapped = "".join(line[at:at + width] + "\n" for line in text.strip().splitlines()
                      for at in range(0, len(line), width))
    groups = read_groups(wrapped)
    assert groups.rejects == [] and groups["g"] == read_groups(text)["g"]


def test_squeezed_rows_of_a_state():
    groups = read_groups(DESCRIBE + re.sub(" +", " ", STATE))
    assert groups.rejects == [] and groups["orders-billing"].strategy == "sticky"
    columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    shifted = table(columns, ["orders-billing", "k:9092 (1)", "range", "Stable", 3]).replace("range ", "range    ")
    assert read_groups(DESCRIBE + shifted)["orders-billing"].state == "Stable"
    for damaged in ("k:9092", "range"), ("k:9092 (1)", "k (1)"), ("range ", ""):
        assert read_groups(DESCRIBE + shifted.replace(*damaged)).rejected == 1


# --- cells ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("cell, owned", {
    "t_3(1),t_2(4)": [("t_2", 4), ("t_3", 1)], "t(0,1),u(0), v(2)": [("t", 0), ("t", 1), ("u", 0), ("v", 2)],
    "t(0)": [("t", 0)], "t:0,1;u:2": [("t", 0), ("t", 1), ("u", 2)]}.items())
def test_assignments_without_blanks(cell, owned):
    columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
    text = table(columns, ["g", "m", "/h", "c", len(owned), cell], ["g", "n", "/h", "c", 0, "-"])
    for one in text, re.sub(" +", " ", text):
        groups = read_groups(one)
        assert groups.rejects == [] and [[*member.owned] for member in groups["g"].details] == [owned, []]
    for damaged in (cell[:-1], cell + ",", cell + ";", "," + cell, cell.replace(",", ",,"),
                    cell.replace("t", "", 1) + "("):
        if damaged != cell:
            groups = read_groups(text.replace(cell, damaged))
            assert [reject.reason.partition(" (got ")[0] for reject in groups.rejects] in (
                [], ["an assignment must name partitions, as topic(0,1) or topic:0,1"],
                ["ASSIGNMENT must name #PARTITIONS partitions, here " + str(len(owned))],
                ["a row must end with the line"])
            assert not groups.rejects or groups["g"].members == ("n",)


CLIENT = "main@worker-7 (github.com/segmentio/kafka-go)"


@pytest.mark.parametrize("client", [CLIENT, "a b", "x /y z", "plain"])
def test_client_ids_with_blanks_in_squeezed_rows(client):
    """As those of kafka-go: the member id begins with the client id."""
    columns = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID".split()
    id = f"{client}-3fc8d6f1-581a-4472-bdf3-3515b4aee8c1"
    text = table(columns, *(["g", "t", number, 5, 9, 4, id, "/10.0.0.1", client] for number in range(3)))
    group = read_groups(text)["g"]
    assert group.members == (id,)
    squeezed = read_groups(re.sub(" +", " ", text))
    assert squeezed["g"] == group and squeezed.rejects == []
    with pytest.raises(SnapshotError, match="must line up with its header up to CLIENT-ID"):
        read_groups(re.sub(" +", " ", text.replace(f"/10.0.0.1 {client}", f"/10.0.0.1 {client} x")))
