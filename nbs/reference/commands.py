"""Entries of the command line, made from the commands themselves: what `--help` shows, examples first."""
import re
from typing import NamedTuple

import typer
from entries import table
from IPython.display import Markdown

from kafka_assign.cli.app import program
from kafka_assign.cli.errors import NAME


class Command(NamedTuple):
    "A command, its full name, and the context in which it is called."
    name: str
    command: typer.core.TyperCommand
    context: typer.Context


def commands() -> dict[str, Command]:
    "All commands that do something, by their full names, in the order of `--help`."
    def walk(name, command, parent):
        context = command.context_class(command, info_name=name, parent=parent)
        inner = getattr(command, "commands", {})
        if not inner:
            found[context.command_path] = Command(context.command_path, command, context)
        for each, one in inner.items():
            walk(each, one, context)
    found = {}
    walk(NAME, typer.main.get_command(program), None)
    return found


def options(name: str) -> list[tuple[str, str, str]]:
    "The arguments and options of a command: how they are typed, default, and meaning."
    one, rows = commands()[name], []
    for parameter in one.command.get_params(one.context):
        typed, words = parameter.get_help_record(one.context)
        notes = re.findall(r"\[([^\[\]]*(?:default|required|env var|[<>]=)[^\[\]]*)\]", words)
        meaning = re.sub(r"\s*\[[^\[\]]*(?:default|required|env var|[<>]=)[^\[\]]*\]", "", words).strip()
        note = "; ".join(notes)
        for old, new in ("default: ", ""), ("env var: ", "variable "), ("x>=", "at least "), ("<=x<=", " to "):
            note = note.replace(old, new)
        meaning = re.sub(r"'([^']+)'(?!\w)|(\{.*\}|\([<>=! ]+\)|(?<![\w-])-{1,2}[a-z][\w-]*)",
                         lambda found: f"`{found[1] or found[2]}`", meaning)
        rows.append((re.sub(r" <list\[str\]>| <(.*)>", r" \1", typed).strip(), note, meaning))
    return rows


def sections_of(text: str) -> tuple[str, list[str], list[str]]:
    "The first sentence of a help text, its examples, and the rest as Markdown."
    first, *paragraphs = re.split(r"\n\s*\n", text.strip())
    examples, rest = [], []
    for paragraph in paragraphs:
        if not paragraph.startswith("\b\n"):
            rest.append(" ".join(paragraph.split()))
        elif paragraph[2:].split()[0] in (NAME, "kafka-consumer-groups.sh"):
            examples.append(re.sub(r"(?m)^  ", "", paragraph[2:]))
        else:
            rest.append(f"```text\n{paragraph[2:]}\n```")
    return " ".join(first.split()), examples, rest


def beginning(name: str) -> Markdown:
    "What a command does, and its examples."
    first, examples, _ = sections_of(commands()[name].command.help)
    return Markdown("\n\n".join([first, *(f"```sh\n{one}\n```" for one in examples)]))


def details(name: str) -> Markdown:
    "What a command does in detail, and a table of its options."
    rows, (_, _, rest) = options(name), sections_of(commands()[name].command.help)
    usage = " ".join([name, "[OPTIONS]", *(row[0] for row in rows if not row[0].startswith("-"))])
    return Markdown("\n\n".join([*rest, f"Usage: `{usage}`", table(["option", "if not given", "meaning"], rows)]))


def overview() -> Markdown:
    "A table of all commands."
    rows = [(f"[`{name}`](#{name.replace(' ', '-')})", sections_of(one.command.help)[0])
            for name, one in commands().items()]
    return Markdown(table(["name", "meaning"], rows))


def exit_codes() -> Markdown:
    "The exit codes as the help text of the program names them."
    text = " ".join(typer.main.get_command(program).help.split())
    found = re.findall(r"(\d+) ([^,.]+)", text.partition("Exit codes:")[2].partition(".")[0])
    return Markdown(table(["exit code", "meaning"], found))
