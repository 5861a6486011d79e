"""Values that packages compute from the lists in lists.json: one function for each profile, from lists to values by metric and k.

`sources.py` runs this in the virtual environment that has the package: `python packages.py PROFILE < lists.json` prints the values
of each case. A value that is NaN is null, and one that cannot be computed is the name of the error.

A list is its items in rank order, its relevant items, and its scores if some are equal. Users are numbers; a user without items is in no table of
recommendations, and one without relevant items in no table of the truth.
"""

import json
import math
import sys
import warnings

KS = [1, 3, 10, 30]
# All items that lists.json may have.
CATALOGUE = list(range(1, 100))


def table(lists, at):
    """Rows of user, item and score of all items (at = 0), or of user and item of all relevant ones (at = 1)."""
    rows = []
    for user, of_user in enumerate(lists):
        scores = of_user[2] if at == 0 else [1] * len(of_user[1])
        rows += [(user, item, score) for item, score in zip(of_user[at], scores)]
    return rows


def by_user(lists, at):
    return {user: of_user[at] for user, of_user in enumerate(lists) if of_user[at]}


def at_each_k(names, compute):
    """Values by `metric@k`, each from what `compute(name, k)` returns."""
    return {f"{metric}@{k}": attempt(compute, name, k) for metric, name in names.items() for k in KS}


def attempt(compute, *arguments):
    try:
        return float(compute(*arguments))
    except Exception as error:
        return f"raises {type(error).__name__}"


def rs_metrics(lists):
    """The log that popularity is counted from has a row for every relevant pair."""
    import pandas
    import rs_metrics

    names = {"hit_rate": "hitrate", "mrr": "mrr", "ndcg": "ndcg", "precision": "precision", "recall": "recall", "map": "mapr"}
    if hasattr(rs_metrics, "mar"):
        names["mar"] = "mar"
    truth, shown = by_user(lists, 1), by_user(lists, 0)
    log = pandas.DataFrame([row[:2] for row in table(lists, 1)], columns=["user_id", "item_id"])
    return (
        at_each_k(names, lambda name, k: getattr(rs_metrics, name)(truth, shown, k))
        | at_each_k({"coverage": "coverage"}, lambda name, k: getattr(rs_metrics, name)(CATALOGUE, shown, k))
        | at_each_k({"popularity": "popularity", "surprisal": "surprisal"}, lambda name, k: getattr(rs_metrics, name)(log, shown, k))
    )


REPLAY = {"hit_rate": "HitRate", "mrr": "MRR", "ndcg": "NDCG", "precision": "Precision", "recall": "Recall", "map": "MAP"}


def replay(recommendations, truth):
    import replay.metrics

    columns = {"query_column": "user", "item_column": "item", "rating_column": "score"}

    def compute(name, k):
        (value,) = getattr(replay.metrics, name)(k, **columns)(recommendations, truth).values()
        return value

    return at_each_k(REPLAY, compute)


def replay_tables(lists):
    """Pandas and polars give the same."""
    import pandas
    import polars

    columns = ["user", "item", "score"]
    values = []
    for frame in [lambda rows: pandas.DataFrame(rows, columns=columns), lambda rows: polars.DataFrame(rows, columns, orient="row")]:
        recommendations, truth = frame(table(lists, 0)), frame(table(lists, 1))
        values.append(replay(recommendations, truth[["user", "item"]]))
    for key, value in values[0].items():
        assert math.isclose(value, values[1][key], abs_tol=1e-12), f"{key}: pandas {value}, polars {values[1][key]}"
    return values[0]


def replay_dicts(lists):
    """Every user is in the truth, some with an empty list."""
    shown = {user: list(zip(items, scores)) for user, (items, _, scores) in enumerate(lists)}
    return replay(shown, {user: relevant for user, (_, relevant, _) in enumerate(lists)})


