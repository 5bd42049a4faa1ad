"""Pictures: the same bytes every time, any name, any size, and words that say what the picture shows."""
import io
import json
import pickle
import re
import subprocess
import sys
import time
import warnings
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_assign import Assignment, Group, Member, assign, compare
from kafka_assign.reports.draw import (
    _NARROW, _TONES, _WITHHELD, AMBER, HUES, INK, KEPT, MOST_ROWS, MOVED, NAMED_LOOKS, PLACED, QUIET, TEXT, TRACK,
    Drawing, Look, Picture, Scene, looks, marks)
from kafka_assign.reports.words import MOST_NAMED, describe

matplotlib = pytest.importorskip("matplotlib")
from PIL import Image  # noqa: E402

from kafka_assign.reports.pictures import _titled, plot  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
TOPICS = {"t0": 1, "t1": 2, "t2": 3}
MEMBERS = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}


def example():
    """KIP-54's second example: before, and after C0 left."""
    before = assign(Group(TOPICS, MEMBERS), "roundrobin")
    left = before.group.replace(owned=before).leave("C0")
    return before, assign(left, "roundrobin"), assign(left, "fair")


SVG = "{http://www.w3.org/2000/svg}"


def svg(picture):
    """The elements of a picture as notebooks and the site show it."""
    return ElementTree.fromstring(picture._repr_svg_())


def png(picture):
    file = io.BytesIO()
    picture.savefig(file, format="png")
    return file.getvalue()


def pixels(picture):
    return np.array(Image.open(io.BytesIO(png(picture))).convert("RGBA"))


