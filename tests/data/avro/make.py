#!/usr/bin/env python3
"""Writes the Avro files of this folder with fastavro, from one sample in JSON lines.

    python3.13 -m pip install fastavro==1.12.1 cramjam==2.11.0 zstandard==0.25.0
    tests/data/avro/make.py
"""

import json
import pathlib

import fastavro

FOLDER = pathlib.Path(__file__).parent
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}, {"name": "place", "type": "int"}]}
CONTEXT = {
    "type": "record",
    "name": "Context",
    "fields": [
        {"name": "user", "type": ["null", "string"], "default": None},
        {"name": "variant", "type": {"type": "enum", "name": "Variant", "symbols": ["NEURAL", "LINEAR"]}},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
SCHEMA = {
    "type": "record",
    "name": "Event",
    "namespace": "shop",
    "fields": [
        {"name": "kind", "type": "string"},
        {"name": "note", "type": {"type": "map", "values": ["null", "double"]}},
        {"name": "rec", "type": {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}},
        {"name": "context", "type": CONTEXT},
        {"name": "shown", "type": {"type": "array", "items": ITEM}},
        {"name": "sku", "type": ["null", "string"], "default": None},
    ],
}


def record(line):
    event = json.loads(line)
    return {
        "kind": event["kind"],
        "note": {"price": 9.5, "rank": None},
        "rec": bytes.fromhex(event["rec"].replace("-", "")),
        "context": {
            "user": event["user"],
            "variant": event["variant"] or "LINEAR",
            "time": event["time"] * 1000,
        },
        "shown": [{"sku": sku, "place": place} for place, sku in enumerate(event["shown"], 1)],
        "sku": event["sku"],
    }


def main():
    records = [record(line) for line in (FOLDER / "events.jsonl").read_text().splitlines()]
    for codec in ["null", "deflate", "snappy", "zstandard"]:
        with open(FOLDER / f"{codec}.avro", "wb") as file:
            # The marker of blocks is random unless it is given.
            fastavro.writer(file, SCHEMA, records, codec, sync_interval=2000, sync_marker=b"abgauge-test-run")
    # One kind per file, without its type.
    for name, kind, field in [("lists", "list", "shown"), ("clicks", "tap", "sku")]:
        fields = [known for known in SCHEMA["fields"] if known["name"] in ("rec", "context", field)]
        of_kind = [record for record in records if record["kind"] == kind]
        with open(FOLDER / f"{name}.avro", "wb") as file:
            fastavro.writer(file, {**SCHEMA, "fields": fields}, of_kind, sync_marker=b"abgauge-test-run")


if __name__ == "__main__":
    main()
