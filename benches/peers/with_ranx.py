"""ranx: Qrels and Run from dictionaries, with one call per arm for all metrics. Its means are over clicked lists."""

from collections import defaultdict

import orjson
from measure import K, report
from ranx import Qrels, Run, evaluate

ARMS = ("control", "blend", "neural")
METRICS = [f"{metric}@{k}" for metric in ("hit_rate", "mrr", "ndcg", "precision", "recall", "map") for k in K]
# `make_comparable` drops lists without a click. The other option saves a loop over all lists.
OPTIONS = {"make_comparable": True, "save_results_in_run": False}


def load(path, how):
    lists, clicks = {}, defaultdict(dict)
    with open(path, "rb") as file:
        for line in file:
            event = orjson.loads(line)
            if event["type"] == "served":
                # ranx ranks by score, highest first.
                scores = {item: -float(rank) for rank, item in enumerate(event["items"])}
                lists[event["request_id"]] = event["experiments"]["ranker"], scores
            else:
                clicks[event["request_id"]][event["item"]] = 1
    runs, qrels = {arm: {} for arm in ARMS}, {arm: {} for arm in ARMS}
    for request, (arm, scores) in lists.items():
        if request in clicks:
            qrels[arm][request] = clicks[request]
        if request in clicks or how == "all":
            runs[arm][request] = scores
    return {arm: (Qrels(qrels[arm]), Run(runs[arm])) for arm in ARMS}


def warm_up():
    """Compiles the metrics or loads them from the cache of an earlier run. The compiled code depends on the length of ids."""
    few = {f"r{n}": {"i1234": 1} for n in range(20)}
    run = {request: {"i1234": 1.0, "i5678": 0.5} for request in [*few, "r20"]}
    evaluate(Qrels(few), Run(run), METRICS, **OPTIONS)


def compute(data):
    found = {arm: evaluate(qrels, run, METRICS, **OPTIONS) for arm, (qrels, run) in data.items()}
    return {arm: {key: float(value) for key, value in values.items()} for arm, values in found.items()}


report("ranx", load, compute, warm_up)
