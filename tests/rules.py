"""Independent answers for tests: the rules of range and round robin word for word."""

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
