#!/usr/bin/env python3
"""Writes the Protobuf records of this folder with Google's library, from the sample of tests/data/avro.

    python3.13 -m pip install protobuf==7.36.2 grpcio-tools==1.85.1
    tests/data/protobuf/make.py

lists.bin and clicks.bin hold records, each behind its length in four bytes, little-endian. events.binpb is the descriptor set.
"""

import importlib
import json
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
SAMPLE = FOLDER.parent / "avro" / "events.jsonl"


def main():
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={FOLDER}", f"--python_out={out}"]
        subprocess.run([*command, f"--descriptor_set_out={FOLDER}/events.binpb", "events.proto"], check=True)
        sys.path.append(out)
        events = importlib.import_module("events_pb2")
    records = {"lists": [], "clicks": []}
    for line in SAMPLE.read_text().splitlines():
        event = json.loads(line)
        kind, record = ("clicks", click(events, event)) if event["sku"] else ("lists", served(events, event))
        record.time.FromMilliseconds(event["time"])
        records[kind].append(record.SerializeToString(deterministic=True))
    for name, written in records.items():
        framed = b"".join(len(record).to_bytes(4, "little") + record for record in written)
        (FOLDER / f"{name}.bin").write_bytes(framed)


def served(events, event):
    record = events.List(rec_id=event["rec"], variant=event["variant"] or "LINEAR", note={"price": 9.5}, marks=[1, 300])
    if event["user"] is not None:
        record.user.value = event["user"]
    for sku in event["shown"]:
        record.shown.add(sku=sku, score=0.5)
    return record


def click(events, event):
    return events.Click(rec_id=event["rec"], sku=event["sku"])


main()
