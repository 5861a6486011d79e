#!/usr/bin/env python3
"""False alarms in docs/statistics.md of experiments with few users, if burn-in counted 220 users and not 220 of 256 buckets.

    python3 tests/data/few_users.py        needs numpy and scipy; prints the share of A/A weeks with p <= 0.05 at their end

Each user is a bucket, and t has n - 1 degrees of freedom. Users come at log-normal rates of sigma, and click with a rate drawn
from Beta(1, 3). A week counts if both arms have 220 users with a list, and 100 expected lists with a click.
"""

import itertools

import numpy
import scipy.stats

N_RUNS, N_USERS, N_HITS = 4000, 220, 100


def ratio(lists, clicks):
    """Returns the ratio of an arm and its variance, by user."""
    n = len(lists)
    value = clicks.sum() / lists.sum()
    errors = (clicks - value * lists) / lists.sum()
    return value, n / (n - 1) * (errors**2).sum()


def week(random, n_users, sigma, mean):
    """Returns p of one week without an effect. None if it is still in burn-in."""
    arms = []
    for _ in range(2):
        rates = mean * numpy.exp(random.normal(0, sigma, n_users) - sigma**2 / 2)
        lists = random.poisson(rates)
        clicks = random.binomial(lists, random.beta(1, 3, n_users))
        arms.append((lists[lists > 0], clicks[lists > 0]))
    n_least = min(len(lists) for lists, _ in arms)
    if n_least < N_USERS or sum(clicks.sum() for _, clicks in arms) / 2 < N_HITS:
        return None
    (one, of_one), (other, of_other) = (ratio(*arm) for arm in arms)
    t = abs(one - other) / (of_one + of_other) ** 0.5
    return 2 * scipy.stats.t.sf(t, n_least - 1)


def main():
    for number, (n_users, sigma, mean) in enumerate(itertools.product([260, 350, 550], [0.8, 1.3, 1.5], [4, 20])):
        random = numpy.random.default_rng([38, number])
        found = [p for p in (week(random, n_users, sigma, mean) for _ in range(N_RUNS)) if p is not None]
        if len(found) < 400:
            continue
        share = numpy.mean(numpy.array(found) <= 0.05)
        error = (share * (1 - share) / len(found)) ** 0.5
        print(
            f"{n_users} users in an arm, sigma {sigma}, {mean} lists: {100 * share:.1f} ± {100 * error:.1f}% of {len(found)}"
        )


main()
