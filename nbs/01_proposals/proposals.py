"""What the pages of the proposals share: tables of assignments, a check of examples, and the list of statements."""
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from IPython.display import Markdown
from kafka_assign import Assignment, Group, assign

STATEMENTS = Path(__file__).with_name("statements.toml")


def table_of_members(group: Group, strategies: Iterable[str]) -> Markdown:
    "A row per member, a column per strategy with the partitions that it gives to the member."
    return table_of_answers({answer.strategy: answer for answer in (assign(group, name) for name in strategies)})


def table_of_answers(answers: Mapping[str, Assignment]) -> Markdown:
    "A row per member, a column per title with the partitions that its assignment gives to the member."
    lines = [f"| consumer | {' | '.join(answers)} |", "|---" * (len(answers) + 1) + "|"]
    for member in dict.fromkeys(name for answer in answers.values() for name in answer):
        cells = [", ".join(f"{topic}-{number}" for topic, number in answer[member]) or "(none)"
                 if member in answer else "" for answer in answers.values()]
        lines.append(f"| {member} | {' | '.join(cells)} |")
    had = [(answer.group.previous >= 0).any() for answer in answers.values()]
    if any(had):
        cells = [f"score {answer.balance_score}" + f", kept {answer.kept.sum()}" * bool(claims)
                 for answer, claims in zip(answers.values(), had)]
        lines.append(f"| | {' | '.join(cells)} |")
    return Markdown("\n".join(lines))


def unchanged(example: Group, name: str, topics, members, **about) -> None:
    "Fail if a reader has changed an example, a `Group` of these arguments, and say what it is and what it was."
    now, was = (json.loads(one.to_json()) for one in (example, Group(topics, members, **about)))
    changed = [f"{key} {now[key]}, not {was[key]}" for key in ("topics", "members") if now[key] != was[key]]
    assert not changed, f"{name} was changed: {'; '.join(changed)}"


def statements(proposal: str) -> Markdown:
    "Every statement of a proposal: where its page shows it, and the test that holds it."
    lines = ["| | statement | shown in | test |", "|---|---|---|---|"]
    for one in tomllib.loads(STATEMENTS.read_text(encoding="utf-8"))[proposal]["statement"]:
        headings = [one["section"]] if isinstance(one["section"], str) else one["section"]
        links = [f"[{heading}](#{re.sub(r'[^a-z0-9.]+', '-', heading.lower()).strip('-')})" for heading in headings]
        file = one["test"].partition("::")[0]
        lines.append(f"| {one['id']} | {one['says']} | {', '.join(links)} | [`{one['test']}`](../../tests/{file}) |")
    return Markdown("\n".join(lines))