def quietly(*what):
    """A picture of `what` that is shown; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = plot(*what)
        shown = svg(picture)
    assert sorted(text.text for text in shown.iter(f"{SVG}text")) == sorted(filter(None, texts(picture)))
    return picture


# --- bytes -------------------------------------------------------------------------------------------------------

def test_same_bytes_again():
    assert plot(*example())._repr_svg_() == plot(*example())._repr_svg_()


def test_same_bytes_in_any_style():
    drawn = plot(*example())._repr_svg_()
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "path.sketch": (1, 100, 2), "figure.dpi": 30,
                                "savefig.bbox": "tight", "savefig.facecolor": "red", "font.family": "monospace",
                                "patch.linewidth": 9, "text.parse_math": False, "axes.xmargin": 3,
                                "svg.fonttype": "path", "svg.hashsalt": "x", "hatch.linewidth": 5}):
        assert plot(*example())._repr_svg_() == drawn


def test_same_bytes_in_another_process():
    code = ("import sys; sys.path.insert(0, 'tests'); from test_pictures import *;"
            "print(plot(*example())._repr_svg_(), plot(joined())._repr_svg_())")
    run = [subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                          env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}) for seed in ("1", "2")]
    assert run[0].stdout == run[1].stdout != ""


def test_a_page_gets_the_picture_and_nothing_else():
    """No date and version, no style for the whole page, no fonts of this machine, only names of hatches and copies."""
    shown = plot(*example(), joined())._repr_svg_()
    assert not re.search("matplotlib|metadata|<style|DejaVu|patch_|20[0-9][0-9]-", shown, re.I)
    assert "<g" not in plot(joined())._repr_svg_()
    hatches = re.findall(r' id="(\w+)"', shown)
    assert len(hatches) == len(set(hatches)) > 0
    assert set(re.findall(r"url\(#(\w+)\)|href=\"#(\w+)", shown)) == {
        ("", name) if name.startswith("p") else (name, "") for name in hatches}
    others = re.findall(r' id="(\w+)"', plot(joined())._repr_svg_())
    assert others and not set(others) & set(hatches)              # they may stand on the same page


@pytest.mark.parametrize("suffix,start", [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF-")])
def test_it_is_a_figure_of_matplotlib(suffix, start, tmp_path):
    picture = plot(*example())
    assert isinstance(picture, matplotlib.figure.Figure)
    picture.savefig(tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes().startswith(start)
    again = pickle.loads(pickle.dumps(picture))
    assert (again.words, again._repr_svg_()) == (picture.words, picture._repr_svg_())


def test_without_matplotlib_it_says_what_to_install():
    code = ("import sys; sys.modules['matplotlib'] = None; from kafka_assign import *;"
            "one = assign(Group({'t': 2}, {'a': ['t']}), 'range'); print(describe(one).count('t-0'))\n"
            "try: plot(one)\nexcept ImportError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1\nthis needs matplotlib: pip install 'kafka_assign[plot]'\n"


def test_no_figure_is_left_in_pyplot():
    code = ("import sys; from kafka_assign import *; from kafka_assign.reports.pictures import plot;"
            "plot(assign(Group({'t': 2}, {'a': ['t']}), 'range'))._repr_svg_();"
            "assert 'matplotlib.pyplot' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# --- what is seen ------------------------------------------------------------------------------------------------

def test_ground_is_the_same_on_light_and_dark_pages():
    seen = pixels(plot(*example()))
    assert (seen[20:-20, 20:-20, 3] >= 250).all()                # nothing shines through the background


def test_letters_are_not_small():
    """In the page a picture has its own size, so that these are pixels on the screen."""
    for width, one in [(760, example()), (_NARROW, [shape(41, 5, 5)]), (_NARROW, [joined()])]:
        root = svg(plot(*one))
        assert root.get("width") == str(width) == root.get("viewBox").split()[2]
        sizes = [float(re.search(r"font-size: (\S+?)px", text.get("style"))[1]) for text in root.iter(f"{SVG}text")]
        assert min(sizes) == TEXT == 12


def test_the_site_replaces_the_tones_of_the_paper():
    """All colors but those of topics and marks, which are read on light and dark."""
    answers = [*example()], [shape(41, 5, 5)], [shape(3, 20, 2)], [joined()], [shape(2, 2, 900)]
    shown = "".join(re.sub("<text.*?>[^<]*", lambda text: text[0].partition(">")[0], plot(*one)._repr_svg_())
                    for one in answers)
    variables = {f"var(--picture-{name}, {tone})" for name, tone in _TONES.items()}
    assert set(re.findall(r"var\(.*?\)", shown)) == variables
    kept = {*(color for look in [*looks(18), *looks(30)] for color in look), AMBER, "#7d838c"}
    assert set(re.findall("#[0-9a-f]{6}", re.sub(r"var\(.*?\)", "", shown))) <= kept
    for theme in ("dark", "light"):
        [line] = re.findall(r"(?m)^\$picture: .*$", (ROOT / f"nbs/theme/{theme}.scss").read_text(encoding="utf-8"))
        named = set(re.findall(r"(\w+): ", line)) - {"picture"}
        assert named == set(_TONES) if theme == "dark" else named < set(_TONES)


def test_a_color_is_replaced_only_where_something_is_painted():
    names = [*_TONES.values(), "fill: #eef1f5", 'style="fill: #eef1f5"']
    picture = quietly(assign(Group(dict.fromkeys(names, 1), {"#1c2430": names}), "range"))
    assert "var(" not in "".join(texts(picture)) and "#1c2430" in texts(picture)


def test_what_moved_is_amber_and_nothing_else():
    before, moved, _ = example()
    assert AMBER not in HUES and AMBER not in plot(before)._repr_svg_()
    outlines = [one for one in svg(plot(moved)).iter(f"{SVG}path") if f"stroke: {AMBER}" in one.get("style")]
    assert len(outlines) == moved.moved.sum() + 1                 # and one in the legend


def test_marks_are_seen_without_color():
    before, moved, _ = example()
    same = Assignment(moved.group.replace(owned=moved), moved.owner, moved.strategy)
    seen = [Image.fromarray(pixels(plot({"x": one}))) for one in (moved, same)]
    grey = [np.array(one.convert("L"), int)[140:230, :900] for one in seen]         # the cells of both rows
    assert (np.abs(grey[0] - grey[1]) > 100).mean() > 0.002


def brightness(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts))


@pytest.mark.parametrize("count", [18, 40, 1000])
def test_text_on_cells_has_contrast(count):
    for fill, ink in [*(look[:2] for look in looks(count)), (TRACK, INK), (TRACK, QUIET)]:
        low, high = sorted([brightness(fill), brightness(ink)])
        assert (high + 0.05) / (low + 0.05) >= 4.5, (fill, ink)


def without_green(color):
    """How a color looks to people without green cones (Machado, Oliveira and Fernandes 2009), linear light."""
    parts = np.array([int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]])
    return np.clip(seen @ linear, 0, 1) ** (1 / 2.4)


def test_colors_stay_apart_without_green():
    assert min(np.abs(without_green(one) - without_green(other)).max()
               for i, one in enumerate(HUES) for other in HUES[:i]) > 0.15


def test_neighbours_differ_in_grey():
    grey = [brightness(hue) for hue in HUES]
    assert min(max(a, b) / min(a, b) for a, b in zip(grey, grey[1:])) > 1.5
    assert brightness(INK) < min(grey) / 5


def test_every_partition_is_drawn_once_in_its_owners_row():
    for one in example():
        scene = Scene([one], ["one"])
        cells = scene.cells(0)
        drawn = {(scene.topics[topic], number): row for row, topic, number in zip(cells.row, cells.topic, cells.number)}
        assert len(drawn) == len(cells.row) == one.group.columns.size
        for (topic, number), row in drawn.items():
            assert (topic, number) in one[scene.members[row]]


def test_only_changes_are_marked():
    _, moved, fair = example()
    assert marks(fair).tolist() == [PLACED, 0, MOVED, 0, 0, 0]
    assert (marks(moved) == MOVED).sum() == moved.moved.sum() == 2


@pytest.mark.parametrize("look", [*looks(18), Look(TRACK, INK)], ids=str)
def test_moved_and_placed_are_told_apart_at_a_third_of_their_size_and_without_color(look):
    """The edge of a moved cell is dark or amber all around; that of a placed one is mostly the paper."""
    def seen(mark):
        picture = Picture(30, width=36)
        picture.cell(6, 3, 24, 24, look, mark)
        file = io.BytesIO(png(picture))
        return np.array(Image.open(file).convert("RGBA").convert("L").resize((12, 10), Image.Resampling.BOX), int)
    moved, placed, kept = (seen(mark)[1:9, 2:10] for mark in (MOVED, PLACED, KEPT))
    assert np.abs(moved - placed).mean() > 25 and np.abs(moved - kept).mean() > 15 < np.abs(placed - kept).mean()


# --- on a phone --------------------------------------------------------------------------------------------------

def many_panels():
    """Pictures of two to six panels, some with hatches, long names, lag, or only bars."""
    before, *_ = example()
    lag = Group({"orders": 4}, {"billing-1-of-the-first-team": ["orders"], "billing-2": ["orders"]},
                lag={"orders": [120, 80, 15, 4300]})
    return [example(), (joined(), at_once(joined())), [before] * 4, [before] * 5, [compare(lag, ["range", "lag"])],
            [shape(41, 5, 5)] * 6, [joined({"t": 600})] * 2]


def on_a_phone(picture):
    """Each text of a stacked picture as often as a phone shows it: words, left, top, right, bottom."""
    for text in picture.paper.texts:
        box = text.get_window_extent().transformed(picture.dpi_scale_trans.inverted())
        for x, y in picture._places[int(text.get_gid().removeprefix("place"))]:
            top = picture.height - 72 * box.y1
            yield text.get_text(), 72 * box.x0 + x, top + y, 72 * box.x1 + x, top + 72 * box.height + y


@pytest.mark.parametrize("number", range(7))
def test_panels_are_stacked_on_a_phone(number):
    """Nothing is cut off, nothing overlaps, and the names of members are beside each panel."""
    what = many_panels()[number]
    picture = plot(*what)
    width, height = picture.stacked
    found = sorted(on_a_phone(picture), key=lambda one: one[2])
    assert _NARROW <= width < 1.2 * _NARROW
    for at, (words, left, top, right, bottom) in enumerate(found):
        assert 0 <= left and right <= width and 0 <= top and bottom <= height, words
        assert not any(left < r and one < right and top < b and two < bottom for _, one, two, r, b in found[:at]), words
    names = {text.get_text() for text in picture.paper.texts if text.get_ha() == "right"}
    shown, panels = [words for words, *_ in found], len(_titled(what))
    assert names and all(shown.count(name) >= panels for name in names), shown


def shown_in_browser(picture, width, folder):
    """What Chromium shows of a picture in a page so wide: words or tag, and their boxes in pixels."""
    from browser import find_chromium
    rules = (ROOT / "nbs/theme/site.scss").read_text(encoding="utf-8")
    phone = re.search(r"(?ms)^@media .*?^}", rules)[0]
    style = re.sub(r"//.*", "", phone).replace("$line", "gray")
    page = f"<!doctype html><style>body {{ margin: 0 }} {style}</style>{picture._repr_svg_()}"
    (folder / "page.html").write_text(page, encoding="utf-8")
    (folder / "frame.html").write_text(f"""<!doctype html><iframe src="page.html" style="width: {width}px; border: 0">
