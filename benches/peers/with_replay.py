"""RePlay: DataFrames of polars, with `OfflineMetrics` for each arm. Its means are over every list with an entry in the truth,
even an empty one."""

import polars as pl
from events import ARMS, read
from measure import K, report
from replay.metrics import MAP, MRR, NDCG, HitRate, OfflineMetrics, Precision, Recall

METRICS = {"hit_rate": HitRate, "mrr": MRR, "ndcg": NDCG, "precision": Precision, "recall": Recall, "map": MAP}


def load(path, how):
    clicked_only = how == "clicked"
    events = read(path, clicked_only)
    lists, items = events.shown
    # It ranks by rating, the highest first.
    shown = pl.DataFrame({"query_id": lists, "item_id": items, "rating": -events.ranks})
    lists, items = events.clicked
    clicks = pl.DataFrame({"query_id": lists, "item_id": items})
    arms = pl.DataFrame({"query_id": range(len(events.arms)), "arm": events.arms})
    data = {}
    for n, arm in enumerate(ARMS):
        of_arm = arms.filter(pl.col("arm") == n).select("query_id")
        recommendations = of_arm.join(shown, on="query_id")
        # A list without a click has a truth of nothing.
        truth = of_arm.join(clicks, on="query_id", how="inner" if clicked_only else "left")
        data[arm] = recommendations, truth
    return data


def compute(data):
    metrics = OfflineMetrics([metric(list(K)) for metric in METRICS.values()])
    ids = {metric.__name__: name for name, metric in METRICS.items()}
    values = {}
    for arm, (recommendations, truth) in data.items():
        found = (key.split("@") + [value] for key, value in metrics(recommendations, truth).items())
        values[arm] = {f"{ids[name]}@{k}": value for name, k, value in found}
    return values


report("replay-rec", load, compute)