def jurity(lists):
    """CTR is given a truth with a row for every shown pair."""
    import pandas
    from jurity.recommenders import CTR, MAP, NDCG, Precision, Recall
    from jurity.utils import get_sorted_clicks

    names = {"ctr": CTR, "precision": Precision, "recall": Recall, "map": MAP, "ndcg": NDCG}
    columns = ["user", "item", "clicks"]
    shown, clicked = pandas.DataFrame(table(lists, 0), columns=columns), table(lists, 1)
    is_clicked = {row[:2] for row in clicked}
    unclicked = [(user, item, 0) for user, item, _ in dict.fromkeys(table(lists, 0)) if (user, item) not in is_clicked]
    clicks, pairs = pandas.DataFrame(clicked, columns=columns), pandas.DataFrame(clicked + unclicked, columns=columns)

    def compute(metric, k):
        # It keeps the ranks of earlier tables, and finds them by k and scores alone, whatever the users and items are.
        get_sorted_clicks.cache_clear()
        metric_of_k = metric(click_column="clicks", k=k, user_id_column="user", item_id_column="item")
        return metric_of_k.get_score(pairs if metric is CTR else clicks, shown)

    return at_each_k(names, compute)


def rectools(lists):
    import pandas
    from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall

    metrics = {
        "hit_rate": lambda k: HitRate(k),
        "mrr": lambda k: MRR(k),
        "precision": lambda k: Precision(k),
        "recall": lambda k: Recall(k),
        "map": lambda k: MAP(k),
        "map_by_k": lambda k: MAP(k, divide_by_k=True),
        "ndcg": lambda k: NDCG(k),
    }
    ranked = [(user, item, rank) for user, (items, _, _) in enumerate(lists) for rank, item in enumerate(items, 1)]
    shown = pandas.DataFrame(ranked, columns=["user_id", "item_id", "rank"])
    truth = pandas.DataFrame(table(lists, 1), columns=["user_id", "item_id", "weight"])
    return at_each_k(metrics, lambda metric, k: metric(k).calc(shown, truth))


def runs(lists):
    """Runs and qrels, as TREC has them: no query without relevant items."""
    run = {str(user): {str(item): float(score) for item, score in zip(items, scores)} for user, (items, _, scores) in enumerate(lists)}
    qrels = {str(user): {str(item): 1 for item in relevant} for user, relevant in by_user(lists, 1).items()}
    return {user: run[user] for user in qrels}, qrels


def ranx(lists):
    from ranx import Qrels, Run, evaluate

    run, qrels = runs(lists)
    names = ["hit_rate", "mrr", "precision", "recall", "map", "ndcg", "hits"]

    def compute(name, k):
        return evaluate(Qrels(qrels), Run({user: items for user, items in run.items() if items}), f"{name}@{k}", make_comparable=True)

    return at_each_k(dict(zip(names, names)), compute)


def trec_eval(lists):
    import pytrec_eval

    run, qrels = runs(lists)
    names = {"hit_rate": "success", "precision": "P", "recall": "recall", "map": "map_cut", "ndcg": "ndcg_cut"}

    def compute(measure, k=None):
        asked = f"{measure}.{k}" if k else measure
        values = pytrec_eval.RelevanceEvaluator(qrels, {asked}).evaluate(run)
        return sum(value for of_query in values.values() for value in of_query.values()) / len(qrels)

    whole = {"map": "map", "mrr": "recip_rank", "ndcg": "ndcg"}
    return at_each_k(names, compute) | {metric: attempt(compute, measure) for metric, measure in whole.items()}


def recommenders(lists):
    import pandas
    from recommenders.evaluation import python_evaluation

    shown = pandas.DataFrame(table(lists, 0), columns=["userID", "itemID", "prediction"])
    truth = pandas.DataFrame(table(lists, 1), columns=["userID", "itemID", "rating"])
    names = {"precision": "precision_at_k", "recall": "recall_at_k", "ndcg": "ndcg_at_k", "map": "map"}
    return at_each_k(names, lambda name, k: getattr(python_evaluation, name)(truth, shown, k=k))


def torchmetrics(lists):
    """Of a list it is given the shown items, each with a score and whether it is relevant. Its single precision is widened."""
    import torch
    from torchmetrics import retrieval

    names = {
        "hit_rate": "RetrievalHitRate",
        "mrr": "RetrievalMRR",
        "precision": "RetrievalPrecision",
        "recall": "RetrievalRecall",
        "map": "RetrievalMAP",
        "ndcg": "RetrievalNormalizedDCG",
    }
    rows = labelled(lists)

    def compute(name, k=None):
        users, scores, labels = (torch.tensor(column) for column in zip(*rows))
        return getattr(retrieval, name)(top_k=k)(scores.to(torch.get_default_dtype()), labels, indexes=users)

    def values():
        return at_each_k(names, compute) | {metric: attempt(compute, name) for metric, name in names.items()}

    as_it_is = values()
    torch.set_default_dtype(torch.float64)
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    for key, value in (widened := values()).items():
        assert math.isclose(value, as_it_is[key], abs_tol=1e-6), f"{key}: {as_it_is[key]}, in double precision {value}"
    return widened


