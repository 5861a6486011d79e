#!/usr/bin/env python3
"""Writes the events of ../avro/events.jsonl with pyarrow, in nested columns: nested.parquet has both kinds, nested-lists.parquet and
nested-clicks.parquet one each, without their type.

    python3 -m pip install pyarrow==26.0.0
    tests/data/parquet/nested.py
"""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent
EVENTS = FOLDER.parent / "avro" / "events.jsonl"
CONTEXT = pa.struct(
    [
        ("user", pa.string()),
        ("variant", pa.dictionary(pa.int8(), pa.string())),
        ("time", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.list_(pa.int64()))),
    ]
)
ITEM = pa.struct([("sku", pa.string()), ("place", pa.int32())])
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("note", pa.map_(pa.string(), pa.float64())),
        ("rec", pa.string()),
        ("context", CONTEXT),
        ("shown", pa.list_(ITEM)),
        ("sku", pa.string()),
    ]
)


def row(line):
    event = json.loads(line)
    is_list = event["kind"] == "list"
    return {
        "kind": event["kind"],
        "note": [("price", 9.5), ("rank", None)],
        "rec": event["rec"],
        "context": {
            "user": event["user"],
            "variant": event["variant"] or "LINEAR",
            "time": event["time"] * 1000,
            "tags": [[1, None], [], None],
        },
        "shown": [{"sku": sku, "place": n} for n, sku in enumerate(event["shown"], 1)] if is_list else None,
        "sku": event["sku"],
    }


def write(name, rows, columns):
    schema = pa.schema([SCHEMA.field(column) for column in columns])
    rows = [{column: row[column] for column in columns} for row in rows]
    pq.write_table(pa.Table.from_pylist(rows, schema), FOLDER / f"{name}.parquet", compression="zstd", row_group_size=100)


def main():
    rows = [row(line) for line in EVENTS.read_text().splitlines()]
    of_kind = lambda kind: [row for row in rows if row["kind"] == kind]
    write("nested", rows, SCHEMA.names)
    write("nested-lists", of_kind("list"), ["rec", "context", "shown"])
    write("nested-clicks", of_kind("tap"), ["rec", "context", "sku"])


if __name__ == "__main__":
    main()
