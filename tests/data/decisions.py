#!/usr/bin/env python3
"""Values for the rule that decides, made by other people's packages: writes decisions.json beside itself.

    python3 -m pip install --target /tmp/decisions scipy==1.17.1 statsmodels==0.15.0 ville==0.1.0
    PYTHONPATH=/tmp/decisions python3 tests/data/decisions.py

It shares no code with abgauge. Rows are random under fixed seeds; `../statistics/` compares.

- `decision_p`: p and intervals of a decision look of weight w, by scipy's t; Holm over a family by statsmodels.
- `needed_information`: what a decision look needs for power 0.8, by scipy's normal quantiles.
- `benjamini_yekutieli`: families by statsmodels.
- `harm`: one-sided boundaries of ville's normal mixture, of which abgauge has the e-value: ln E at the boundary is -ln alpha.
- `refused`: shares of refused lists and their variance by cluster, by statsmodels' cluster-robust errors of a mean.
- `decision`: states by the fourteen rules: the rows of statistics.json, whose states still hold, and new rows by hand.
"""

import json
import math
from pathlib import Path

import numpy
import scipy.stats
import statsmodels.api
import statsmodels.stats.multitest
import ville

HERE = Path(__file__).resolve().parent
ALPHA = 0.05
random = numpy.random.default_rng(38)


def weight(k, planned, is_planned_look):
    if is_planned_look:
        return 0.8
    return (0.2 if planned else 1.0) * 6 / (math.pi * k) ** 2


def adjusted(p, method):
    return [float(p) for p in statsmodels.stats.multitest.multipletests(p, method=method)[1]]


def decision_p():
    families = []
    for k in range(1, 13):
        for planned, is_planned_look in [(False, False), (True, False), (True, True)]:
            w = weight(k, planned, is_planned_look)
            rows = []
            for _ in range(int(random.integers(1, 7))):
                degrees = int(random.integers(60, 256))
                variance = float(10 ** random.uniform(-6, -2))
                t = float(random.normal(0, 2.5))
                p = float(2 * scipy.stats.t.sf(abs(t), degrees))
                half = float(scipy.stats.t.isf(ALPHA * w / 2, degrees)) * math.sqrt(variance)
                value = t * math.sqrt(variance)
                rows.append(
                    {"value": value, "variance": variance, "degrees": degrees, "p_t": p, "p": min(1.0, p / w),
                     "interval": [value - half, value + half]}
                )
            families.append(
                {"k": k, "planned": planned, "is_planned_look": is_planned_look, "weight": w, "rows": rows,
                 "holm": adjusted([row["p"] for row in rows], "holm")}
            )
    return {"alpha": ALPHA, "families": families}


def needed_information():
    rows = []
    isf = scipy.stats.norm.isf
    for _ in range(20):
        k, m, guardrails = int(random.integers(1, 10)), int(random.integers(1, 13)), int(random.integers(0, 4))
        alpha = float(random.choice([0.01, 0.05, 0.1]))
        w = weight(k, False, False)
        x = (isf(alpha * w / (2 * m)) + isf(0.2 / (guardrails + 1))) ** 2
        rows.append({"k": k, "hypotheses": m, "guardrails": guardrails, "alpha": alpha, "x": float(x)})
    return rows


def benjamini_yekutieli():
    families = []
    for number in range(12):
        p = random.uniform(0, 1, int(random.integers(2, 31))) ** (1 + number % 4)
        if number % 3 == 0:
            p[0] = p[-1]
        if number % 4 == 1:
            p[0] = 1.0
        if number % 4 == 2:
            p[0] = 1e-30
        families.append({"p": [float(one) for one in p], "adjusted": adjusted(p, "fdr_by")})
    return families


def harm():
    rows = []
    for x in [0.05, 0.3, 1.0, 2.5, 8.0, 40.0, 300.0]:
        for alpha in [0.2, 0.05, 1e-4]:
            # The mixture of precision rho over lambda at the intrinsic time v: x = v/rho, and z = u/sqrt(v).
            rho = 3.0
            v = x * rho
            u = float(ville.normal_mixture(v, alpha, rho, one_sided=True))
            rows.append({"x": x, "z": u / math.sqrt(v), "ln_e": -math.log(alpha)})
    return rows


