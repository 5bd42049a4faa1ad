"""Independent answers for tests: what the best assignment of a small group is, by trying everything."""

import numpy as np

from kafka_assign.arrays.columns import Columns
from kafka_assign.arrays.ragged import row_offsets


def outcome(columns, owner):
    """The sorted loads, and how many partitions are kept."""
    loads = np.bincount(owner[owner >= 0], minlength=columns.member_count)
    return sorted(loads.tolist()), int(((owner == columns.previous) & (owner >= 0)).sum())


def squares(loads):
    """The sum of squares, which is least for the flattest loads."""
    return sum(load * load for load in loads)


def best_by_loads(columns, keep_all=False, fixed=None):
    """Every reachable vector of loads with the most kept and one owner column: dynamic programming over partitions.

    With `keep_all`, a partition that has a previous owner stays there. `fixed` has the owner of each partition that is
    not free, None for the others.
    """
    reached = {(0,) * columns.member_count: (0, ())}
    fixed = fixed or [None] * columns.size
    for topic, previous, bound in zip(columns.topic_of.tolist(), columns.previous.tolist(), fixed):
        choices = [previous] if keep_all and previous >= 0 else columns.subscribers_of(topic)
        choices = choices if bound is None else [bound]
        longer = {}
        for loads, (kept, owner) in reached.items():
            for member in choices or [-1]:
                more = tuple(load + (place == member) for place, load in enumerate(loads))
                now = kept + (member == previous and member >= 0)
                if more not in longer or longer[more][0] < now:
                    longer[more] = now, (*owner, member)
        reached = longer
    return reached


def best_answers(columns, keep_all=False, fixed=None):
    """For each vector of loads with least squares that keeps the most: an owner column."""
    reached = best_by_loads(columns, keep_all, fixed)
    least = min(map(squares, reached))
    flattest = [answer for loads, answer in reached.items() if squares(loads) == least]
    most = max(kept for kept, _ in flattest)
    return [np.array(owner, np.int32) for kept, owner in flattest if kept == most]


def best(columns, keep_all=False, fixed=None):
    """The best outcome: flattest loads, sorted, and the most partitions kept with them."""
    return outcome(columns, best_answers(columns, keep_all, fixed)[0])


def random_subscribers(random, style, topic, topics, members):
    """The subscribers of a topic: all, a prefix, neighbors, every other one, members in blocks, or by chance."""
    if style == 0:
        return list(range(members))
    if style == 1:
        return [m for m in range(members) if m <= topic * members / max(topics, 1)]
    if style == 2:
        return [m for m in range(members) if m in (topic, topic + 1)]
    if style == 3:
        return [m for m in range(members) if m % 2 == topic % 2]
    if style == 4:
        return [m for m in range(members) if topic % 2 == 0 or m == members - 1 - topic // 2]
    if style == 5:                                                      # components of three members, nested inside
        return [m for m in range(members) if m // 3 == topic % max(members // 3, 1) and m % 3 <= topic % 4]
    return np.flatnonzero(random.random(members) < random.choice([0.2, 0.5, 0.8])).tolist()


def random_columns(random, max_topics=4, max_members=4, max_partitions=4):
    """Columns of a random group: subscriptions of many shapes; previous owners of all, some, or no partitions."""
    least = 0 if random.random() < 0.1 else 2
    topics, members = random.integers(least, [max_topics + 1, max_members + 1]).tolist()
    partitions, style = random.integers(0, max_partitions + 1, topics), random.integers(0, 8)
    rows = [random_subscribers(random, style, topic, topics, members) for topic in range(topics)]
    if topics and random.random() < 0.3:                                # classes of more than one topic
        rows = [rows[0] if random.random() < 0.5 else row for row in rows]
    owned, skewed, previous = random.choice([0, 0.7, 1]), random.random() < 0.3, []
    for row, count in zip(rows, partitions):
        for _ in range(count):
            has_owner = row and random.random() < owned
            first = skewed and random.random() < 0.7
            previous.append(-1 if not has_owner else row[0] if first else random.choice(row))
    return Columns(np.array([0, topics]), np.array([0, members]), partitions, np.zeros(topics, bool),
                   row_offsets(np.array([len(row) for row in rows], int)),
                   np.array([m for row in rows for m in row], np.int32), np.arange(members, dtype=np.int32),
                   np.array(previous, np.int32))
