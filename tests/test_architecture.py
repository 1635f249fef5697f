"""The architecture: who may import whom, what modules look like, and what no file may contain."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from iceexplore.formats import FILE_FORMATS
from iceexplore.metadata import TRANSFORMS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "iceexplore"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Top to bottom, as in ARCHITECTURE.md: a package imports only those below it.
HOUSE = (
    "cli", "faces", "widgets", "labs", "queries", "on_spark", "doctor", "verification", "commits", "writing", "reading",
    "planning", "expressions", "inspect", "graph", "views", "manifests", "delta", "deletes", "formats", "metadata",
    "storage", "render", "errors", "arrow",
)  # fmt: skip

#: Modules in a folder: beyond, it holds more than one theme.
MOST_MODULES = 22
#: What `import iceexplore` must leave alone: each costs more than the whole import may.
HEAVY = ("IPython", "anywidget", "datafusion", "pandas", "pyarrow.dataset", "pyiceberg", "pyspark", "sqlglot")


@cache
def tree_of(path: Path) -> ast.Module:
    """A module, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    """``iceexplore/graph/_state.py`` is module ``iceexplore.graph._state``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def storey(module: str) -> str:
    """The package of the house that a module belongs to."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in HOUSE:
        return parts[1]
    return "faces"  # the classes that users hold, beside the packages


