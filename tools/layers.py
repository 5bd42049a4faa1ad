"""The layers of the package, and the table of them in CONTRIBUTING.md, which `python tools/layers.py` writes."""
import re
from pathlib import Path

CONTRIBUTING = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"
NAMES = {1: "arrays", 2: "groups", 3: "strategies", 4: "reading, explaining and ranking",
         5: "the pipeline and the clients", 6: "the command line"}
# Module, or package -> layer; `tests/test_house.py` holds the imports to it.
LAYERS = {
    "names": 1, "ragged": 1, "columns": 1, "tables": 1, "metrics": 1, "wire": 1, "ownership": 1, "notes": 1,
    "hash_order": 1, "client_ids": 1, "samples": 1,
    "build": 2, "members": 2, "inputs": 2, "group": 2, "assignment": 2, "document": 2, "joins": 2,
    "certificate": 2,
    "registry": 3, "batch": 3, "comparison": 3, "assignors": 3, "conformance": 3,
    "moves": 4, "attention": 4, "advice": 4, "remedies": 4, "ranking": 4, "snapshot": 4, "rebalance": 4, "live": 4,
    "pictures": 4,
    "clients": 5, "fleet": 5, "cli": 6,
}


def layer_table() -> str:
    """The layers as a Markdown table, the lowest first."""
    rows = ["| layer | modules |", "|---|---|"]
    for number, name in NAMES.items():
        modules = " ".join(f"`{module}`" for module, layer in LAYERS.items() if layer == number)
        rows.append(f"| {number} {name} | {modules} |")
    return "\n".join(rows)


def main() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    table = re.compile(r"\| layer \| modules \|\n(\|.*\n)+")
    CONTRIBUTING.write_text(table.sub(lambda found: layer_table() + "\n", text), encoding="utf-8")


if __name__ == "__main__":
    main()
