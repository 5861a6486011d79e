"""Writes the events in other forms, next to the JSON lines: nested JSON lines, and Parquet with zstd in one file and in two."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MAP = pa.map_(pa.string(), pa.string())


def main(lines):
    with open(lines, encoding="ascii") as file:
        events = [json.loads(line) for line in file]
    write_nested(events, Path(lines).with_suffix(".nested.jsonl"))
    write_parquet(events, ["type", "item", "items", "experiments", "user_id"], Path(lines).with_suffix(".parquet"))
    lists = [event for event in events if event["type"] == "served"]
    clicks = [event for event in events if event["type"] == "click"]
    write_parquet(lists, ["items", "experiments", "user_id"], Path(lines).with_suffix(".lists.parquet"))
    write_parquet(clicks, ["item"], Path(lines).with_suffix(".clicks.parquet"))


def write_nested(events, path):
    with open(path, "w", encoding="ascii") as out:
        for event in events:
            json.dump(nested(event), out, separators=(",", ":"))
            out.write("\n")


def nested(event):
    record = {"event": event["type"], "ts": event["ts"], "rec": {"id": event["request_id"]}}
    if event["type"] == "click":
        return record | {"item": {"id": event["item"]}}
    context = {"user": event["user_id"], "exp": event["experiments"]}
    return record | {"ctx": context, "items": [{"id": item, "score": 0.5} for item in event["items"]]}


def write_parquet(events, fields, path):
    columns = {"request_id": pa.string(), "ts": pa.timestamp("ms", "UTC"), "type": pa.string(), "user_id": pa.string()}
    columns |= {"experiments": MAP, "items": pa.list_(pa.string()), "item": pa.string()}
    written = {name: kind for name, kind in columns.items() if name in ["request_id", "ts", *fields]}
    table = {name: pa.array([cell(event.get(name)) for event in events], kind) for name, kind in written.items()}
    pq.write_table(pa.table(table), path, compression="zstd")


def cell(value):
    return list(value.items()) if isinstance(value, dict) else value


if __name__ == "__main__":
    main(sys.argv[1])
