"""RecTools: DataFrames of pandas, with `calc_metrics` for each arm. Its means are over lists with a click."""

import pandas as pd
from events import ARMS, read
from measure import K, report
from rectools import Columns
from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics

CLASSES = {"hit_rate": HitRate, "mrr": MRR, "ndcg": NDCG, "precision": Precision, "recall": Recall, "map": MAP}
METRICS = {f"{name}@{k}": metric(k=k) for name, metric in CLASSES.items() for k in K}


def load(path, how):
    return load_notebook(path) if how == "notebook" else load_arrays(path, how)


def load_arrays(path, how):
    events = read(path, clicked_only=how == "clicked")
    lists, items = events.shown
    reco = pd.DataFrame({Columns.User: lists, Columns.Item: items, Columns.Rank: events.ranks})
    lists, items = events.clicked
    clicks = pd.DataFrame({Columns.User: lists, Columns.Item: items})
    arms_of = [events.arms[frame[Columns.User]] for frame in (reco, clicks)]
    return {arm: (reco[arms_of[0] == n], clicks[arms_of[1] == n]) for n, arm in enumerate(ARMS)}


def load_notebook(path):
    """Loads the events as in a notebook, without regard to speed. Ids stay text."""
    events = pd.read_json(path, lines=True, engine="pyarrow")
    lists = events[events["type"] == "served"]
    lists = pd.DataFrame(
        {
            Columns.User: lists["request_id"],
            Columns.Item: lists["items"],
            "arm": lists["experiments"].str["ranker"],
        }
    )
    reco = lists.explode(Columns.Item)
    reco[Columns.Rank] = reco.groupby(Columns.User, sort=False).cumcount() + 1
    clicks = events[events["type"] == "click"]
    clicks = pd.DataFrame({Columns.User: clicks["request_id"], Columns.Item: clicks["item"]}).drop_duplicates()
    clicks = clicks.merge(lists[[Columns.User, "arm"]], on=Columns.User)
    return {arm: (reco[reco["arm"] == arm], clicks[clicks["arm"] == arm]) for arm in ARMS}


def compute(data):
    return {arm: calc_metrics(METRICS, reco=reco, interactions=clicks) for arm, (reco, clicks) in data.items()}


report("rectools", load, compute)