def imports(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Each import of a module, also inside functions: line, module, and the name taken from it."""
    here = name_of(path).split(".")
    package = here if path.name == "__init__.py" else here[:-1]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, module, alias.name


@cache
def our_imports(path: Path) -> list[tuple[int, str]]:
    """The imports of iceexplore's own modules; a name that is a module counts as that module."""
    ours = [(line, module, f"{module}.{name}") for line, module, name in imports(path) if ROOM.match(module)]
    return [(line, whole if whole in NAMES else module) for line, module, whole in ours]


@cache
def exports(package: str) -> dict[str, str]:
    """The module in which each name that a package exports is defined, or is imported from."""
    path = PACKAGE.joinpath(*package.split(".")[1:], "__init__.py")
    found = {} if not path.exists() else {name: module for _, module, name in imports(path) if name is not None}
    return {name: f"{module}.{name}" if f"{module}.{name}" in NAMES else module for name, module in found.items()}


def defined_in(module: str, name: str | None) -> str:
    """The module that a name comes from, through the packages that export it."""
    if name is not None and f"{module}.{name}" in NAMES:
        return f"{module}.{name}"
    while name is not None and name in exports(module):
        module = exports(module)[name]
    return module


@cache
def dependencies() -> dict[str, set[str]]:
    """The modules that each module imports, whether at load time, inside functions or for types alone."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        if path.name != "__init__.py":
            own = name_of(path)
            used = {defined_in(module, name) for _, module, name in imports(path) if ROOM.match(module)}
            found[own] = {module for module in used if module in NAMES and module != own}
    return found


def theme(module: str) -> str:
    """The sub-folder of a package that a module is in; a module beside the sub-folders is one by itself."""
    return ".".join(module.split(".")[:3])


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the sets of nodes that reach each other."""
    order: list[str] = []
    for start in graph:
        seen = set(order)
        todo = [(start, iter(graph.get(start, ())))] if start not in seen else []
        seen.add(start)
        while todo:
            node, rest = todo[-1]
            following = next((n for n in rest if n not in seen), None)
            if following is None:
                order.append(node)
                todo.pop()
            else:
                seen.add(following)
                todo.append((following, iter(graph.get(following, ()))))
    back: dict[str, set[str]] = {}
    for node, others in graph.items():
        for other in others:
            back.setdefault(other, set()).add(node)
    found, placed = [], set[str]()
    for start in reversed(order):
        members, stack = [], [start] if start not in placed else []
        while stack:
            node = stack.pop()
            if node not in placed:
                placed.add(node)
                members.append(node)
                stack.extend(back.get(node, ()))
        if len(members) > 1:
            found.append(sorted(members))
    return found


NAMES = {name_of(module) for module in MODULES}
ROOM = re.compile(r"iceexplore(\.|$)")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def in_modules(rule: Callable[[Path], list[str]], paths: Iterable[Path] = MODULES) -> dict[str, list[str]]:
    """Return what breaks a rule, by module, in one test: thousands of small ones would cost more than the rules do."""
    return {ids(path): broken for path in paths if (broken := rule(path))}


def test_architecture_md_has_the_same_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_./]+?)`", text, flags=re.MULTILINE)
    assert ["faces" if row == "table.py" else row.removesuffix("/") for row in rows] == list(HOUSE)


def imports_above(path: Path) -> list[str]:
    """Return a module's imports of packages that are not below its own."""
    own = storey(name_of(path))
    return [
        f"line {line}: {module}"
        for line, module in our_imports(path)
        if storey(module) != own and HOUSE.index(storey(module)) <= HOUSE.index(own)
    ]


def imports_of_private_modules(path: Path) -> list[str]:
    """Return a module's imports of private modules of other packages."""
    own = storey(name_of(path))
    return [
        f"line {line}: {module}"
        for line, module in our_imports(path)
        if storey(module) != own and any(part.startswith("_") for part in module.split(".")[2:])
    ]


def test_imports_only_packages_below() -> None:
    assert in_modules(imports_above) == {}


def test_packages_are_imported_by_their_face() -> None:
    assert in_modules(imports_of_private_modules) == {}


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["a", "f"], "f": ["g"], "g": ["e"]}
    assert sorted(circles(graph)) == [["b", "c"], ["e", "f", "g"]]


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(dependencies()) == []


def test_sub_folders_import_one_way() -> None:
    graph: dict[str, set[str]] = {}
    for module, others in dependencies().items():
        here = theme(module)
        graph.setdefault(here, set()).update(
            there for other in others if (there := theme(other)) != here and storey(other) == storey(module)
        )
    assert circles(graph) == []


#: Packages that know what differs between format versions and dialects; all others ask `Dialect` and `TableMetadata`.
KNOW_VERSIONS = ("metadata", "manifests", "commits", "labs")


def compares_versions(node: ast.AST) -> bool:
    """Whether an expression compares a format version or a dialect with a constant."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    names = {side.attr if isinstance(side, ast.Attribute) else side.id for side in sides
             if isinstance(side, (ast.Attribute, ast.Name))}  # fmt: skip
    constants = [side.value for side in sides if isinstance(side, ast.Constant)]
    of_version = "format_version" in names and any(isinstance(c, int) for c in constants)
    return of_version or any(isinstance(c, str) and re.match(r"v\d", c) for c in constants if "dialect" in names)


@pytest.mark.parametrize(
    ("text", "found"),
    [("m.format_version >= 3", True), ("format_version < 4", True), ("root.dialect == 'v4-draft'", True),
     ("dialect == 'spark'", False), ("a.format_version != b.format_version", False)],
)  # fmt: skip
def test_comparisons_of_versions_are_found(text: str, found: bool) -> None:
    assert compares_versions(ast.parse(text, mode="eval").body) is found


def versions_compared(path: Path) -> list[str]:
    """Return where a module compares versions or dialects."""
    return [f"line {node.lineno}" for node in ast.walk(tree_of(path)) if compares_versions(node)]  # type: ignore[attr-defined]


def test_versions_and_dialects_are_asked_for_what_they_have() -> None:
    others = [path for path in MODULES if storey(name_of(path)) not in KNOW_VERSIONS]
    assert in_modules(versions_compared, others) == {}, "ask Dialect or TableMetadata what the version has"


#: Names of partition transforms in metadata and in Spark; only `metadata/transforms` knows what they do.
TRANSFORM_NAMES = {name for cls in TRANSFORMS for name in (cls.name, cls.spark_name) if name is not None}
#: Equal words that mean something else: a metrics mode, a type of Spark, a kind of expression in V4's JSON, a unit of a
#: duration.
OTHER_MEANINGS = {
    ("writing/_column_metrics.py", "truncate"),
    ("writing/_type_strings.py", "void"),
    ("delta/_schema.py", "void"),
    ("graph/redaction/_words.py", "identity"),
    *(("widgets/grid/_typed_values.py", unit) for unit in ("day", "days", "hour", "hours")),
}
#: Functions that compare their argument, or look it up.
COMPARING = {
    "count",
    "endswith",
    "frozenset",
    "get",
    "index",
    "pop",
    "removeprefix",
    "removesuffix",
    "set",
    "startswith",
}


def names_of_transforms(node: ast.AST | None) -> Iterator[str]:
    """Yield the names of transforms in a text or a display of texts: ``"bucket"`` for ``"bucket[16]"``."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for element in node.elts:
            yield from names_of_transforms(element)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.partition("[")[0]
        if name in TRANSFORM_NAMES:
            yield name


def compared_transforms(node: ast.AST) -> Iterator[str]:
    """Yield the names of transforms that an expression or pattern compares with, or that a set or dictionary holds."""
    places: list[ast.AST | None] = []
    match node:
        case ast.Compare(left, _, others):
            places = [left, *others]
        case ast.MatchValue(value):
            places = [value]
        case ast.Dict(keys):
            places = [*keys]
        case ast.Set():
            places = [node]
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name), arguments) if name in COMPARING:
            places = [*arguments]
    for place in places:
        yield from names_of_transforms(place)


@pytest.mark.parametrize(
    ("text", "found"),
    [("f.transform == 'void'", ["void"]), ("name in ('year', 'month')", ["year", "month"]),
     ("frozenset(('day', 'hour'))", ["day", "hour"]), ("{'identity': 1}", ["identity"]), ("{'days', 'x'}", ["days"]),
     ("f.transform.startswith('bucket[')", ["bucket"]), ("t != 'bucket[16]'", ["bucket"]),
     ("match t:\n    case 'truncate' | 'x': ...", ["truncate"]), ("human(kind, 'identity', x)", []),
     ("kind == 'unknown'", []), ("text == 'truncated'", [])],
)  # fmt: skip
def test_comparisons_with_transforms_are_found(text: str, found: list[str]) -> None:
    assert [name for node in ast.walk(ast.parse(text)) for name in compared_transforms(node)] == found


def transforms_compared(path: Path) -> list[str]:
    """Return the names of transforms that a module compares with."""
    place = path.relative_to(PACKAGE).as_posix()
    found = {(place, name) for node in ast.walk(tree_of(path)) for name in compared_transforms(node)}
    return sorted(name for _, name in found - OTHER_MEANINGS)


def test_transforms_are_asked_for_what_they_do() -> None:
    others = [path for path in MODULES if PACKAGE / "metadata" / "transforms" not in path.parents]
    assert in_modules(transforms_compared, others) == {}, "ask the Transform (metadata/transforms), not for its name"


#: Modules outside `formats/` that may name file formats in comparisons, and why. Everything else asks the registry.
NAME_FORMATS = {
    "commits/_cost.py": "'puffin' is a kind of reads in the log",
    "commits/model/_options.py": "the format of manifests, which a layout has",
    "commits/saving/_save.py": "'puffin' is a kind of metadata files",
    "manifests/decode/_dialects.py": "the format of manifests",
    "manifests/decode/_v1_v3.py": "the format of manifests",
    "manifests/encode/_aggregate.py": "the format of manifests",
    "manifests/encode/_write.py": "the format of manifests",
    "storage/finding/_find.py": "a hint in an error, below `formats`; tests/formats checks that it knows every format",
    "storage/finding/_open.py": "a hint in an error, below `formats`; tests/formats checks that it knows every format",
}
FORMAT_COMPARING = frozenset(("ends_with", "endswith", "equal", "index_in", "is_in", "not_equal", "startswith"))


def is_format(node: ast.AST) -> bool:
    """Whether an expression is the name or suffix of a file format."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    words = {word for f in FILE_FORMATS for word in (f.name, f"{f.name}-encrypted", *f.suffixes)}
    return node.value.lower() in words


def compares_formats(node: ast.AST) -> bool:
    """Whether an expression compares with a file format, has a table of formats, or the bytes that begin a format."""
    sides: list[ast.expr] = []
    match node:
        case ast.Constant(value=bytes(value)):
            return value in {
                magic for f in FILE_FORMATS for magic in (f.magic, getattr(f, "encrypted_magic", b"")) if magic
            }
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments) if name in FORMAT_COMPARING:
            sides = arguments
        case ast.MatchValue(value=value):
            sides = [value]
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return sum(map(is_format, items)) > 1
        case ast.Dict(keys=keys):
            return sum(is_format(key) for key in keys if key is not None) > 1
    groups = [side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side] for side in sides]
    return any(is_format(item) for group in groups for item in group)


@pytest.mark.parametrize(
    ("text", "found"),
    [("kind == 'parquet'", True), ("entry['file_format'].lower() in ('orc',)", True), ("pc.equal(names, 'avro')", True),
     ("name.endswith('.puffin')", True), ("{'orc': 1, 'parquet': 2}", True), ("data[:4] == b'PAR1'", True),
     ("['avro', 'orc']", True), ("kind == 'parquet-encrypted'", True), ("known.name == 'orc'", True),
     ("{'file_format': 'parquet'}", False), ("writer.new_location('data', '.parquet')", False),
     ("known.splittable", False), ("entry['file_format'] == PUFFIN.name", False), ("kind == 'json'", False)],
)  # fmt: skip
def test_comparisons_of_formats_are_found(text: str, found: bool) -> None:
    assert any(map(compares_formats, ast.walk(ast.parse(text, mode="eval")))) is found


def test_formats_are_asked_for_what_they_have() -> None:
    named: dict[str, list[int]] = {}
    for path in MODULES:
        if storey(name_of(path)) != "formats":
            lines = [getattr(node, "lineno", 0) for node in ast.walk(tree_of(path)) if compares_formats(node)]
            if lines:
                named[path.relative_to(PACKAGE).as_posix()] = lines
    assert {module: lines for module, lines in named.items() if module not in NAME_FORMATS} == {}
    assert sorted(named) == sorted(NAME_FORMATS), "an exception that is not needed any more"


def imports_of_compute(path: Path) -> list[str]:
    """Return where a module imports pyarrow.compute."""
    named = [(line, f"{module}.{name}" if name else module) for line, module, name in imports(path)]
    return [f"line {line}" for line, module in named if module == "pyarrow.compute"]


def test_compute_functions_are_the_typed_ones() -> None:
    found = in_modules(imports_of_compute, [path for path in MODULES if storey(name_of(path)) != "arrow"])
    assert found == {}, "import compute from iceexplore.arrow: pyarrow-stubs types it too narrowly"


def test_folders_hold_a_theme_each() -> None:
    counts = {path.parent: 0 for path in MODULES}
    for path in MODULES:
        counts[path.parent] += 1
    assert {str(p.relative_to(ROOT)): n for p, n in counts.items() if n > MOST_MODULES} == {}


def unsorted_exports(path: Path) -> list[str]:
    """Return what is wrong with a module's ``__all__``."""
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            names = ast.literal_eval(node.value)
            return [] if names == sorted(set(names)) else [f"sorted, each once: {sorted(set(names))}"]
    return [] if path.name.startswith("__") else ["a module says in __all__ what others may use"]


def test_all_is_sorted_and_true() -> None:
    assert in_modules(unsorted_exports) == {}


def test_modules_say_what_they_are_for() -> None:
    assert [ids(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def tracked() -> list[Path]:
    """The files that a commit holds, or would hold."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if found.returncode != 0:
        assert os.environ.get("CI") != "true", found.stderr.decode()
        pytest.skip("not a git work tree: no list of the project's files")
    return [path for name in found.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


# Put together, so that this file does not say them itself.
FORBIDDEN = re.compile(
    b"|".join(
        [
            rb"/root/\.|/home/[a-z]",
            rb"/wo" + rb"rk/(?:main|shared|\.)",
            rb"(?:files\.)?python" + rb"hosted\.org",
            rb"\bpypi\.(?:org|io)" + rb"/simple",
            rb"repo1?\.(?:maven|apache)\." + rb"(?:apache\.)?org",
            rb"registry\." + rb"npmjs",
            rb"deb\." + rb"debian\.org",
            rb"--hash" + rb"=sha256",
        ]
    )
)


def test_no_file_names_a_machine_or_a_registry() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {match.group().decode(errors='replace')}"
        for path in tracked()
        for match in FORBIDDEN.finditer(path.read_bytes())
    ]
    assert not wrong


def test_the_readme_of_the_tests_names_each_folder() -> None:
    tests = ROOT / "tests"
    folders = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in tracked() if path.is_relative_to(tests)}
    named = re.findall(r"^\| `(tests/[^`]*)` \|", (tests / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named == sorted(folders)


def test_constraints_are_names_and_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert not [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line)]


def test_notebooks_hold_no_widget_state() -> None:
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert notebooks
    for path in notebooks:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert "widgets" not in notebook["metadata"], path.name
        assert notebook["metadata"]["kernelspec"]["name"] == "python3", path.name


def test_import_leaves_the_heavy_ones_alone() -> None:
    code = f"import sys, iceexplore; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_packages_are_there_without_an_import_of_their_own_and_completed() -> None:
    packages = [name for name in HOUSE if (PACKAGE / name).is_dir()]
    code = f"""
import iceexplore as ix
print(*[name for name in {packages!r} if name not in dir(ix) or not getattr(ix, name)])
print(*[name for name in ("Any", "annotations") if name in dir(ix)])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(packages) > 10
    assert done.stdout.split() == []


def test_the_explorer_opens_without_the_labs_packages() -> None:
    code = """
import sys
import iceexplore as ix
w = ix.sample("trips").explore()
assert w.settle(60) and not w.error, w.error
print(*[name for name in ("iceexplore.commits", "iceexplore.planning") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


#: Pages that name modules and functions, and must still be right after these move.
GUIDES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "contributing").glob("*.md"))]
#: What an example has its reader create.
TO_CREATE = ("widgets/notes/", "tests/widgets/test_notes_panel.py")
#: ``name`` (``folder/_module.py``), as the guides say where something is defined.
DEFINED_IN = re.compile(r"`(\w+)`\s+\(`([\w/]+\.py)`\)")


def place_of(name: str) -> Path | None:
    """Return the file or folder that a guide names, in the package or in the project."""
    # A row of the map names the sub-folders of its package alone.
    roots = [ROOT, PACKAGE, *(path for path in PACKAGE.iterdir() if path.is_dir())]
    return next((path for root in roots if (path := root / name).exists()), None)


@pytest.mark.parametrize("guide", GUIDES, ids=ids)
def test_guides_name_what_exists(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:[\w.]+/)+(?:[\w.]+\.(?:py|js|css|md|toml|yml|yaml))?)`", text)
    assert not [name for name in paths if place_of(name) is None and not name.startswith(TO_CREATE)]
    wrong = []
    for name, place in DEFINED_IN.findall(text):
        path = place_of(place)
        if path is None or not re.search(rf"\b(?:def|class) {name}\b|^{name}\b.*=", path.read_text(), re.MULTILINE):
            wrong.append(f"{name} in {place}")
    assert not wrong


def test_architecture_md_fits_on_a_few_pages() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 300
