"""Output of the tool for tests: the captures, tables made to order, and damage."""
import random
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent.parent / "samples"


def table(columns, *rows):
    """A table as Java prints it: cells padded to the widest, counted in UTF-16 units; the last column as it is."""
    def units(text):
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    rows = [columns, *([str(cell) for cell in row] for row in rows)]
    widths = [max(units(row[i]) for row in rows) + 1 for i in range(len(columns))]
    lines = ["".join(cell + " " * (width - units(cell)) for cell, width in zip(row[:-1], widths)) + row[-1]
             for row in rows]
    return "\n" + "\n".join(lines) + "\n"


POSTED = Path(__file__).resolve().parent / "posted"          # as people show it in forums and issues, all versions
PATHS = [*sorted(SAMPLES.glob("kafka-*/*.txt")), *sorted(POSTED.glob("*.txt")) * 4]
FILES = [path.read_text(encoding="utf-8").splitlines(keepends=True) for path in PATHS]
LINES = [line for lines in FILES for line in lines]
FOREIGN = "\t -0\U0001F600\x1b\r\0é\udc80:(),"


def mangled(lines, seed, count):
    """Lines cut, doubled, swapped, dropped, glued together, with characters replaced."""
    chance, lines = random.Random(seed), list(lines)
    for _ in range(count):
        at = chance.randrange(len(lines))
        line = lines[at]
        kind = chance.randrange(7)
        cut = chance.randrange(len(line) + 1)
        if kind == 0:
            lines[at] = line[:cut] + "\n"
        elif kind == 1:
            lines.insert(chance.randrange(len(lines)), line)
        elif kind == 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], line
        elif kind == 3:
            del lines[at]
            lines = lines or ["\n"]
        elif kind == 4:
            lines[at] = line[:cut] + chance.choice(LINES)
        elif kind == 5:
            lines[at] = line[:cut] + chance.choice(FOREIGN) + line[cut + 1:]
        else:
            lines[at] = line.rstrip("\n")
    return "".join(lines)


def texts(assignment):
    """The notes of an assignment, in words."""
    return [note.text for note in assignment.notes]
