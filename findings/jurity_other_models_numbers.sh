#!/bin/sh
# Jurity gives a second model the numbers of the first, if both have the same scores, such as ranks as scores:
# it keeps sorted recommendations by the values of the table, and users and items are in its index by then.
# Needs Python 3 with venv, and PyPI. Fails if a version gives the second model other numbers than those below.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet jurity==2.1.0 pandas==2.3.3
cd "$dir"
cat > compare.py <<'PYTHON'
import warnings
import pandas
from jurity.recommenders import CTR, MAP, NDCG, Precision, Recall

warnings.simplefilter("ignore", FutureWarning)
truth = pandas.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"], "clicks": [1, 1]})
hits = pandas.DataFrame({"user_id": [1, 1, 2, 2], "item_id": ["a", "x", "b", "y"], "clicks": [2, 1, 2, 1]})
misses = hits.assign(item_id=["p", "q", "r", "s"])
for metric in [CTR, MAP, NDCG, Precision, Recall]:
    score = lambda shown: metric(click_column="clicks", k=2).get_score(truth, shown)
    print(metric.__name__, "of a model that hits:", score(hits), "of one that misses:", score(misses))
other_scores = misses.assign(clicks=[4, 3, 4, 3])
print("Recall of the one that misses, with 4 and 3 as scores:", Recall(click_column="clicks", k=2).get_score(truth, other_scores))
PYTHON
cat > expected <<'TEXT'
CTR of a model that hits: 1.0 of one that misses: 1.0
MAP of a model that hits: 1.0 of one that misses: 1.0
NDCG of a model that hits: 1.0 of one that misses: 1.0
Precision of a model that hits: 0.5 of one that misses: 0.5
Recall of a model that hits: 1.0 of one that misses: 1.0
Recall of the one that misses, with 4 and 3 as scores: 0.0
TEXT
venv/bin/pip list 2>/dev/null | grep -E '^(jurity|pandas) '
venv/bin/python compare.py | tee actual
diff expected actual
