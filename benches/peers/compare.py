"""Runs `abgauge evaluate` and the packages on the same file by turns. Prints a Markdown table of their CPU times, and whether
their values agree.

    compare.py ABGAUGE FILE FOLDER_OF_ENVIRONMENTS ROUNDS
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
TOLERANCE = 1e-9
# CPU time covers all threads, so additional ones would only add the cost of sharing.
ONE_THREAD = dict.fromkeys(
    ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"], "1"
)
# The profile `default` has RePlay's choices, except that its recall is over clicked lists.
ALL = {"hit_rate", "mrr", "ndcg", "precision", "recall", "map"}
DEFAULT_EQUALS_REPLAY = ALL - {"recall"}


@dataclass
class Run:
    """CPU seconds (`kernel` is a part of `cpu`) and peak memory of a process, and its output."""

    cpu: float
    kernel: float
    peak_mb: float
    report: dict


@dataclass
class Contender:
    name: str
    script: str
    how: str
    handed_over: str
    runs: list[Run] = field(default_factory=list)

    def run(self, file, environments, numba_cache):
        python = environments / self.script / "bin" / "python"
        script = HERE / f"with_{self.script}.py"
        return measured([python, "-W", "ignore", script, file, self.how], {"NUMBA_CACHE_DIR": numba_cache})


def contenders():
    return [
        Contender("ranx", "ranx", "all", "all lists"),
        Contender("ranx", "ranx", "clicked", "clicked lists alone"),
        Contender("RecTools", "rectools", "all", "all lists"),
        Contender("RecTools", "rectools", "clicked", "clicked lists alone"),
        Contender("RecTools", "rectools", "notebook", "all lists, as in a notebook"),
        Contender("RePlay", "replay", "all", "all lists"),
        Contender("RePlay", "replay", "clicked", "clicked lists alone"),
    ]


def measured(command, environment=None):
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        env=os.environ | ONE_THREAD | (environment or {}),
    )
    report = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command}: exit code {process.returncode}")
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_stime, usage.ru_maxrss / 1000, json.loads(report))


def evaluate(abgauge, file, *flags):
    return measured([abgauge, "evaluate", file, "--k", "1,5,10", "--format", "json", *flags])


def progress(text):
    print(text, file=sys.stderr, flush=True)


def main(abgauge, file, environments, rounds):
    with open(file, "rb") as events:
        # Into the page cache.
        n_lists = sum(line.startswith(b'{"type":"served"') for line in events)
    ours, rivals = [], contenders()
    with tempfile.TemporaryDirectory() as numba_cache:
        progress("ranx for the first time: it compiles")
        first = next(rival for rival in rivals if rival.how == "clicked").run(file, environments, numba_cache)
        for n in range(1, rounds + 1):
            ours.append(evaluate(abgauge, file))
            progress(f"round {n}: abgauge {ours[-1].cpu:.2f} s")
            for rival in rivals:
                rival.runs.append(rival.run(file, environments, numba_cache))
                progress(f"round {n}: {rival.name}, {rival.handed_over}: {rival.runs[-1].cpu:.2f} s")
    print_table(subprocess.check_output([abgauge, "--version"], text=True).split()[1], n_lists, ours, first, rivals)
    print()
    return agree(abgauge, file, ours[0], rivals)


def print_table(version, n_lists, ours, first, rivals):
    reference = median(run.cpu for run in ours)
    columns = ["", "handed over", "CPU s: process", "its kernel part", "loading", "computing"]
    columns += ["lists per CPU s", "process ÷ abgauge", "computing ÷ abgauge", "peak MB"]
    print_row(columns)
    print_row(["---"] * len(columns))

    def row(name, handed_over, runs):
        cpu = [run.cpu for run in runs]
        loading, computing = part(runs, "loading"), part(runs, "computing")
        cells = [name, handed_over, spread(cpu), decimals(median(run.kernel for run in runs), 2)]
        cells += [decimals(loading, 2), decimals(computing, 2)]
        cells += [f"{n_lists / median(cpu):,.0f}", decimals(median(cpu) / reference, 1)]
        cells += [decimals(computing and computing / reference, 1), f"{median(run.peak_mb for run in runs):,.0f}"]
        print_row(cells)

    row(f"**abgauge {version}**", "the file", ours)
    for rival in rivals:
        row(f"{rival.name} {rival.runs[0].report['version']}", rival.handed_over, rival.runs)
    row(f"ranx {first.report['version']}", "clicked lists alone, compiling", [first])


def print_row(cells):
    print(f"| {' | '.join(cells)} |")


def part(runs, name):
    """Returns the median of a part, or None for abgauge, which computes while it loads."""
    return median(run.report[name] for run in runs) if name in runs[0].report else None


def decimals(value, n):
    return "" if value is None else f"{value:.{n}f}"


def spread(values):
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def agree(abgauge, file, default, rivals):
    """Prints how far the values differ. Returns false if they differ too much."""
    usage = subprocess.check_output([abgauge, "evaluate", "--help"], text=True)
    has_profiles = "--convention" in usage
    replay = next(rival for rival in rivals if rival.script == "replay" and rival.how == "all")
    verdicts = [compared("default, RePlay on all lists", metrics(default), replay, DEFAULT_EQUALS_REPLAY)]
    if not has_profiles:
        print("- other profiles: skipped, this abgauge has no --convention")
        return all(verdicts)
    for rival in rivals:
        if (rival.script, rival.how) == ("replay", "clicked"):
            continue  # Its profile uses all lists.
        ours = metrics(evaluate(abgauge, file, "--convention", rival.script))
        name = f"{rival.script}, {rival.name} on {rival.handed_over}"
        verdicts.append(compared(name, ours, rival, ALL))
    return all(verdicts)


def metrics(run):
    arms = run.report["experiments"]["ranker"]["arms"]
    return {arm: found["metrics"] for arm, found in arms.items()}


def compared(name, ours, rival, ids):
    """Prints how far these metrics differ. Returns false beyond the tolerance, or if a value is absent."""
    pairs = [
        (arm, key, ours[arm].get(key), value)
        for arm, values in rival.runs[0].report["values"].items()
        for key, value in values.items()
        if key.split("@")[0] in ids
    ]
    worst = max(pairs, key=apart)
    is_near = apart(worst) <= TOLERANCE
    verdict = "agree" if is_near else f"DISAGREE, as {worst}"
    print(f"- profile {name}: {len(pairs)} values {verdict}; at most {apart(worst):.1e} apart")
    return is_near


def apart(pair):
    _, _, ours, theirs = pair
    return float("inf") if ours is None else abs(ours - theirs)


if __name__ == "__main__":
    abgauge, file, environments, rounds = sys.argv[1:]
    sys.exit(0 if main(abgauge, file, Path(environments), int(rounds)) else 1)
