#!/usr/bin/env python3
"""The table of docs/statistics.md: how often weekly decisions are made of a difference that is a Brownian motion.

    python3 tests/data/brownian.py        needs numpy and scipy; prints the share decided by week 1, 2 and 8

Effects are in units of mde: what a fixed test finds with power 0.8 in week 1. Each week adds the same information.
"""

import numpy
import scipy.stats

ALPHA, N_WEEKS, N_RUNS = 0.05, 8, 2000
MDE = scipy.stats.norm.isf(0.025) + scipy.stats.norm.isf(0.2)
CHANGING = [2.5] * 2 + [-1.0] * 5
# An effect for each day.
EFFECTS = {
    "A/A": [0.0] * 56,
    "each week +2.5 mde for 2 days, -1 mde for 5": CHANGING * 8,
    "that in week 1 at half the size, then nothing": [effect / 2 for effect in CHANGING] + [0.0] * 49,
    "constant mde": [1.0] * 56,
    "constant 0.7 mde": [0.7] * 56,
    "constant 0.4 mde": [0.4] * 56,
}


def weights(planned_week):
    """By week. Without a planned week, all of alpha is for the weekly looks."""
    k, weights = 0, []
    for week in range(1, N_WEEKS + 1):
        if week == planned_week:
            weights.append(0.8)
            continue
        k += 1
        weights.append((0.2 if planned_week else 1.0) * 6 / (numpy.pi * k) ** 2)
    return numpy.array(weights)


def main():
    for number, (name, effects) in enumerate(EFFECTS.items()):
        random = numpy.random.default_rng([38, number])
        days = random.standard_normal((N_RUNS, 7 * N_WEEKS)) / numpy.sqrt(7) + numpy.array(effects) * MDE / 7
        z = days.cumsum(1)[:, 6::7] / numpy.sqrt(numpy.arange(1, N_WEEKS + 1))
        p = 2 * scipy.stats.norm.sf(abs(z))
        shares = []
        for planned_week in [None, 2]:
            decided = numpy.logical_or.accumulate(p / weights(planned_week) <= ALPHA, axis=1)
            shares += [100 * decided[:, week - 1].mean() for week in (1, 2, 8)]
        print(f"{name:46}", "weekly {:5.1f} {:5.1f} {:5.1f}   planned for week 2 {:5.1f} {:5.1f} {:5.1f}".format(*shares))


main()
