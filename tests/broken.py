"""Strategies that are wrong in one way each, and one that is right; other processes find them as `broken:name`."""

import numpy as np

from kafka_assign.assignors.fair import fair_assign
from kafka_assign.assignors.base import Strategy


def right(group):
    """Fair, and then no member is left idle that could take a partition."""
    owner = fair_assign(group.columns).copy()
    columns = group.columns
    while True:
        load = np.bincount(owner + 1, minlength=len(group.members) + 1)[1:]
        moves = [(place, member) for place in range(columns.size) if owner[place] >= 0 and load[owner[place]] >= 2
                 for member in group.subscribers(group.topics[columns.topic_of[place]]).tolist() if load[member] == 0]
        if not moves:
            return owner
        owner[moves[0][0]] = moves[0][1]


def swapped(group, which=0):
    """As `right`, but two partitions of a topic with different owners are swapped, if there are any."""
    owner = right(group)
    topic_of = group.columns.topic_of
    pairs = [(one, other) for one in range(len(owner)) for other in range(one)
             if topic_of[one] == topic_of[other] and owner[one] != owner[other]]
    if pairs:
        one, other = pairs[which % len(pairs)]
        owner[[one, other]] = owner[[other, one]]
    return owner


def one_entry_more(group):
    return np.append(right(group), -1)


def to_a_stranger(group):
    owner = right(group)
    load = np.bincount(owner + 1, minlength=len(group.members) + 1)[1:]
    for place, topic in enumerate(group.columns.topic_of.tolist()):
        strangers = set(range(len(group.members))) - set(group.subscribers(group.topics[topic]).tolist())
        if owner[place] >= 0 and load[owner[place]] >= 2 and strangers:
            owner[place] = min(strangers)
            break
    return owner


def forgets_one(group):
    owner = right(group)
    load = np.bincount(owner + 1, minlength=len(group.members) + 1)[1:]
    many = [place for place in range(len(owner)) if owner[place] >= 0 and load[owner[place]] >= 3]
    owner[many[:1]] = -1
    return owner


def leaves_one_idle(group):
    return fair_assign(group.columns)


def raises_without_members(group):
    if not group.members:
        raise ZeroDivisionError("division by zero")
    return right(group)


def looks_at_the_order(group):
    first = next((member.topics for member in group.details if member.topics), ())
    return swapped(group) if first and first[0] != min(first) else right(group)


last = []


def remembers(group):
    before = last[:]
    last[:] = [group.columns.size, group.members]
    return right(group) if before in ([], last) else swapped(group)


def looks_at_owners(group):
    return swapped(group) if (group.previous >= 0).any() else right(group)


def hashes(group):
    return swapped(group, hash("kafka") % 1000)


def mixes_up_many(columns):
    owner = fair_assign(columns).copy()
    if columns.groups > 1:
        load = np.bincount(owner + 1, minlength=columns.member_count + 1)[1:]
        owner[[place for place in range(columns.size) if owner[place] >= 0 and load[owner[place]] >= 3][:1]] = -1
    return owner


BROKEN = {
    "owner-column": one_entry_more, "subscribers-only": to_a_stranger, "each-partition-once": forgets_one,
    "no-idle-members": leaves_one_idle, "odd-inputs": raises_without_members, "any-order": looks_at_the_order,
    "no-memory": remembers, "claims-declared": looks_at_owners, "any-hash-seed": hashes,
    "many": Strategy("broken:mixes_up_many", mixes_up_many, many=True)}