def labelled(lists):
    """User, score and relevance of each shown item."""
    rows = []
    for user, (items, relevant, scores) in enumerate(lists):
        rows += [(user, score, int(item in relevant)) for item, score in zip(items, scores)]
    return rows


def groups(lists):
    """Scores and labels of all items, and how many each list that shows something has."""
    rows = labelled(lists)
    return [row[1] for row in rows], [row[2] for row in rows], [len(items) for items, _, _ in lists if items]


def lightgbm(lists):
    """The metrics of a data set whose initial scores are those of the lists."""
    import lightgbm
    import numpy

    scores, labels, sizes = groups(lists)
    data = lightgbm.Dataset(numpy.zeros((len(labels), 1)), labels, group=sizes, init_score=scores, params={"verbose": -1})
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": KS, "verbose": -1}
    return {name: value for _, name, value, _ in lightgbm.Booster(settings, data).eval_train()}


def xgboost(lists):
    """The metrics of a booster without trees, whose base margins are the scores of the lists."""
    import numpy
    import xgboost

    scores, labels, sizes = groups(lists)
    data = xgboost.DMatrix(numpy.zeros((len(labels), 1)), labels, base_margin=scores, group=sizes)

    def compute(name, k):
        booster = xgboost.Booster({"objective": "rank:ndcg", "eval_metric": f"{name}@{k}"}, [data])
        return booster.eval(data).split(":")[1]

    return at_each_k({"ndcg": "ndcg", "map": "map", "precision": "pre"}, compute)


def lenskit(lists):
    """A user without items has an empty list, and one without relevant items no list of test items."""
    import numpy
    from lenskit.data import ItemList, ItemListCollection
    from lenskit.metrics import MeasurementCollector, ranking

    names = {"hit_rate": "Hit", "mrr": "RecipRank", "precision": "Precision", "recall": "Recall", "ndcg": "NDCG"}
    shown, test = ItemListCollection(["user_id"]), ItemListCollection(["user_id"])
    for user, (items, relevant, _) in enumerate(lists):
        shown.add(ItemList(item_ids=numpy.array(items, dtype=int), ordered=True), user_id=user)
        if relevant:
            test.add(ItemList(item_ids=relevant), user_id=user)

    def compute(name, k=None):
        collector = MeasurementCollector()
        collector.add_metric(getattr(ranking, name)(n=k), "metric")
        return collector.measure_run(shown, test).summary_metrics["metric.mean"]

    names["map"] = "AveragePrecision"
    return at_each_k(names, compute) | {metric: attempt(compute, name) for metric, name in names.items()}


PROFILES = {
    "rs_metrics_0.3.0": rs_metrics,
    "rs_metrics_0.6.0": rs_metrics,
    "replay_tables": replay_tables,
    "replay_dicts": replay_dicts,
    "jurity": jurity,
    "rectools": rectools,
    "ranx": ranx,
    "trec_eval": trec_eval,
    "recommenders": recommenders,
    "torchmetrics": torchmetrics,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "lenskit": lenskit,
}


def scored(items, relevant, scores=None):
    return items, relevant, scores or list(range(len(items), 0, -1))


def rounded(value):
    """Twelve digits after the point: a thousandth of what the tests allow."""
    if isinstance(value, str):
        return value
    return None if math.isnan(value) else round(value, 12)


def main():
    warnings.simplefilter("ignore")
    values = {case: PROFILES[sys.argv[1]]([scored(*of_user) for of_user in lists]) for case, lists in json.load(sys.stdin).items()}
    json.dump({case: {key: rounded(value) for key, value in of_case.items()} for case, of_case in values.items()}, sys.stdout)


if __name__ == "__main__":
    main()
