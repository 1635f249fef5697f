"""Make the sample ``iceexplore.sample("delta")``: bike trips in a V4 tree that Delta Lake 4.4 wrote.

Small leaves and a tree for every second commit, so that a dozen versions show what the trees of larger tables do:
appends that are in the log only, manifest deletion vectors, deletion vectors of data files, a rewritten tree.

``python -m scripts.make_delta_sample`` (needs Java 17; Spark fetches Delta Lake on its first start).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.spark.delta_writer import PROPERTIES, start

TARGET = Path(__file__).resolve().parent.parent / "iceexplore" / "data" / "delta"
#: A neutral place: locations of deletion vectors in the trees are absolute.
WAREHOUSE = Path("/tmp/warehouse")
MAX_BYTES = 400_000
STATEMENTS = (
    "CREATE TABLE {t} (trip BIGINT, day DATE, station STRING, km DOUBLE) USING delta PARTITIONED BY (day) {p}",
    "INSERT INTO {t} {rows} WHERE id < 90",
    "INSERT INTO {t} {rows} WHERE id BETWEEN 90 AND 149",
    "DELETE FROM {t} WHERE trip % 10 = 3",
    "UPDATE {t} SET km = 0 WHERE trip IN (7, 77)",
    "DELETE FROM {t} WHERE day = DATE '2026-03-02'",
    "INSERT INTO {t} {rows} WHERE id BETWEEN 150 AND 170",
)
#: Trips of three days; distances are multiples of 0.5.
ROWS = (
    "SELECT id, date_add(DATE '2026-03-01', CAST(id % 3 AS INT)), "
    "element_at(array('Harbour', 'Old Mill', 'Museum', 'Park Gate'), CAST(id % 4 AS INT) + 1), (id % 13) / 2 "
    "FROM (SELECT id FROM range(0, 200))"
)


def main() -> None:
    """Write the sample anew."""
    shutil.rmtree(WAREHOUSE, ignore_errors=True)
    session = start(WAREHOUSE, prefixes=False)
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    for statement in STATEMENTS:
        session.sql(statement.format(t="delta", p=f"TBLPROPERTIES ({properties})", rows=ROWS))
    session.stop()
    made = WAREHOUSE / "delta"
    shutil.rmtree(made / "_delta_log" / "_staged_commits", ignore_errors=True)
    for path in [*made.rglob("*.crc"), *made.rglob("_last_checkpoint")]:
        path.unlink()
    size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise SystemExit(f"the sample has {size:,} bytes, more than {MAX_BYTES:,}")
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(made, TARGET)
    print(f"{TARGET}: {size:,} bytes")


if __name__ == "__main__":
    main()
