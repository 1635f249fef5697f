"""Change detection: encodings, scenarios and scales, and chains of commits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from iceexplore.commits import change_scenarios, changes_of
from iceexplore.table import Simulation

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._tables import table

__all__ = ["CHANGES"]

_ENCODINGS = ("removed", "replace", "delta")
_FORMS = tuple((f"{e}, attached" if attached else e, e, attached) for e in _ENCODINGS for attached in (False, True))
_CHAINS = _FORMS[:3] + _FORMS[4:5]


def _measure(seed: int, *, scales: tuple[int, ...], commits: int) -> Iterator[tuple[Case, str, str, float]]:
    for scale in scales:
        for row in change_scenarios(scale=scale).arrow.to_pylist():
            form = row["form"]
            if row["encoding"] is not None:
                form = f"by rule, {row['encoding']}{', attached' if row['attached'] else ''}"
            at = case(scenario=row["scenario"].partition(":")[0], entries=10 * scale, form=form)
            yield at, "written", "bytes", row["root_bytes"] + row["manifest_bytes"] + row["puffin_bytes"]
            yield at, "read to know", "files", len(row["read_to_know"])
            yield at, "unambiguous", "yes or no", int(row["unambiguous"])
            yield at, "rules violated", "rules", len(row["violates"])
    for name, encoding, attached in (("v3", None, False), *_CHAINS):
        options: dict[str, Any] = {"format_version": 3}
        if encoding is not None:
            options = {"dv_encoding": encoding, "dv_attached": attached, "flush_data_files": 8, "leaf_entries": 100}
        s = table(seed, 3, **options)
        at = case(commits=commits, form=name)
        yield from ((at, *found) for found in _chain(s, random.Random(seed), commits))
        s.close()


def _chain(s: Simulation, chosen: random.Random, commits: int) -> Iterator[tuple[str, str, float]]:
    """Append, delete and overwrite files at random, and detect each commit's change."""
    names: list[str] = []
    number = alone = files = size = right = 0
    for turn in range(commits):
        new = [f"/warehouse/db/events/data/{number + i:06}.parquet" for i in range(10)]
        number += len(new)
        given = [{"location": x, "record_count": 100, "file_size_in_bytes": 4096} for x in new]
        gone = chosen.sample(names, 4) if turn % 3 and len(names) > 20 else []
        if turn % 3 == 1 and gone:
            s.delete_files(gone)
            new = []
        elif gone:
            s.overwrite(given, delete=gone, check_duplicates=False)
        else:
            s.append(given, check_duplicates=False)
        names = [x for x in names if x not in set(gone)] + new
        found = changes_of(s.state, s.state.snapshot, dv_encoding=s.options.dv_encoding)
        alone += found.root_alone
        files += sum(not r.names_only for r in found.read)
        size += sum(s.state.storage.stat(x).size or 0 for x in {r.location for r in found.read if not r.names_only})
        right += (set(found.locations("added")), set(found.locations("removed"))) == (set(new), set(gone))
    yield "commits found right", "commits", right
    yield "known from root or list alone", "commits", alone
    yield "files read to know, for a commit", "files", files / commits
    yield "bytes of them", "bytes", size / commits


def _chains(n: Numbers, metric: str, form: str) -> float:
    return n.mean(metric, commits=n.choices("commits")[0], form=form)


def _chain_answer(n: Numbers) -> Answer:
    commits = n.choices("commits")[0]
    forms = [name for name, _, _ in _CHAINS]
    right = {form: _chains(n, "commits found right", form) for form in ("v3", *forms)}
    require(all(v == float(commits.replace(",", "")) for v in right.values()), "every change is found right")
    read = {form: _chains(n, "files read to know, for a commit", form) for form in ("v3", *forms)}
    best = min(forms, key=lambda f: _chains(n, "bytes of them", f))
    worst = max(forms, key=lambda f: _chains(n, "bytes of them", f))
    require(read[best] <= read["v3"], "V4 reads no more files than v3")
    return Answer(
        f"{read[best]:.1f} instead of {read['v3']:.1f}",
        f"Over {commits} commits that append, remove and replace files, each change is found right in every "
        "encoding; to know "
        f"it, a reader reads {read[best]:.1f} files for a commit with `{best}` "
        f"({_chains(n, 'bytes of them', best):,.0f} bytes), "
        f"{read[worst]:.1f} with `{worst}` ({_chains(n, 'bytes of them', worst):,.0f}), and {read['v3']:.1f} in v3 "
        f"({_chains(n, 'bytes of them', 'v3'):,.0f}).",
    )


