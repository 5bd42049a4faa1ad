"""Independent answers for tests: the rules of range and round robin word for word."""

from itertools import pairwise

import numpy as np


class Shares:
    """The partitions of one topic, its subscribers in member order, and who has how many."""

    def __init__(self, columns, topic):
        self.consumers = sorted(columns.subscribers_of(topic), key=columns.turn.__getitem__)
        self.owners = [None] * int(columns.partitions[topic])
        self.quota, self.extras = divmod(len(self.owners), max(len(self.consumers), 1))
        self.counts = dict.fromkeys(self.consumers, 0)
        member, offsets, replicas = columns.racks or ([-1] * columns.member_count, None, None)
        self.rack = {consumer: member[consumer] for consumer in self.consumers if member[consumer] >= 0}
        self.replicas = [set() if offsets is None else {*replicas[offsets[at]:offsets[at + 1]].tolist()} - {-1}
                         for at in columns.places(topic)]

    def needs_racks(self):
        everywhere = set().union(*self.replicas)
        return bool(everywhere & {*self.rack.values()}) and any(racks != everywhere for racks in self.replicas)

    def matches(self, consumer, number):
        return consumer not in self.rack or self.rack[consumer] in self.replicas[number]

    def room(self, consumer):
        return max(0, self.quota + (self.extras > 0) - self.counts[consumer])

    def give(self, consumer, number):
        self.owners[number] = consumer
        self.counts[consumer] += 1
        self.extras -= self.counts[consumer] > self.quota

    def give_each_up_to_its_room(self, may_take):
        for consumer in self.consumers:
            for number, owner in enumerate(self.owners):
                if owner is None and self.room(consumer) and may_take(consumer, number):
                    self.give(consumer, number)


def give_together(topics):
    """The same partition of all topics to the first member that it suits in every one of them."""
    for number in range(len(topics[0].owners)):
        for consumer in topics[0].consumers:
            if all(shares.matches(consumer, number) and shares.room(consumer) for shares in topics):
                for shares in topics:
                    shares.give(consumer, number)
                break


def range_rule(columns):
    """Topics with the same subscribers and size first by racks, if racks say anything in the group; then in order."""
    owner = np.full(columns.size, -1, np.int32)
    for first, end in pairwise(columns.topic_offsets):
        topics = {topic: Shares(columns, topic) for topic in range(first, end)}
        alike = {}
        for shares in topics.values():
            alike.setdefault((tuple(shares.consumers), len(shares.owners)), []).append(shares)
        if any(shares.needs_racks() for shares in topics.values()):
            for together in alike.values():
                if len(together) > 1:
                    give_together(together)
                elif together[0].needs_racks():
                    together[0].give_each_up_to_its_room(together[0].matches)
        for topic, shares in topics.items():
            shares.give_each_up_to_its_room(lambda consumer, number: True)
            owner[columns.places(topic)] = [-1 if given is None else given for given in shares.owners]
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
