#!/bin/sh
# LensKit's precision is a mean over other lists than its other metrics: a user without test items lowers it, and leaves hit rate, MRR,
# NDCG and recall as they are; average precision then raises ZeroDivisionError. A user with an empty list lowers these, and not precision.
# Needs Python 3.13 with venv as PYTHON (python3), and PyPI. Fails if a version gives other numbers than those below.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${PYTHON:-python3}" -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet lenskit==2026.4.0
cd "$dir"
cat > measure.py <<'PYTHON'
import warnings
import numpy
from lenskit.data import ItemList, ItemListCollection
from lenskit.metrics import MeasurementCollector, ranking

warnings.simplefilter("ignore")
# Recommended and test items by user.
both, no_test_items, empty_list = ([1, 2], [1, 2]), ([3, 4], None), ([], [5, 6])
for about, users in [
    ("a perfect list", [both]),
    ("and a user without test items", [both, no_test_items]),
    ("and a user with an empty list", [both, empty_list]),
]:
    shown, test = ItemListCollection(["user_id"]), ItemListCollection(["user_id"])
    for user, (items, relevant) in enumerate(users):
        shown.add(ItemList(item_ids=numpy.array(items, dtype=int), ordered=True), user_id=user)
        if relevant:
            test.add(ItemList(item_ids=relevant), user_id=user)
    for name in ["Hit", "RecipRank", "NDCG", "Recall", "Precision", "AveragePrecision"]:
        collector = MeasurementCollector()
        collector.add_metric(getattr(ranking, name)(n=2), "metric")
        try:
            print(f"{about}: {name} {collector.measure_run(shown, test).summary_metrics['metric.mean']}")
        except ZeroDivisionError as error:
            print(f"{about}: {name} raises {error!r}")
PYTHON
cat > expected <<'TEXT'
a perfect list: Hit 1.0
a perfect list: RecipRank 1.0
a perfect list: NDCG 1.0
a perfect list: Recall 1.0
a perfect list: Precision 1.0
a perfect list: AveragePrecision 1.0
and a user without test items: Hit 1.0
and a user without test items: RecipRank 1.0
and a user without test items: NDCG 1.0
and a user without test items: Recall 1.0
and a user without test items: Precision 0.5
and a user without test items: AveragePrecision raises ZeroDivisionError('float division by zero')
and a user with an empty list: Hit 0.5
and a user with an empty list: RecipRank 0.5
and a user with an empty list: NDCG 0.5
and a user with an empty list: Recall 0.5
and a user with an empty list: Precision 1.0
and a user with an empty list: AveragePrecision 1.0
TEXT
venv/bin/pip list 2>/dev/null | grep -E '^lenskit '
venv/bin/python measure.py | grep -v ' \[warning' | tee actual
diff expected actual
