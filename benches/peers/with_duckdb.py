"""DuckDB on one thread: one query over the files of a form.

A click counts from the time of its list to 30 minutes after it, a second click on an item changes nothing, and copies of a list
count once. Items are read only from lists with a click.
"""

import json
import sys

import duckdb
from measure import K

LINES = "request_id: 'VARCHAR', ts: 'BIGINT', type: 'VARCHAR', item: 'VARCHAR', items: 'VARCHAR[]', experiments: 'STRUCT(ranker VARCHAR)'"
NESTED = (
    "event: 'VARCHAR', ts: 'BIGINT', rec: 'STRUCT(id VARCHAR)', ctx: 'STRUCT(exp STRUCT(ranker VARCHAR))', "
    "items: 'STRUCT(id VARCHAR)[]', item: 'STRUCT(id VARCHAR)'"
)


def sources(form, files):
    """Returns SQL for the lists and the clicks, and for what is read before. JSON is parsed once, and Parquet by columns."""
    if form == "lines":
        once = f"CREATE TEMP TABLE events AS SELECT * FROM read_json('{files[0]}', format = 'newline_delimited', columns = {{{LINES}}})"
        lists = "SELECT request_id, ts, experiments.ranker AS arm, items FROM events WHERE type = 'served'"
        return once, lists, "SELECT request_id, ts, item FROM events WHERE type = 'click'"
    if form == "nested":
        once = f"CREATE TEMP TABLE events AS SELECT * FROM read_json('{files[0]}', format = 'newline_delimited', columns = {{{NESTED}}})"
        lists = "SELECT rec.id AS request_id, ts, ctx.exp.ranker AS arm, items, FROM events WHERE event = 'served'"
        return once, lists, "SELECT rec.id AS request_id, ts, item.id AS item FROM events WHERE event = 'click'"
    where = [" WHERE type = 'served'", " WHERE type = 'click'"] if form == "parquet" else ["", ""]
    lists = f"SELECT request_id, epoch_ms(ts) AS ts, experiments['ranker'] AS arm, items FROM '{files[0]}'{where[0]}"
    return None, lists, f"SELECT request_id, epoch_ms(ts) AS ts, item FROM '{files[-1]}'{where[1]}"


def query(form, lists):
    items = "list_transform(items, lambda shown: shown.id)" if form == "nested" else "items"
    of_k = [
        [
            f"count(*) FILTER (rank <= {k}) AS hits{k}",
            f"coalesce(sum(1 / log2(rank + 1)) FILTER (rank <= {k}), 0) AS dcg{k}",
            f"coalesce(sum(h / rank) FILTER (rank <= {k}), 0) AS ap{k}",
        ]
        for k in K
    ]
    metrics = [
        [
            f'sum((best <= {k})::INT) / any_value(n) AS "hit_rate@{k}"',
            f'sum(CASE WHEN best <= {k} THEN 1 / best ELSE 0 END) / any_value(n) AS "mrr@{k}"',
            f'sum(dcg{k} / ideal[least({k}, g)]) / any_value(n) AS "ndcg@{k}"',
            f'sum(hits{k}) / {k} / any_value(n) AS "precision@{k}"',
            f'avg(hits{k} / g) AS "recall@{k}"',
            f'sum(ap{k} / least({k}, g)) / any_value(n) AS "map@{k}"',
        ]
        for k in K
    ]
    return f"""
        WITH lists AS ({lists}),
        sizes AS (SELECT arm, count(DISTINCT request_id) AS n FROM lists GROUP BY arm),
        hits AS (
            SELECT DISTINCT lists.request_id, arm, list_position({items}, item) AS rank
            FROM lists JOIN clicks USING (request_id)
            WHERE clicks.ts BETWEEN lists.ts AND lists.ts + 1800000
        ),
        ranked AS (
            SELECT *, row_number() OVER list AS h, count(*) OVER (PARTITION BY request_id) AS g FROM hits WHERE rank > 0
            WINDOW list AS (PARTITION BY request_id ORDER BY rank)
        ),
        per_list AS (
            SELECT any_value(arm) AS arm, any_value(g) AS g, min(rank) AS best, {", ".join(sum(of_k, []))}
            FROM ranked GROUP BY request_id
        ),
        ideals AS (SELECT list(dcg ORDER BY n) AS ideal FROM (SELECT n, sum(1 / log2(n + 1)) OVER (ORDER BY n) AS dcg FROM range(1, 101) t(n)))
        SELECT arm, {", ".join(sum(metrics, []))}
        FROM per_list JOIN sizes USING (arm), ideals GROUP BY arm
    """


def main(form, *files):
    con = duckdb.connect()
    con.execute("SET threads = 1")
    once, lists, clicks = sources(form, files)
    if once:
        con.execute(once)
    con.execute(f"CREATE TEMP TABLE clicks AS {clicks}")
    found = con.execute(query(form, lists))
    names = [column[0] for column in found.description]
    values = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in found.fetchall()}
    json.dump({"version": duckdb.__version__, "values": values}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