def refused():
    # A generator of its own, so that other blocks keep their rows.
    own = numpy.random.default_rng(39)
    rows = []
    for n_clusters in [2, 5, 24]:
        accepted = own.integers(1, 60, n_clusters)
        lost = own.integers(0, 8, n_clusters)
        clusters = numpy.arange(n_clusters)
        groups = numpy.concatenate([numpy.repeat(clusters, accepted), numpy.repeat(clusters, lost)])
        is_refused = numpy.concatenate([numpy.zeros(accepted.sum()), numpy.ones(lost.sum())])
        fit = statsmodels.api.OLS(is_refused, numpy.ones(len(groups))).fit(cov_type="cluster", cov_kwds={"groups": groups})
        rows.append({"clusters": numpy.stack([lost, accepted], axis=1).tolist(), "share": float(fit.params[0]),
                     "variance": float(fit.cov_params()[0, 0])})
    return rows


def decision():
    old = json.loads((HERE / "statistics.json").read_text())["decision"]
    rows = list(old["rows"])
    named = {row["case"]: row for row in rows}

    def case(name, like, state, **changes):
        given = json.loads(json.dumps(named[like]["in"]))
        for key, value in changes.items():
            if isinstance(value, dict) and key in ("primaries", "guardrails"):
                for metric, more in value.items():
                    given[key][metric].update(more)
            else:
                given[key] = value
        result = {"win": ("pass", 1), "loss": ("rollback", -1), "harm": ("rollback", -1)}.get(state, ("hold", 0))
        rows.append({"case": name, "in": given, "state": state, "result": result[0], "value": result[1]})

    primary = "hit_rate@10"
    case("p is small, and the interval holds 0", "win", "no_decision", primaries={primary: {"lower": -0.001}})
    case("a small p at a lift of the other sign is a loss", "win", "loss",
         primaries={primary: {"lift": -0.06, "lower": -0.11, "upper": -0.01}})
    case("the lift is below 0 and its interval is not", "loss", "no_decision", primaries={primary: {"upper": 0.06}})
    for previous in ["win", "loss", "no_effect"]:
        case(f"{previous} stands at a look that decides nothing", "equal, wide", previous, previous=previous)
        case(f"{previous} stands between", "win stands between decision looks", previous, previous=previous)
    case("a win gives way to a loss", "loss", "loss", previous="win")
    case("a win gives way to no effect", "equal and narrow", "no_effect", previous="win")
    case("a fifth of the lists without a user", "win", "win", without_user={"share_arm": 0.2, "share_control": 0.2})
    for share in [{"share_arm": 0.21, "share_control": 0.0}, {"share_arm": 0.0, "share_control": 0.21}]:
        case(f"lists without a user: {share}", "win", "invalid(users)", without_user=share)
    case("a user with a third", "win", "win", top_user={"share": 1 / 3})
    case("a user with more than a third", "win", "invalid(users)", top_user={"share": 0.34})
    case("users in two arms come first", "win", "invalid(multi_arm)", multi_arm_users=201, top_user={"share": 0.5})
    case("lists without a user come before harm", "harm in a guardrail, no decision look", "invalid(users)",
         without_user={"share_arm": 0.5, "share_control": 0.5})
    case("arms that lose different shares of their lists come first, also without shares", "no shares configured",
         "invalid(refused)", refused={"share_arm": 0.05, "share_control": 0.01})
    case("a win at harm is harm", "harm in a guardrail, no decision look", "harm", previous="win", decision_look=True)
    return {"alpha": old["alpha"], "list_ratio_margin": old["list_ratio_margin"], "rows": rows}


def main():
    packages = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "ville": "0.1.0"}
    blocks = {
        "packages": packages,
        "decision_p": decision_p(),
        "needed_information": needed_information(),
        "benjamini_yekutieli": benjamini_yekutieli(),
        "harm": harm(),
        "refused": refused(),
        "decision": decision(),
    }
    (HERE / "decisions.json").write_text(json.dumps(blocks, indent=1) + "\n")


main()
