"""Independent answers for tests: the rules of the greedy strategies word for word, one partition at a time."""

import numpy as np


def range_rule(columns):
    """A block of each topic for each subscriber in member order, the first ones one longer."""
    owner = np.full(columns.size, -1, np.int32)
    for topic in range(columns.topic_count):
        consumers = sorted(columns.subscribers_of(topic), key=columns.turn.__getitem__)
        places, begin = columns.places(topic), 0
        for i, consumer in enumerate(consumers):
            quota, extra = divmod(len(places), len(consumers))
            end = begin + quota + (i < extra)
            owner[places[begin:end]] = consumer
            begin = end
    return owner


def roundrobin_rule(columns):
    """Each partition to the next subscriber that a pointer finds, which goes around all members."""
    owner = np.full(columns.size, -1, np.int32)
    members, pointer = np.argsort(columns.turn).tolist(), 0
    for topic in range(columns.topic_count):
        consumers = set(columns.subscribers_of(topic))
        for place in columns.places(topic) if consumers else []:
            while members[pointer % len(members)] not in consumers:
                pointer += 1
            owner[place] = members[pointer % len(members)]
            pointer += 1
    return owner


def fair_rule(columns):
    """KIP-49: topics with the fewest subscribers first, each partition to the smallest load."""
    owner, load = np.full(columns.size, -1, np.int32), [0] * columns.member_count
    subscribers = [columns.subscribers_of(topic) for topic in range(columns.topic_count)]
    topics = range(columns.topic_count)
    for topic in sorted(topics, key=lambda topic: (len(subscribers[topic]), -len(columns.places(topic)), topic)):
        for place in columns.places(topic) if subscribers[topic] else []:
            owner[place] = min(subscribers[topic], key=lambda member: (load[member], member))
            load[owner[place]] += 1
    return owner


def lag_rule(columns):
    """KAFKA-5337: most lag first, each partition to the fewest of its topic, then to the least lag."""
    owner = np.full(columns.size, -1, np.int32)
    lag = [0] * columns.size if columns.lag is None else [max(known, 0) for known in columns.lag.tolist()]
    for topic in range(columns.topic_count):
        consumers = columns.subscribers_of(topic)
        number, total = dict.fromkeys(consumers, 0), dict.fromkeys(consumers, 0)
        decreasing = sorted(columns.places(topic), key=lambda place: -lag[place])
        for place in decreasing if consumers else []:
            consumer = min(consumers, key=lambda member: (number[member], total[member], member))
            owner[place] = consumer
            number[consumer] += 1
            total[consumer] += lag[place]
    return owner
