"""Evidence for V4's open questions, at a larger size: the cells of ``notebooks/04_v4_evidence.ipynb``, run one by one.

``python benchmarks/evidence.py`` writes ``results/evidence.md``: each experiment's sentence and table. The
notebook explains what is measured, and how. ``--only flush`` runs one experiment and prints it. ``EVIDENCE_SIZE`` and
``EVIDENCE_SEED`` are as in the notebook, where the size is 1 (here 3 by default); all numbers are counts and bytes, so
that the same seed gives the same numbers on any machine with the same libraries.
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import nbformat

HERE = Path(__file__).parent
NOTEBOOK = HERE.parent / "notebooks" / "04_v4_evidence.ipynb"
RESULTS = HERE / "results" / "evidence.md"


def cells() -> list[tuple[str, str, str]]:
    """Tag, title and code of the notebook's code cells; the title is that of the text before."""
    found, title = [], ""
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "markdown":
            title = cell.source.splitlines()[0].lstrip("# ")
        else:
            found.append((cell.metadata.tags[0], title, cell.source))
    return found


def run(only: list[str] | None) -> list[str]:
    """Run the experiments; a section of Markdown each."""
    import matplotlib.pyplot as plt

    namespace: dict[str, Any] = {"__name__": "evidence"}
    sections = []
    for tag, title, code in cells():
        if tag != "setup" and only and tag not in only:
            continue
        exec(compile(code, f"<cell {tag}>", "exec"), namespace)
        plt.close("all")
        if tag != "setup":
            sentence, table = namespace["RESULTS"][tag]
            size, seed = namespace["SIZE"], namespace["SEED"]
            repeat = f"EVIDENCE_SIZE={size} python benchmarks/evidence.py --only {tag}"
            if tag == "replay" and os.environ.get("EVIDENCE_TABLES"):
                repeat += " --tables FOLDER"
            sections.append(f"## {title}\n\n{sentence}\n\nSeed {seed}, `{repeat}`\n\n{markdown(table)}")
    return sections


def markdown(table: Any) -> str:
    """A data frame as a table, numbers to the right."""
    text = [name for name in table.columns if table[name].dtype.kind not in "if"]
    lines = ["| " + " | ".join(map(str, table.columns)) + " |"]
    lines.append("|" + "|".join("---" if name in text else "--:" for name in table.columns) + "|")
    for row in table.itertuples(index=False):
        shown = [f"{v:,.2f}".rstrip("0").rstrip(".") if isinstance(v, float) else _plain(v) for v in row]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="experiments to run, printed and not written; repeatable")
    parser.add_argument("--tables", help="a folder with real tables, for the experiment 'replay'")
    given = parser.parse_args()
    os.environ.setdefault("EVIDENCE_SIZE", "3")
    if given.tables:
        os.environ["EVIDENCE_TABLES"] = given.tables
    mpl.use("Agg")
    sections = run(given.only)
    if given.only:
        return
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "pyroaring", "numpy"))
    head = (
        "# Evidence for V4's open questions\n\nMade by `python benchmarks/evidence.py`, which runs the cells of "
        f"`notebooks/04_v4_evidence.ipynb` at a larger size; the notebook explains what is measured. "
        f"{platform.system()} {platform.machine()}, {packages}."
    )
    RESULTS.write_text("\n\n".join([head, *sections]) + "\n", encoding="utf-8")
    print(f"written: {RESULTS.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
