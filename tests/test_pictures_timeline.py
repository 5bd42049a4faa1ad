"""Pictures of rebalances: what is drawn where, any name, any size, and the words under them."""
import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_assign import Group, LiveGroup, TopicPartition, assign
from kafka_assign.life.rebalance import Phase, Recorded
from kafka_assign.reports.draw import MOST_ROWS
from kafka_assign.reports.timeline import Timeline
from kafka_assign.reports.words import rebalance_words

pytest.importorskip("matplotlib")
from PIL import Image  # noqa: E402

from kafka_assign.reports.pictures import plot  # noqa: E402


def drawn(*what):
    """The texts of a picture that is drawn without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = plot(*what)
        assert picture._repr_svg_().startswith("<svg ")
    return [text.get_text() for text in picture.paper.texts]


def joined(strategy, **topics):
    """A group of one member that another one joins."""
    live = LiveGroup(strategy, topics, {"C0": topics})
    live.join("C1", topics)
    return live


@pytest.mark.parametrize("strategy", ["roundrobin", "sticky", "cooperative-sticky"])
def test_bars_cover_every_phase_and_name_its_consumer(strategy):
    live = joined(strategy, t=5, u=2)
    live.crash("C0")
    live.rejoin("C0")
    timeline = Timeline(live.history, "x")
    assert len(timeline.partitions) == 7
    for partition in timeline.partitions:
        named = [member for member, _, length in timeline.bars(partition) for _ in range(length)]
        assert named == [phase.consumers.get(partition) for phase in timeline.phases]
        firsts = [first for _, first, _ in timeline.bars(partition)]
        lengths = [length for *_, length in timeline.bars(partition)]
        assert firsts == np.cumsum([0, *lengths[:-1]]).tolist()


def test_events_span_their_rounds_and_what_follows():
    timeline = Timeline(joined("cooperative-sticky", t=4).history, "x")
    assert [phase.title for phase in timeline.phases] == ["before", "round 1", "after", "round 1", "round 2", "after"]
    assert timeline.events == [("the group starts", 1, 2), ("C1 joins", 3, 3)]


def test_titles_separate_groups_and_equal_ones_follow_each_other():
    live, eager = joined("cooperative-sticky", t=2), joined("sticky", t=2)
    one = drawn(live.history)
    assert one.count("cooperative-sticky") == 1 and one.count("before") == 1
    two = drawn({"a": live.history, "b": eager.history})
    assert (two.count("a"), two.count("b"), two.count("before")) == (1, 1, 2)
    assert drawn(live.history, eager.history).count("before") == 2


def test_many_rebalances_are_continued_below_and_the_rest_is_counted():
    live = joined("sticky", t=2)
    for _ in range(3):
        live.leave("C1")
        live.join("C1", ["t"])
    picture = plot(live.history)
    texts = [text.get_text() for text in picture.paper.texts]
    assert texts.count("before") == 2 and texts.count("sticky") == 1 and texts.count("C1 joins") == 4
    assert picture.words == "\n\n".join(map(rebalance_words, live.history))
    for _ in range(20):
        live.leave("C1")
        live.join("C1", ["t"])
    picture = plot(live.history)
    texts = [text.get_text() for text in picture.paper.texts]
    assert "sticky: the first 25 of 48 rebalances" in texts and texts.count("before") == 5
    assert picture.words == "\n\n".join(map(rebalance_words, live.history[:25]))


def test_what_is_not_known_has_a_box_of_its_own_and_a_pause_its_length():
    one, two = (TopicPartition("t", number) for number in range(2))
    recorded = Recorded("C1 left", "g, range", (
        Phase("before", {"C1": {one}, "": {two}}), Phase("12:00:00", {"": {two}}, {one: "0.7 s"}),
        Phase("", {"C0": {one, two}})))
    texts = drawn(recorded)
    assert {"g, range", "12:00:00", "0.7 s", "no consumer", "not known"} <= {*texts} and "" not in {
        *Timeline([recorded], "").members}
    assert rebalance_words(recorded).splitlines() == [
        "g, range, 12:00:00: C1 left.", "Moved: t-0 from C1 to C0.", "Stopped: t-0 0.7 s.",
        "Not known in all phases: 1 partition."]
    assert "not known" not in drawn(joined("sticky", t=1).history)


def test_a_bar_stops_in_an_eager_group_and_goes_on_in_a_cooperative_one():
    def pixels(strategy):
        plot({"x": joined(strategy, t=1).history[1]}).savefig(file := io.BytesIO())
        return np.array(Image.open(file).convert("RGBA").convert("L"), int)
    eager, cooperative = pixels("sticky"), pixels("cooperative-sticky")
    assert eager.shape == cooperative.shape and (np.abs(eager - cooperative) > 80).mean() > 0.005    # seen in gray


def test_many_partitions_are_counted_and_many_members_drawn():
    live = LiveGroup("sticky", {"t": 100}, {f"C{i:02}": ["t"] for i in range(30)})
    texts = drawn(live.leave("C07"))
    assert f"and {100 - MOST_ROWS} more partitions" in texts and f"t-{MOST_ROWS - 1}" in texts
    assert f"t-{MOST_ROWS}" not in texts


@given(names=st.lists(st.text(max_size=300), min_size=2, max_size=3, unique=True))
def test_any_name(names):
    first, second, *_ = [name.encode(errors="ignore").decode() + str(i) for i, name in enumerate(names)]
    live = LiveGroup("cooperative-sticky", {first: 2, "$x^2$": 1}, {second: [first, "$x^2$"]})
    drawn(live.join(first, [first]))


def test_nothing_to_draw():
    empty = LiveGroup("sticky", {}, {})
    assert "before" in drawn(empty.history)
    assert "before" in drawn(joined("sticky", t=1).freeze("C0"))


def test_words():
    live = joined("cooperative-sticky", t=4)
    moves = [f"{topic}-{number} from C0 to C1" for topic, number in live["C1"]]
    assert rebalance_words(live.history[1]).splitlines() == [
        "C1 joins: cooperative-sticky, 2 rounds.", f"Moved: {', '.join(moves)}.",
        "Partitions that stopped, added up over the rounds: 2.",
        "Partitions whose fetched records and state survived: 2."]
    assert plot(live.history).words == "\n\n".join(map(rebalance_words, live.history))


def test_both_kinds_at_once_are_refused():
    group = Group({"t": 1}, {"C0": ["t"]})
    with pytest.raises(ValueError, match="not both .got 2 rebalances and 1 assignment"):
        plot(assign(group, "range"), joined("sticky", t=1).history)
