#!/usr/bin/env python3
"""Values of other packages for one file of lists, and whether their newest releases still give them. Needs Python 3.13, venv and PyPI.

    python3.13 tests/data/sources/sources.py make lenskit ranx   install the pinned packages, and write PROFILE.json; all without a name
    python3.13 tests/data/sources/sources.py newer               compare what the newest release of each package gives with PROFILE.json
    python3.13 tests/data/sources/sources.py lists               write lists.json: random lists from a seed, and odd cases

It shares no code with abgauge. `packages.py` has the call of each package, and runs in a virtual environment of its own, which stays in
~/.cache/abgauge/sources, or ABGAUGE_CACHE. `newer` ends with 1 if a value differs or a release cannot be compared.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("ABGAUGE_CACHE", Path.home() / ".cache/abgauge")) / "sources"

# By profile: the package, and what is pinned beside it.
SOURCES = {
    "rs_metrics_0.3.0": ["rs_metrics==0.3.0", "numpy==2.4.6", "pandas==3.1.1"],
    "rs_metrics_0.6.0": ["rs_metrics==0.6.0", "numpy==2.4.6", "pandas==3.1.1"],
    "replay_tables": ["replay-rec==0.22.0"],
    "replay_dicts": ["replay-rec==0.22.0"],
    "jurity": ["jurity==2.1.0", "pandas==2.3.3"],
    "rectools": ["rectools==0.19.0"],
    "ranx": ["ranx==0.3.21"],
    "trec_eval": ["pytrec_eval-terrier==0.5.11"],
    "recommenders": ["recommenders==1.2.1"],
    "torchmetrics": ["torchmetrics==1.9.0", "torch==2.15.0"],
    "lightgbm": ["lightgbm==4.7.0"],
    "xgboost": ["xgboost==3.4.1"],
    "lenskit": ["lenskit==2026.4.0"],
}

# Newer releases are another profile.
FROZEN = ["rs_metrics_0.3.0"]


def run(*command, **options):
    return subprocess.run([str(part) for part in command], text=True, check=True, capture_output=True, **options).stdout


def environment(requirements):
    """The Python of a virtual environment that has these packages, made if it is not there."""
    folder = CACHE / "+".join(requirements).replace("==", "-")
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
        (folder / "complete").touch()
    return folder / "bin/python"


def values(profile, requirements):
    lists = (HERE / "lists.json").read_text()
    # Some packages print warnings above.
    return json.loads(run(environment(requirements), HERE / "packages.py", profile, input=lists).splitlines()[-1])


def make(profiles):
    for profile in profiles or SOURCES:
        requirements = SOURCES[profile]
        document = {"packages": requirements, "values": values(profile, requirements)}
        text = json.dumps(document, separators=(",", ":")).replace('},"', '},\n"')
        (HERE / f"{profile}.json").write_text(text + "\n")
        print(f"{profile}: {', '.join(requirements)}")


def newest(package):
    # "ranx (0.3.21)", then all releases that this Python can install.
    return run(sys.executable, "-m", "pip", "index", "versions", package).split()[1].strip("()")


def newer():
    failed = False
    for profile, (pinned, *_) in SOURCES.items():
        package, version = pinned.split("==")
        release = newest(package)
        if release == version or profile in FROZEN:
            print(f"{profile}: {package} {version}" + ("" if release == version else f", held at this release; PyPI has {release}"))
            continue
        try:
            differing = list(differences(json.loads((HERE / f"{profile}.json").read_text())["values"], values(profile, [f"{package}=={release}"])))
        except subprocess.CalledProcessError as error:
            differing = error.stderr.strip().splitlines()[-1:] or [str(error)]
        failed |= bool(differing)
        print(f"{profile}: {package} {version}, PyPI has {release}: {'the same values' if not differing else 'it differs'}")
        for line in differing[:10]:
            print(f"    {line}")
    return int(failed)


def differences(ours, theirs):
    for case, of_case in ours.items():
        for key in of_case | theirs[case]:
            before, after = of_case.get(key, "absent"), theirs[case].get(key, "absent")
            are_numbers = isinstance(before, float) and isinstance(after, float)
            if not (abs(before - after) <= 1e-9 if are_numbers else before == after):
                yield f"{case} {key}: {before}, now {after}"


def lists():
    """400 random lists; then odd cases, each with lists of its own. Ties are in the order that a stable sort leaves."""
    draw = random.Random(40)

    def one(n_shown, n_relevant, n_on_list=None):
        shown = draw.sample(range(1, 100), n_shown)
        others = [item for item in range(1, 100) if item not in shown]
        n_on_list = min(n_shown, draw.randint(0, n_relevant) if n_on_list is None else n_on_list)
        relevant = draw.sample(shown, n_on_list) + draw.sample(others, n_relevant - n_on_list)
        draw.shuffle(relevant)
        return [shown, relevant]

    def any_list():
        return one(draw.randint(1, 20), draw.randint(1, 8))

    def tied():
        shown, relevant = one(20, 6, 4)
        return [shown, relevant, sorted((draw.randint(1, 4) for _ in shown), reverse=True)]

    def with_copy():
        shown, relevant = one(draw.randint(3, 9), 3, 2)
        first = next(item for item in shown if item in relevant)
        return [shown + [first], relevant]

    def with_copy_in_truth():
        shown, relevant = any_list()
        return [shown, relevant + relevant[:1]]

    cases = {
        "random": [any_list() for _ in range(400)],
        "no_truth": [one(draw.randint(1, 12), 0 if user % 3 == 0 else 3) for user in range(30)],
        "no_list": [one(0 if user % 3 == 0 else draw.randint(1, 12), 3) for user in range(30)],
        "ties": [tied() for _ in range(20)],
        "copies": [with_copy() for _ in range(20)],
        "copies_in_truth": [with_copy_in_truth() for _ in range(20)],
    }
    text = json.dumps(cases, separators=(",", ":")).replace("]],", "]],\n")
    (HERE / "lists.json").write_text(text + "\n")


def main(arguments):
    match arguments:
        case ["make", *profiles]:
            return make(profiles)
        case ["newer"]:
            return newer()
        case ["lists"]:
            return lists()
        case _:
            return __doc__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
