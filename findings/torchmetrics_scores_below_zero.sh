#!/bin/sh
# torchmetrics takes a relevant item for irrelevant if its score is not above 0, as logits and distances often are: MAP, MRR, precision
# and recall of a perfect ranking are then 0, while hit rate and NDCG are 1. Adding a constant to all scores changes the numbers.
# Needs Python 3 with venv, 6 GB, and PyPI. Fails if a version gives other numbers than those below.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torchmetrics==1.9.0 torch==2.15.0
cd "$dir"
cat > shift.py <<'PYTHON'
import torch
from torchmetrics import retrieval

relevant = torch.tensor([True, True, False, False])
query = torch.tensor([0, 0, 0, 0])
logits = torch.tensor([-1.0, -2.0, -3.0, -4.0])
for name in ["HitRate", "NormalizedDCG", "MAP", "MRR", "Precision", "Recall"]:
    value = lambda scores: getattr(retrieval, f"Retrieval{name}")(top_k=2)(scores, relevant, indexes=query).item()
    print(f"{name}: {value(logits)} of logits, {value(logits + 1.5)} of logits + 1.5, {value(logits + 5)} of logits + 5")
PYTHON
cat > expected <<'TEXT'
HitRate: 1.0 of logits, 1.0 of logits + 1.5, 1.0 of logits + 5
NormalizedDCG: 1.0 of logits, 1.0 of logits + 1.5, 1.0 of logits + 5
MAP: 0.0 of logits, 1.0 of logits + 1.5, 1.0 of logits + 5
MRR: 0.0 of logits, 1.0 of logits + 1.5, 1.0 of logits + 5
Precision: 0.0 of logits, 0.5 of logits + 1.5, 1.0 of logits + 5
Recall: 0.0 of logits, 0.5 of logits + 1.5, 1.0 of logits + 5
TEXT
venv/bin/pip list 2>/dev/null | grep -E '^(torch|torchmetrics) '
venv/bin/python shift.py | tee actual
diff expected actual
