"""polars on one thread: lazy frames over the files of a form, with the rules of `with_duckdb.py`."""

import json
import math
import sys

import polars as pl
from measure import K

IDEAL = [0.0]
for rank in range(1, 101):
    IDEAL.append(IDEAL[-1] + 1 / math.log2(rank + 1))


def sources(form, files):
    """Returns the lists, with their items, and the clicks."""
    col = pl.col
    if form == "lines":
        schema = {"type": pl.String, "request_id": pl.String, "ts": pl.Int64, "item": pl.String}
        schema |= {"experiments": pl.Struct({"ranker": pl.String}), "items": pl.List(pl.String)}
        # Parsed once.
        events = pl.read_ndjson(files[0], schema=schema).lazy()
        arm = col("experiments").struct.field("ranker").alias("arm")
        lists = events.filter(col("type") == "served").select("request_id", "ts", arm, "items")
        return lists, events.filter(col("type") == "click").select("request_id", "ts", "item")
    if form == "nested":
        of_id = pl.Struct({"id": pl.String})
        schema = {"event": pl.String, "ts": pl.Int64, "rec": of_id, "items": pl.List(of_id), "item": of_id}
        schema |= {"ctx": pl.Struct({"exp": pl.Struct({"ranker": pl.String})})}
        events = pl.read_ndjson(files[0], schema=schema).lazy()
        request = col("rec").struct.field("id").alias("request_id")
        arm = col("ctx").struct.field("exp").struct.field("ranker").alias("arm")
        items = col("items").list.eval(pl.element().struct.field("id"))
        lists = events.filter(col("event") == "served").select(request, "ts", arm, items)
        item = col("item").struct.field("id").alias("item")
        return lists, events.filter(col("event") == "click").select(request, "ts", item)
    lists, clicks = pl.scan_parquet(files[0]), pl.scan_parquet(files[-1])
    if form == "parquet":
        lists, clicks = lists.filter(col("type") == "served"), clicks.filter(col("type") == "click")
    arm = col("experiments").map.get("ranker").alias("arm")
    ts = col("ts").dt.epoch("ms")
    return lists.select("request_id", ts, arm, "items"), clicks.select("request_id", ts, "item")


def main(form, *files):
    col = pl.col
    lists, clicks = sources(form, files)
    clicks = clicks.collect().lazy()
    sizes = lists.group_by("arm").agg(n=col("request_id").n_unique())
    joined = lists.join(clicks, on="request_id", suffix="_click")
    after = col("ts_click") - col("ts")
    # The items are unpacked for lists with a click only.
    shown = joined.filter(after.is_between(0, 1_800_000)).select("request_id", "arm", "items", "item").unique(
        subset=["request_id", "item"]
    )
    shown = shown.with_columns(rank=pl.int_ranges(1, col("items").list.len() + 1)).explode("items", "rank")
    hits = shown.filter(col("items") == col("item")).group_by("request_id").agg(
        arm=col("arm").first(), ranks=col("rank").unique().sort()
    )
    hits = hits.with_columns(g=col("ranks").list.len()).explode("ranks").rename({"ranks": "rank"})
    hits = hits.with_columns(h=pl.int_range(1, pl.len() + 1).over("request_id"), rank=col("rank").cast(pl.Float64))
    of_k = [
        expression
        for k in K
        for top in [col("rank").filter(col("rank") <= k)]
        for expression in [
            top.len().alias(f"hits{k}"),
            (1 / (top + 1).log(2)).sum().alias(f"dcg{k}"),
            (col("h") / col("rank")).filter(col("rank") <= k).sum().alias(f"ap{k}"),
        ]
    ]
    per_list = hits.group_by("request_id").agg(col("arm").first(), col("g").first(), best=col("rank").min(), *of_k)
    ideal = lambda k: pl.min_horizontal(col("g"), pl.lit(k)).replace_strict(range(101), IDEAL, return_dtype=pl.Float64)
    metrics = [
        expression
        for k in K
        for expression in [
            (col("best") <= k).sum().alias(f"hit_rate@{k}"),
            (1 / col("best")).filter(col("best") <= k).sum().alias(f"mrr@{k}"),
            (col(f"dcg{k}") / ideal(k)).sum().alias(f"ndcg@{k}"),
            (col(f"hits{k}") / k).sum().alias(f"precision@{k}"),
            (col(f"hits{k}") / col("g")).mean().alias(f"recall@{k}"),
            (col(f"ap{k}") / pl.min_horizontal(col("g"), pl.lit(k))).sum().alias(f"map@{k}"),
        ]
    ]
    sums = per_list.group_by("arm").agg(metrics)
    values = {}
    found, sizes = pl.collect_all([sums, sizes])
    n_of = dict(sizes.iter_rows())
    for row in found.iter_rows(named=True):
        arm = row.pop("arm")
        values[arm] = {key: value if key.startswith("recall") else value / n_of[arm] for key, value in row.items()}
    json.dump({"version": pl.__version__, "values": values}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
