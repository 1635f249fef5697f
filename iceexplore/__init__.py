"""iceexplore: the microscope for Apache Iceberg tables in a notebook.

Examples
--------
>>> import iceexplore as ix
>>> t = ix.open("warehouse/db/trips")
>>> t  # the card
>>> t.tree()  # snapshots, manifests, files
>>> t.inspect.files()  # the metadata tables, as pandas
>>> t.at(ref="audit")  # the table at another ref
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iceexplore.errors import (
    AccessDeniedError,
    CatalogError,
    CommitConflictError,
    FileMissingError,
    FormatError,
    IceexploreError,
    MemoryLimitError,
    MetadataNotFoundError,
    MissingDependencyError,
    OptionError,
    OutsideRootsError,
    Problem,
    RuleError,
    SnapshotNotFoundError,
    StorageError,
    TableChangedError,
    TemporaryFolderError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from iceexplore._catalog import Catalog
    from iceexplore._figures import figures
    from iceexplore._lab import Lab, create, lab
    from iceexplore.commits import change_scenarios
    from iceexplore.inspect import LooseFile, open_file, open_udf
    from iceexplore.on_spark import spark
    from iceexplore.storage import memory_limit
    from iceexplore.table import Simulation, Table, check, check_catalog, empty, open, open_catalog, sample
    from iceexplore.view import View, ViewSimulation, create_view, open_view, simulate_view

__all__ = [
    "AccessDeniedError",
    "Catalog",
    "CatalogError",
    "CommitConflictError",
    "FileMissingError",
    "FormatError",
    "IceexploreError",
    "Lab",
    "LooseFile",
    "MemoryLimitError",
    "MetadataNotFoundError",
    "MissingDependencyError",
    "OptionError",
    "OutsideRootsError",
    "Problem",
    "RuleError",
    "Simulation",
    "SnapshotNotFoundError",
    "StorageError",
    "Table",
    "TableChangedError",
    "TemporaryFolderError",
    "UnsupportedError",
    "View",
    "ViewSimulation",
    "__version__",
    "change_scenarios",
    "check",
    "check_catalog",
    "create",
    "create_view",
    "empty",
    "figures",
    "lab",
    "memory_limit",
    "open",
    "open_catalog",
    "open_file",
    "open_udf",
    "open_view",
    "sample",
    "simulate_view",
    "spark",
]

__version__ = "0.1.0"

# The public classes need pyarrow (0.1 s to import); the package itself imports in a few milliseconds.
_LAZY = {
    "Catalog": "iceexplore._catalog",
    "Lab": "iceexplore._lab",
    "LooseFile": "iceexplore.inspect",
    "Simulation": "iceexplore.table",
    "Table": "iceexplore.table",
    "View": "iceexplore.view",
    "ViewSimulation": "iceexplore.view",
    "change_scenarios": "iceexplore.commits",
    "check": "iceexplore.table",
    "check_catalog": "iceexplore.table",
    "create": "iceexplore._lab",
    "create_view": "iceexplore.view",
    "empty": "iceexplore.table",
    "figures": "iceexplore._figures",
    "lab": "iceexplore._lab",
    "memory_limit": "iceexplore.storage",
    "open": "iceexplore.table",
    "open_catalog": "iceexplore.table",
    "open_file": "iceexplore.inspect",
    "open_udf": "iceexplore.inspect",
    "open_view": "iceexplore.view",
    "sample": "iceexplore.table",
    "simulate_view": "iceexplore.view",
    "spark": "iceexplore.on_spark",
}

# Packages that the documentation uses (``ix.widgets.Timeline``, ``ix.commits.RULES``). They are imported on first
# access, so that users need no separate import.
_PACKAGES = (
    "arrow",
    "cli",
    "commits",
    "deletes",
    "delta",
    "doctor",
    "errors",
    "expressions",
    "formats",
    "graph",
    "inspect",
    "labs",
    "manifests",
    "metadata",
    "on_spark",
    "planning",
    "queries",
    "reading",
    "render",
    "storage",
    "verification",
    "views",
    "widgets",
    "writing",
)


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f"iceexplore.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    from difflib import get_close_matches

    # Python's own suggestion appears in terminals only, and never for names that `__getattr__` looks up.
    known = [] if name.startswith("_") else [one for one in __dir__() if not one.startswith("_")]
    near = get_close_matches(name, known, 3, 0.6)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise AttributeError(f"module 'iceexplore' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, *(name for name in globals() if name.startswith("__"))})
