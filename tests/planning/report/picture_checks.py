"""Pictures of plans: what is looked for in them, and that nothing in any of their outputs acts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from html.parser import HTMLParser

import iceexplore as ix
from iceexplore.planning import PlanTree, ScanPlan
from iceexplore.render import SceneNode
from tests.helpers.tables.plan_table import with_deletes

ROOMY = 2000  # so that no file that is read is folded
SVG = "{http://www.w3.org/2000/svg}"


@cache
def lab(layout: str) -> ix.Simulation:
    """A table of a layout with deletes, made once: nothing below writes to it."""
    return with_deletes(layout)


def count_of(node: SceneNode) -> int:
    """Return the number of things that a greyed node represents, according to its text."""
    found = re.match(r"([\d,]+) (?:manifests?|files?) skipped", node.label)
    return int(found[1].replace(",", "")) if found else 1


def greyed(tree: PlanTree, kind: str) -> list[SceneNode]:
    return [n for n in tree.scene().nodes if "pruned" in n.marks and n.kind == kind]


def read_of(tree: PlanTree, kind: str) -> list[SceneNode]:
    return [n for n in tree.scene().nodes if "pruned" not in n.marks and n.kind == kind]


def outputs(plan: ScanPlan) -> dict[str, str]:
    tree, fall = plan.tree(max_nodes=ROOMY), plan.waterfall()
    out = {
        "tree text": tree.to_text(), "tree svg": str(tree.to_svg()), "mermaid": str(tree.to_mermaid(ROOMY)),
        "fall text": fall.to_text(), "fall svg": str(fall.to_svg()), "dot": tree.to_graphviz().source,
    }  # fmt: skip
    for name, picture in (("tree html", tree), ("fall html", fall)):
        out[name] = picture._repr_mimebundle_()["text/html"]
    return out


def faces(plan: ScanPlan) -> None:
    """Every output of both pictures is made, and nothing in it acts."""
    made = outputs(plan)
    for name, out in made.items():
        out.encode("utf-8")
        out = out.replace("\n\t", "") if name == "dot" else out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", out), name
    for name in ("tree svg", "fall svg"):
        root = ET.fromstring(made[name])
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "g", "rect", "path", "text", "title", "desc", "style", "circle"}
        assert not {a for e in root.iter() for a in e.attrib if a.startswith("on") or "href" in a}
    for name in ("tree html", "fall html"):
        parser = _Tags()
        parser.feed(made[name])
        ours = {("div", ("style",)), ("img", ("src", "alt", "style")), ("details", ("style",)), ("span", ())}
        assert set(parser.tags) <= ours | {("summary", ("style",)), ("pre", ("style",))}
    label = r"(?:[^\x00-\x1f\"`<>{}%\\$&;#]|#\d+;|<br/>)*"
    for line in made["mermaid"].split("\n"):
        quoted = re.sub(rf'"{label}"', '""', line) if not line.startswith("  acc") else ""
        assert not re.search(r"click|javascript|<|%%", quoted), line
        assert re.fullmatch(rf"  acc(?:Title|Descr): {label}", line) or not line.startswith("  acc"), line
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", made["dot"])
    assert not re.search(r"URL|href|evil|<", bare)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
