"""Shared code of the package scripts: CPU time by part, and the report that compare.py reads."""

import json
import sys
from importlib.metadata import version
from time import process_time

K = (1, 5, 10)


def report(package, load, compute, warm_up=lambda: None):
    """Prints the values by arm and key, and the CPU seconds for them. The command line is `python SCRIPT FILE HOW`."""
    path, how = sys.argv[1:]
    warm_up()
    start = process_time()
    data = load(path, how)
    loaded = process_time()
    values = compute(data)
    computed = process_time()
    found = {
        "version": version(package),
        "loading": loaded - start,
        "computing": computed - loaded,
        "values": values,
    }
    json.dump(found, sys.stdout)
