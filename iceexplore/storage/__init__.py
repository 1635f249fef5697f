"""Read and write a table's bytes: file systems, catalogs, zips, moved tables, and the roots that limit reads."""

from __future__ import annotations

from iceexplore.storage._budget import BIG, DATA_RATIO, FLOOR, VARIABLE, Budget, allowed, memory_limit
from iceexplore.storage._cache import CACHE, Cache
from iceexplore.storage._catalog import SourceLike
from iceexplore.storage._catalog_contents import CatalogLike, is_catalog, load_named, not_a_table
from iceexplore.storage._json import JsonValue, load_json
from iceexplore.storage._location import canonical, check_host, is_local, path_only, same_location
from iceexplore.storage._progress import progress, report_progress, result_of
from iceexplore.storage._reads import Read, ReadLog
from iceexplore.storage._roots import outside
from iceexplore.storage._storage import FileInfo, Storage
from iceexplore.storage._temporary import TemporaryFolder, folder_beside, temporary_room
from iceexplore.storage._zip import member_name, write_zip
from iceexplore.storage.finding._document import parse_document
from iceexplore.storage.finding._history import list_versions, open_version
from iceexplore.storage.finding._kinds import TABLE, VIEW, DocumentKind
from iceexplore.storage.finding._list import ListedTable, Listing, list_tables
from iceexplore.storage.finding._open import open_source, reopen
from iceexplore.storage.finding._opened import Opened, Source
from iceexplore.storage.finding._survey import MetadataSurvey, survey, survey_folder
from iceexplore.storage.finding._versions import HINT, MetadataVersion
from iceexplore.storage.output._folder import FolderStorage, replace_file, write_new
from iceexplore.storage.output._overlay import OverlayStorage
from iceexplore.storage.output._whole import path_here, place_to_write, whole_file
from iceexplore.storage.output._writable import CommitFiles, CommitStorage, ExistsError
from iceexplore.storage.output._writes import Write, WriteLog
from iceexplore.storage.stores._backend import Entry
from iceexplore.storage.stores._faults import not_written
from iceexplore.storage.stores._range_file import PositionedFile, RangeFile
from iceexplore.storage.stores._readers import in_order

__all__ = [
    "BIG",
    "Budget",
    "CACHE",
    "Cache",
    "CatalogLike",
    "CommitFiles",
    "CommitStorage",
    "DATA_RATIO",
    "DocumentKind",
    "Entry",
    "ExistsError",
    "FLOOR",
    "FileInfo",
    "FolderStorage",
    "HINT",
    "JsonValue",
    "ListedTable",
    "Listing",
    "MetadataSurvey",
    "MetadataVersion",
    "Opened",
    "OverlayStorage",
    "PositionedFile",
    "RangeFile",
    "Read",
    "ReadLog",
    "Source",
    "SourceLike",
    "Storage",
    "TABLE",
    "TemporaryFolder",
    "VARIABLE",
    "VIEW",
    "Write",
    "WriteLog",
    "allowed",
    "canonical",
    "check_host",
    "folder_beside",
    "in_order",
    "is_catalog",
    "is_local",
    "list_tables",
    "list_versions",
    "load_json",
    "load_named",
    "member_name",
    "memory_limit",
    "not_a_table",
    "not_written",
    "open_source",
    "open_version",
    "outside",
    "parse_document",
    "path_here",
    "path_only",
    "place_to_write",
    "progress",
    "reopen",
    "replace_file",
    "report_progress",
    "result_of",
    "same_location",
    "survey",
    "survey_folder",
    "temporary_room",
    "whole_file",
    "write_new",
    "write_zip",
]
