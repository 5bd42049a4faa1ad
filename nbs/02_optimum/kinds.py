"""Groups of seven kinds, which differ in the subscriptions; two pages compare strategies on them."""
import random

from kafka_assign import Group

KINDS = "equal", "half", "narrow", "nested", "one narrow", "Kafka's", "sparse"
TOPIC_NAMES = [f"t{i:02}" for i in range(40)]


def group_of_kind(kind: str, rng: random.Random) -> Group:
    "A random group of this kind in which no partition has an owner yet."
    names = TOPIC_NAMES[:20]
    if kind == "Kafka's":                       # as the tests of Kafka's own sticky assignors
        names = TOPIC_NAMES[:rng.randint(10, 19)]
        subscriptions = [rng.sample(names, rng.randint(1, len(names))) for _ in range(rng.randint(20, 39))]
    elif kind == "sparse":
        names = TOPIC_NAMES
        subscriptions = [rng.sample(names, rng.randint(2, 3)) for _ in names]
    else:
        subscriptions = {
            "equal": [names] * 20,
            "half": [[name for name in names if rng.random() < .5] for _ in names],
            "narrow": [rng.sample(names, 4) for _ in names],
            "nested": [names[:i + 1] for i in range(20)],
            "one narrow": [names] * 19 + [names[:1]]}[kind]
    most = {"sparse": 10}.get(kind, 8)
    topics = {name: i + 1 if kind == "Kafka's" else rng.randint(1, most) for i, name in enumerate(names)}
    return Group(topics, {f"C{i:02}": list(names) for i, names in enumerate(subscriptions)})
