"""What the pages of the proposals share: tables of assignments, and the list of a proposal's statements."""
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from IPython.display import Markdown
from kafka_assign import Group, assign

STATEMENTS = Path(__file__).with_name("statements.toml")


def table_of_members(group: Group, strategies: Iterable[str]) -> Markdown:
    "A row per member, a column per strategy with the partitions that it gives to the member."
    answers = [assign(group, name) for name in strategies]
    names = " | ".join(answer.strategy for answer in answers)
    lines = [f"| consumer | {names} |", "|---" * (len(answers) + 1) + "|"]
    for member in group.members:
        cells = [", ".join(f"{topic}-{number}" for topic, number in answer[member]) for answer in answers]
        lines.append(f"| {member} | {' | '.join(cell or '(none)' for cell in cells)} |")
    return Markdown("\n".join(lines))


def statements(proposal: str) -> Markdown:
    "Every statement of a proposal: where its page shows it, and the test that holds it."
    lines = ["| | statement | shown in | test |", "|---|---|---|---|"]
    for one in tomllib.loads(STATEMENTS.read_text(encoding="utf-8"))[proposal]["statement"]:
        headings = [one["section"]] if isinstance(one["section"], str) else one["section"]
        links = [f"[{heading}](#{re.sub(r'[^a-z0-9]+', '-', heading.lower()).strip('-')})" for heading in headings]
        lines.append(f"| {one['id']} | {one['says']} | {', '.join(links)} | `{one['test']}` |")
    return Markdown("\n".join(lines))
