#!/usr/bin/env python3
"""Half widths of `abgauge evaluate --compare` beside those of tea-tasting's delta method, file by file. Needs Python 3.11 with venv, and PyPI.

    python3 benches/peers/half_widths.py [--abgauge target/release/abgauge] [--files 20]

tea-tasting 1.14.0 is installed in a virtual environment in a temporary directory. Each file is a week of traffic of heavy-tailed users from a seed of
its own, and arm b clicks up to 10% more. tea-tasting gets one row per user and takes the ratio of sums; abgauge gets the events, and
pools users in 220 buckets. Ends with 1 if the median ratio of half widths is below 0.98 or above 1.02, or if a lift differs by more than 1e-9.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PINNED = ["tea-tasting==1.14.0", "numpy==2.4.6", "pandas==2.3.3"]
WEEK_MS = 7 * 86_400_000
START_MS = 1_700_000_000_000
# By metric of abgauge: numerator and denominator of a user.
METRICS = {"hit_rate@10": ("hits", "lists"), "ctr@10": ("clicks", "items"), "mrr@10": ("reciprocal", "lists")}


def write(path, seed):
    """Write a file of events, and return one row per user."""
    rng = random.Random(seed)
    n_users = rng.choice([3_000, 4_500, 6_000])
    sigma = rng.choice([0.5, 0.9, 1.3])
    effect = rng.choice([0.0, 0.05, 0.1])
    users = []
    with open(path, "w") as file:
        for user in range(n_users):
            arm = rng.choice(["control", "b"])
            rate = 0.12 * rng.betavariate(1, 3) * (1 + effect * (arm == "b"))
            sums = dict(arm=arm, lists=0, items=0, hits=0, clicks=0, reciprocal=0.0)
            for n in range(max(1, round(rng.lognormvariate(0.7, sigma)))):
                ts = START_MS + rng.randrange(WEEK_MS)
                request = f"{user}-{n}"
                items = [f"i{item}" for item in rng.sample(range(500), 10)]
                clicked = [place for place in range(10) if rng.random() < rate]
                event = dict(type="served", ts=ts, request_id=request, user_id=f"u{user}", experiments={"home": arm}, items=items)
                file.write(json.dumps(event) + "\n")
                for place in clicked:
                    click = dict(type="click", ts=ts + 1_000, request_id=request, user_id=f"u{user}", item=items[place])
                    file.write(json.dumps(click) + "\n")
                sums["lists"] += 1
                sums["items"] += len(items)
                sums["hits"] += bool(clicked)
                sums["clicks"] += len(clicked)
                sums["reciprocal"] += 1 / (1 + clicked[0]) if clicked else 0
            users.append(sums)
    return users


def expected(users):
    """Lift and half width of each metric by tea-tasting."""
    import pandas
    import tea_tasting as tt

    metrics = {name: tt.RatioOfMeans(above, below) for name, (above, below) in METRICS.items()}
    result = tt.Experiment(metrics, variant="arm").analyze(pandas.DataFrame(users), control="control")
    return {name: (result[name].rel_effect_size, half_width(result[name])) for name in METRICS}


def half_width(result):
    """Half width of a lift. tea-tasting's interval is symmetric on the log scale, where the error is that of the lift ÷ (1 + lift)."""
    lower, upper = result.rel_effect_size_ci_lower, result.rel_effect_size_ci_upper
    return (math.log1p(upper) - math.log1p(lower)) / 2 * (1 + result.rel_effect_size)


def measured(abgauge, path):
    """Lift and half width of each metric by abgauge."""
    command = [abgauge, "evaluate", path, "--k", "10", "--compare", "control", "--format", "json"]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    metrics = answer["comparisons"]["home"]["b"]["metrics"]
    return {name: (metrics[name]["lift"], (metrics[name]["upper"] - metrics[name]["lower"]) / 2) for name in METRICS}


def in_environment():
    """Run this file again where the pinned packages are installed."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        python = f"{directory}/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINNED], check=True)
        return subprocess.run([python, __file__, *sys.argv[1:]], env={**os.environ, "HALF_WIDTHS": "1"}).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--abgauge", default="target/release/abgauge")
    parser.add_argument("--files", type=int, default=20)
    arguments = parser.parse_args()
    ratios = {name: [] for name in METRICS}
    worst = 0.0
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(1, arguments.files + 1):
            path = Path(directory) / f"{seed}.jsonl"
            theirs = expected(write(path, seed))
            ours = measured(arguments.abgauge, path)
            path.unlink()
            for name in METRICS:
                worst = max(worst, abs(ours[name][0] - theirs[name][0]))
                ratios[name].append(ours[name][1] / theirs[name][1])
    for name, values in ratios.items():
        print(f"{name}: half width ÷ tea-tasting's {statistics.median(values):.4f} (median), {min(values):.3f} to {max(values):.3f}")
    median = statistics.median(value for values in ratios.values() for value in values)
    print(f"all: {median:.4f} (median of {arguments.files} files × {len(METRICS)} metrics); lifts differ by up to {worst:.1e}")
    return int(not 0.98 <= median <= 1.02 or worst > 1e-9)


if __name__ == "__main__":
    sys.exit(main() if "HALF_WIDTHS" in os.environ else in_environment())