</iframe><script>onload = () => {{ const inside = document.querySelector("iframe").contentDocument;
document.body.textContent = JSON.stringify([...inside.querySelectorAll("svg, text, use")].map(one => {{
const box = one.getBoundingClientRect();
return [one.textContent.trim() || one.tagName, box.left, box.top, box.right, box.bottom]; }})); }}</script>""")
    done = subprocess.run([find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                           "--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}",
                           f"file://{folder / 'frame.html'}"], capture_output=True, text=True, check=True)
    return json.loads(unescape(re.search("(?s)<body>(.*)</body>", done.stdout)[1]))


@pytest.mark.needs("browser")
def test_a_browser_stacks_panels_only_on_a_phone(tmp_path):
    picture = plot({"first": example()[0], "second": example()[1]})
    [frame, *wide] = shown_in_browser(picture, 800, tmp_path)
    heads = {words: (left, top) for words, left, top, *_ in wide}
    assert frame[1:] == [0, 0, 760, picture.height] and heads["first"][1] == heads["second"][1]
    assert [right - left for words, left, _, right, _ in wide if words == "use"] == [0]
    [frame, *phone] = shown_in_browser(picture, 366, tmp_path)
    heads = {words: (left, top) for words, left, top, *_ in phone}
    assert heads["first"][0] == pytest.approx(heads["second"][0]) and heads["first"][1] + 60 < heads["second"][1]
    assert all(0 <= left < right <= 366 and bottom <= frame[4] for _, left, _, right, bottom in phone)
    assert min(bottom - top for _, _, top, _, bottom in phone) >= 10
    [names] = [one for one in phone if one[0] == "use"]
    assert (names[1] < heads["second"][0]) and names[2] > heads["second"][1]


# --- withheld partitions -----------------------------------------------------------------------------------------

def joined(topics=None, old="old", new="new"):
    """One member owns everything, and another one joins: before the second rebalance."""
    topics = topics or {"t": 4, "u": 2}
    group = Group(topics, dict.fromkeys([old, new], list(topics)),
                  owned={old: [(topic, number) for topic, count in topics.items() for number in range(count)]})
    return assign(group, "cooperative-sticky")


def at_once(one):
    """The same assignment with nothing withheld."""
    return Assignment(one.group, one.target, one.strategy)


def texts(picture):
    return [artist.get_text() for artist in picture.paper.texts]


def hatched(picture):
    """The corners of the hatched boxes: x, y, width, height."""
    return [patch.get_bbox().bounds for patch in picture.paper.patches if patch.get_hatch()]


def test_withheld_is_added_to_the_mark():
    one = joined()
    assert one.withheld.sum() == 3
    assert (marks(one) == np.where(one.withheld, MOVED + _WITHHELD, KEPT)).all()
    assert (marks(at_once(one)) == np.where(one.withheld, MOVED, KEPT)).all()
    twice = Group({"t": 1, "u": 1}, [Member("a", ["t", "u"], owned=[("t", 0), ("u", 0)], generation=5),
                                     Member("b", ["t"], owned=[("t", 0)], generation=5)])
    assert marks(assign(twice, "cooperative-sticky")).tolist() == [PLACED + _WITHHELD, KEPT]
    void = assign(Group({"t": 1}, [Member(name, ["t"], owned=[("t", 0)], generation=5) for name in "ab"]),
                  "cooperative-sticky")
    assert marks(void).tolist() == [_WITHHELD] and len(hatched(plot(void))) == 2


def test_each_withheld_cell_is_hatched_in_the_row_of_its_target():
    one = joined()
    drawing = Drawing(Scene([one], ["x"]))
    *cells, marker = sorted(hatched(drawing.picture), key=lambda box: box[1])       # the lowest is in the legend
    top, row = drawing.corner(0)[1], drawing.row
    assert [int((y - top) // row) for _, y, _, _ in cells] == [0] * 3       # "new" comes before "old"
    assert len({x for x, *_ in cells}) == 3 and marker[1] > top + 2 * row
    assert hatched(plot(at_once(one))) == []


def test_hatching_is_seen_without_color():
    one = joined()
    seen = [np.array(Image.fromarray(pixels(plot({"x": each}))).convert("L"), int) for each in (one, at_once(one))]
    rows = slice(144, 190)                                        # of "new", all of whose partitions are withheld
    assert (np.abs(seen[0][rows, :900] - seen[1][rows, :900]) > 60).sum() > 250
    below = slice(196, 242)                                       # of "old", none
    assert np.abs(seen[0][below] - seen[1][below]).max() == 0


def test_names_in_hatched_cells_have_a_plain_ground():
    """Between the lines a name could not be read: around it the cell looks as if it were not withheld."""
    one = joined({"topic": 2})
    [place] = [text for text in plot(at_once(one)).paper.texts if text.get_text().startswith("topic-")][:1]
    x, y = (2 * int(value) for value in place.get_position())
    seen = [pixels(plot({"x": each}))[y - 8:y + 8, x - 20:x + 20].astype(int) for each in (one, at_once(one))]
    assert (seen[0] == seen[1]).all()


def test_legend_and_head_say_withheld_only_if_something_is():
    one = joined()
    said = texts(plot(one))
    assert sum(words.startswith("withheld until revoked") for words in said) == 1
    assert [words for words in said if "score" in words] == ["score 0 · kept 3 · moved 3 · withheld 3"]
    assert not any("withheld" in words for words in texts(plot(at_once(one))))
    assert sum("withheld until" in words for words in texts(plot(one, at_once(one), one))) == 1


def test_long_rows_become_bars_of_what_was_kept_moved_and_placed():
    one = joined({"t": 600})
    assert Drawing(Scene([one], ["x"])).cells == [] and hatched(plot(one)) == []
    said = texts(quietly(one))
    assert "kept" in said and "moved" in said and "300" in said
    assert not any("withheld until" in words for words in said)


def test_many_members_become_a_histogram():
    members = {f"m{i:03}": ["t"] for i in range(300)}
    group = Group({"t": 602}, members, owned={"m000": [("t", number) for number in range(602)]})
    one = assign(group, "cooperative-sticky")
    said = texts(quietly(one))
    assert any("withheld 599" in words for words in said) and {"load", "members", "2", "3", "298"} <= set(said)
    assert not {"kept", "moved", "m000"} & set(said)
    assert not any("withheld" in words for words in texts(quietly(at_once(one))))


@pytest.mark.parametrize("loads", [[5] * 41, list(range(41)), [0] * 40 + [10_000], [3, 100] * 30, [10**5, 0] * 21])
def test_every_member_is_in_the_row_of_its_load(loads):
    one = Assignment(Group({"t": sum(loads)}, {f"m{i:03}": ["t"] for i in range(len(loads))}),
                     np.repeat(np.arange(len(loads)), loads))
    scene = Scene([one], ["x"])
    counts = scene.bars(0)["members"][0]
    ranges = [[int(end.replace(",", "")) for end in label.split(" to ")] for label in scene.labels]
    assert len(counts) == len(ranges) <= 16
    assert counts.tolist() == [sum(low[0] <= load <= low[-1] for load in loads) for low in ranges]
    assert counts.sum() == len(loads) and ranges[0][0] == min(loads) and ranges[-1][-1] == max(loads)


def test_more_topics_than_looks_are_told_apart_by_gaps():
    one = shape(3, NAMED_LOOKS + 1, 2)
    assert f"{NAMED_LOOKS + 1} topics, with gaps between them" in texts(quietly(one))
    [cells] = Drawing(Scene([one], ["x"])).cells
    assert (np.diff(cells.gap)[np.diff(cells.row) == 0] == (np.diff(cells.topic) != 0)[np.diff(cells.row) == 0]).all()


def test_words_say_how_many_are_withheld_and_until_when():
    one = joined()
    lines = plot(one).words.splitlines()
    later = ", ".join(f"{topic}-{number}" for topic, number in map(one.group.at, np.flatnonzero(one.withheld)))
    assert lines[1] == f"new: nothing; withheld: {later}."
    assert lines[-1] == ("3 partitions withheld until the member that may still consume them has revoked them; "
                         "a second rebalance assigns them.")
    assert "withheld" not in plot(at_once(one)).words
    assert len(describe(joined({"t": 100_000}))) < 1000


def test_lag_of_withheld_partitions_is_their_next_owners():
    group = Group({"t": 2}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0), ("t", 1)]}, lag={"t": [5, 7]})
    lines = describe(assign(group, "cooperative-sticky")).splitlines()
    assert sorted(re.findall(r"lag (\d+)", "".join(lines))) == ["5", "7"]
    unknown = group.replace(lag={"t": [5, -1]})
    assert sum("lag not known" in line for line in describe(assign(unknown, "cooperative-sticky")).splitlines()) == 1


# --- words -------------------------------------------------------------------------------------------------------

def test_words_name_every_move():
    for one in example()[1:]:
        words = plot(one).words
        names = [*one.group.members, None]
        for at in np.flatnonzero(one.moved):
            topic, number = one.group.at(at)
            assert f"{topic}-{number} from {names[one.group.previous[at]]} to {names[one.owner[at]]}" in words
        for member, owned in one.items():
            assert f"{member}: {', '.join(f'{topic}-{number}' for topic, number in owned)}." in words


@pytest.mark.parametrize("size", [MOST_NAMED, MOST_NAMED + 1, 5000])
def test_words_count_what_is_many(size):
    group = Group({"t": size}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", i) for i in range(size)]})
    words = describe(Assignment(group, np.ones(size, int)))
    assert (f"Moved: {size:,} of t." in words) == (size > MOST_NAMED)
    assert ("t-0 from a to b, t-1 from a to b" in words) == (size <= MOST_NAMED)
    assert len(words) < 2000


class Alternative(HTMLParser):
    def handle_starttag(self, tag, attrs):
        assert tag in ("svg", "rect", "path", "text", "defs", "pattern", "g", "use"), tag
        self.alt = dict(attrs).get("aria-label", getattr(self, "alt", None))


def test_words_are_the_alternative_text():
    picture = plot(*example())
    parser = Alternative()
    parser.feed(picture._repr_svg_())
    assert parser.alt == picture.words == repr(picture) == svg(picture).get("aria-label")


def test_title_of_each_panel_is_in_the_words():
    before, moved, fair = example()
    assert [line.split(":")[0] for line in plot({"old": before, "new": fair}).words.splitlines()][::5] == ["old", "new"]
    words = plot(compare(moved.group, ["range", "fair"])).words
    assert re.findall(r"^(\w+): \d+ members", words, re.M) == ["current", "range", "fair"]


# --- strange and large ones --------------------------------------------------------------------------------------

EMPTY = {
    "nothing": Group({}, {}), "no members": Group({"t": 3}, {}), "no topics": Group({}, {"a": []}),
    "no partitions": Group({"t": 0}, {"a": ["t"]}), "no metadata": Group({}, {"a": ["ghost"]}),
    "no subscribers": Group({"t": 3}, {"a": []}, owned={}), "many idle": Group({}, {f"m{i}": [] for i in range(90)}),
    "no lag": Group({"t": 2}, {"a": ["t"]}, lag={"t": [-1, -1]}),
    "huge lag": Group({"t": 1}, {"a": ["t"]}, lag={"t": [2 ** 62]}),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_groups(name):
    one = assign(EMPTY[name], "range")
    assert quietly(one).words == describe(one)
    quietly(one, *example())


@pytest.mark.parametrize("what", [[], (), {}, "range", 3, [None], Group({}, {})])
def test_what_cannot_be_plotted(what):
    with pytest.raises(ValueError, match="plot must be given"):
        plot(what)


HOSTILE = ["$x^2$", "$", "\\frac{", "<script>alert(1)</script>", "a\nb", "\x1b[31mred", "\x00", "\u202eright to left",
           "消費者", "😀🏳️‍🌈", "{member}", "%s", "L" * 249, "[red]", "é" * 100,
           "\u0301" * 50, "x" * 100_000, "&amp;", "'\"", "\u2028"]


def test_hostile_names_are_text():
    group = Group({name: 2 for name in HOSTILE[1::2]}, {name: HOSTILE[1::2] for name in HOSTILE}, name="<b>$x$</b>")
    picture = quietly({name: assign(group, "range") for name in HOSTILE[:4]})
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800\u2028]", picture.words)
    parser = Alternative()
    parser.feed(picture._repr_svg_())                                   # and no other tags than ours
    assert "<script>alert(1)</script>: " in parser.alt
    assert len(picture.words) < 20_000


def test_nothing_on_standard_error():
    code = ("from kafka_assign import *; names = ['消費者', '😀', '$x^', 'a\\nb'];"
            "plot(assign(Group(dict.fromkeys(names, 3), dict.fromkeys(names, names)), 'range'))._repr_svg_()")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == done.stdout == ""


def test_hostile_names_are_text_where_they_are_withheld():
    for name in HOSTILE:
        one = joined({name: 3}, old="\x1b[31mold", new=name)
        picture = quietly(one, at_once(one))
        assert one.withheld.any() and not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800\u2028]", picture.words)
        parser = Alternative()
        parser.feed(picture._repr_svg_())
        assert parser.alt == picture.words and "; withheld: " in parser.alt


@settings(max_examples=10)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6, unique=True), st.integers(0, 30), st.integers(1, 3))
def test_any_names(names, partitions, panels):
    group = Group(dict.fromkeys(names, partitions), dict.fromkeys(names, names))
    quietly(*[assign(group, "fair")] * panels)


@cache
def shape(members, topics, partitions):
    """An assignment of a group from arrays with random subscriptions and previous owners."""
    random = np.random.default_rng(0)
    names, ids = [f"t{i:05}" for i in range(topics)], [f"m{i:05}" for i in range(members)]
    subscribed, counts = random.random((members, topics)) < 0.5, [partitions] * topics
    owner = assign(Group.from_arrays(names, counts, ids, subscribed), "roundrobin").owner
    return assign(Group.from_arrays(names, counts, ids, subscribed, owner), "fair")


SIZES = (2000, 100, 1000), (2000, 1, 100_000), (60, 20_000, 5), (3, 2, 50_000), (40, 3, 600), (40, 300, 10), (41, 5, 5)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_large_groups_are_drawn_at_once(size):
    one = shape(*size)
    start = time.process_time()
    picture = quietly(one)
    assert time.process_time() - start < 6                        # a second or two where nothing else runs
    seen = pixels(picture)
    assert seen.shape[1] == round(2 * picture.width) <= 2 * 760 and seen.shape[0] < 2000
    assert len(picture.words) < 20_000 and len(picture._repr_svg_()) < 1_000_000


def test_six_large_groups_side_by_side():
    one = shape(2000, 100, 100)
    assert quietly((one,) * 6).words.count("2,000 members") == 6


@pytest.mark.parametrize("sizes", [(5,), (15,), (60,), (600,), (60, 60), (600, 60, 6)])
def test_rows_stay_within_their_panel(sizes):
    answers = [assign(Group({"t": size, "u": 3}, {"a": ["t"], "b": ["u"]}), "range") for size in sizes]
    drawing = Drawing(Scene(answers, ["range"] * len(sizes)))
    assert len(drawing.cells) in (0, len(sizes))
    for cells in drawing.cells:
        ends = (cells.step + 1) * drawing.unit + drawing.gap * cells.gap
        assert (ends <= drawing.panel - len(drawing.words) * drawing.bar).all()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_bars_of_any_size_add_up_to_the_loads(size):
    one = shape(*size)
    bars = Scene([one], ["one"]).bars(0)
    if size[0] > MOST_ROWS:
        assert bars["members"].sum() == size[0]
    else:
        assert bars["load"].sum(0).tolist() == one.loads.tolist()


@pytest.mark.parametrize("name", ["W" * 249, "m" * 60, "\N{GRINNING FACE}" * 40, "consumer-" + "very-" * 40 + "long"])
def test_long_names_stay_within_the_picture(name):
    """Every text lies within the canvas, and no names beside each other overlap."""
    names = [f"{name}{i}" for i in range(3)]
    picture = plot({name: assign(Group(dict.fromkeys(names, 2), dict.fromkeys(names, names)), "fair")})
    ends = [text.get_window_extent() for text in picture.paper.texts]
    assert all(0 <= end.x0 and end.x1 <= picture.figure.bbox.width for end in ends)
    assert not any(one.overlaps(other) for i, one in enumerate(ends) for other in ends[:i])