def _options(n: Numbers) -> Answer:
    entries = n.choices("entries")[0]
    forms = {
        form: n.mean("unambiguous", scenario="1", entries=entries, form=form)
        for form in ("proposal, option 1", "proposal, option 1, read according to the rules", "proposal, option 2")
    }
    require(
        forms["proposal, option 1"] == 1 and forms["proposal, option 1, read according to the rules"] == 0,
        "option 1 depends on how it is read",
    )
    two = "is" if forms["proposal, option 2"] else "is not"
    return Answer(
        "depends on the reading",
        "Option 1 of the first scenario is unambiguous if a DELETED manifest means removed, as the document reads "
        "it, and "
        f"ambiguous if it may mean compacted, as the document also wants; option 2 {two} unambiguous.",
    )


def _rules(n: Numbers) -> Answer:
    entries = n.choices("entries")[0]
    rows = [dict(c) for c in n.cases() if dict(c).get("entries") == entries and dict(c)["form"].startswith("by rule")]
    clear = [n.mean("unambiguous", scenario=r["scenario"], entries=entries, form=r["form"]) for r in rows]
    require(min(clear) == 1, "by rule, all scenarios are unambiguous")
    bent = [
        dict(c) for c in n.cases() if dict(c).get("entries") == entries and not dict(c)["form"].startswith("by rule")
    ]
    wrong = [r for r in bent if n.mean("unambiguous", scenario=r["scenario"], entries=entries, form=r["form"]) == 0]
    return Answer(
        f"{len(clear)} of {len(clear)}",
        f"With net changes to leaves as manifest DVs, all three scenarios are unambiguous in all {len(_FORMS)} "
        "encodings (the attached "
        "ones keep a DV where the proposal does not, which breaks rules, too); of the "
        f"{len(bent)} forms that the scenarios themselves suggest, {len(wrong)} are ambiguous or misread.",
    )


def _scale(n: Numbers) -> Answer:
    largest = n.choices("entries")[-1]
    sizes = {name: n.mean("written", scenario="1", entries=largest, form=f"by rule, {name}") for name, _, _ in _FORMS}
    best, worst = min(sizes, key=lambda k: sizes[k]), max(sizes, key=lambda k: sizes[k])
    return Answer(
        f"{ratio(sizes[worst], sizes[best])} times",
        f"In scenario 1 with {largest} entries, `{worst}` writes {ratio(sizes[worst], sizes[best])} times the bytes "
        f"of `{best}` "
        f"({sizes[worst]:,.0f} and {sizes[best]:,.0f}).",
    )


CHANGES = Experiment(
    name="changes",
    title="Change detection",
    method=(
        "The proposal's three scenarios (the rest of a manifest is deleted; a manifest is rewritten; rewritten with "
        "changes), "
        "as it sketches them and by its rules, in each encoding of manifest DVs, in entries of their own or attached "
        "to the "
        "manifest's; option 1 of the first scenario is read both ways. Then chains of commits that append, remove "
        "and replace "
        "files at random, each detected from its root. `read to know` does not count manifests that are opened only "
        "for the "
        "names of files."
    ),
    measure=_measure,
    findings=(
        Finding("What does a reader of changes read?", _chain_answer),
        Finding("Are the scenarios unambiguous?", _rules),
        Finding("Is option 1 of the first scenario ambiguous?", _options, first=False),
        Finding("Which encoding writes least?", _scale, first=False),
    ),
    bars=("files read to know, for a commit", "bytes of them"),
    quick={"scales": (1,), "commits": 6},
    full={"scales": (1, 100, 1000), "commits": 100},
    seeds=2,
)
