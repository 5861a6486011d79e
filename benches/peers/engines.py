"""Runs `abgauge evaluate` and SQL engines on the same events in several forms, by turns and on one core. Prints a Markdown table of
their CPU times, and whether their values agree.

    engines.py ABGAUGE LINES FOLDER_OF_ENVIRONMENTS ROUNDS
"""

import subprocess
import sys
from pathlib import Path
from statistics import median

from compare import HERE, TOLERANCE, apart, measured, metrics, print_row, progress, spread

ENGINES = ["duckdb", "polars"]
NESTED = """[events]
type = "event"

[events.served]
request_id = "rec.id"
user_id = "ctx.user"
experiments = "ctx.exp"
item_id = "id"

[events.click]
request_id = "rec.id"
item = "item.id"
"""


def forms(lines, folder):
    """Returns the files of each form, and the flags with which abgauge reads them."""
    path = Path(lines)
    config = folder / "nested.toml"
    config.write_text(NESTED)
    one, nested, lists, clicks = (
        path.with_suffix(suffix) for suffix in [".parquet", ".nested.jsonl", ".lists.parquet", ".clicks.parquet"]
    )
    return {
        "lines": ([path], [path]),
        "nested": ([nested], [nested, "--config", config]),
        "parquet": ([one], [one]),
        "separate": ([lists, clicks], ["--lists", lists, "--clicks", clicks]),
    }


def main(abgauge, lines, environments, rounds):
    python = environments / "engines" / "bin" / "python"
    if not Path(lines).with_suffix(".clicks.parquet").exists():
        subprocess.run([python, HERE / "forms.py", lines], check=True)
    on_one_core = ["taskset", "-c", "0"]
    runs, worst = {}, 0.0
    for form, (files, flags) in forms(lines, environments).items():
        runs[form] = {name: [] for name in ["abgauge", *ENGINES]}
        for n in range(1, rounds + 1):
            ours = measured([*on_one_core, abgauge, "evaluate", *flags, "--k", "1,5,10", "--format", "json"])
            runs[form]["abgauge"].append(ours)
            for engine in ENGINES:
                theirs = measured([*on_one_core, python, HERE / f"with_{engine}.py", form, *files])
                runs[form][engine].append(theirs)
                worst = max(worst, difference(metrics(ours), theirs.report["values"]))
            progress(f"{form}, round {n}: " + ", ".join(f"{name} {of[-1].cpu:.2f} s" for name, of in runs[form].items()))
    print_table(runs)
    print(f"\nValues are at most {worst:.1e} apart.")
    return worst <= TOLERANCE


def difference(ours, theirs):
    return max(
        apart((arm, key, ours[arm].get(key), value)) for arm, values in theirs.items() for key, value in values.items()
    )


def print_table(runs):
    versions = [f"{engine} {runs['lines'][engine][0].report['version']}" for engine in ENGINES]
    ratios = [f"{version} ÷ abgauge" for version in versions]
    print_row(["CPU s", "abgauge", *versions, *ratios, "peak MB: abgauge", *ENGINES])
    print_row(["---"] * (3 + 3 * len(ENGINES)))
    for form, of in runs.items():
        cpu = [spread([run.cpu for run in of[name]]) for name in of]
        ratios = [spread([theirs.cpu / ours.cpu for ours, theirs in zip(of["abgauge"], of[engine])]) for engine in ENGINES]
        print_row([form, *cpu, *ratios, *(f"{median(run.peak_mb for run in of[name]):,.0f}" for name in of)])


if __name__ == "__main__":
    abgauge, lines, environments, rounds = sys.argv[1:]
    sys.exit(0 if main(abgauge, lines, Path(environments), int(rounds)) else 1)
