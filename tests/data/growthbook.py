#!/usr/bin/env python3
"""What GrowthBook's engine says of 50 random experiments, from their events: writes growthbook.json beside itself.

    python3 -m pip install --target /tmp/growthbook gbstats==0.8.0 xxhash==4.1.0
    PYTHONPATH=/tmp/growthbook python3 tests/data/growthbook.py

It shares no code with abgauge: events are made from a seed, joined, summed by user bucket and given to gbstats here. The test
`tests/evaluate/growthbook.rs` makes the same events (their hash is in the file) and holds `evaluate` to these values.

Of each metric of each arm against `control`:

- `lift`, `ci`, `p`, `sd`: gbstats' two-sided t test of the relative difference, a bucket with a list being a unit.
- `absolute`: the same of the difference.
- `by_user`: the same of the lift, a user being a unit.
- `shown`: what evaluate prints, which differs in three things and is made of gbstats' variances of both arms by numpy and scipy:
  what both arms have in one bucket is no longer taken as independent; n/(n-1) is that of the buckets of both; and degrees of
  freedom are those of the smaller arm, not Welch's.
"""

import json
import math
import os
from collections import defaultdict

import numpy
import scipy
import scipy.stats
import xxhash
from gbstats.frequentist.tests import FrequentistConfig, TwoSidedTTest
from gbstats.models.statistics import RatioStatistic, SampleMeanStatistic

N_EXPERIMENTS = 50
ALPHA = 0.05
K = 5
MIDNIGHT_MS = 1_763_596_800_000
ATTRIBUTION_MS = 30 * 60 * 1000
ARMS = ["control", "t1", "t2"]
METRICS = ["hit_rate@5", "ctr", "mrr"]
MASK = (1 << 64) - 1


class Random:
    """Knuth's MMIX, so that other languages draw the same. Seeds that follow each other begin far apart."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15) & MASK

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % n


def events(seed):
    """Lines of an experiment `e`, with clicks that are late, repeated or off the list."""
    random = Random(seed)
    lines = []
    n_arms = 2 + (1 if random.below(3) == 0 else 0)
    base = 100 + random.below(200)
    user = 0
    for arm in ARMS[:n_arms]:
        n_users = 600 + random.below(600)
        rate = base * (90 + random.below(31)) // 100
        for _ in range(n_users):
            own_rate = rate // 2 + random.below(rate)
            n_lists = 1 + random.below(3)
            if random.below(10) == 0:
                n_lists += random.below(20)
            for n in range(n_lists):
                request = f"{user}-{n}"
                ts = MIDNIGHT_MS + 1000 * random.below(604800)
                n_items = 1 + random.below(10)
                items = ",".join(f'"{item}"' for item in range(1, n_items + 1))
                lines.append(
                    f'{{"type":"served","request_id":"{request}","user_id":"u{user}","ts":{ts},'
                    f'"experiments":{{"e":"{arm}"}},"items":[{items}]}}'
                )
                if random.below(1000) < own_rate:
                    rank = 1 + random.below(n_items)
                    while rank <= n_items:
                        # Up to 40 minutes, of which 30 count.
                        click = line_of_click(request, ts + 1000 * random.below(2400), rank)
                        lines.extend([click] * (2 if random.below(10) == 0 else 1))
                        if random.below(4) > 0:
                            break
                        rank += 1
                if random.below(20) == 0:
                    lines.append(line_of_click(request, ts, "x"))
            user += 1
    return "".join(line + "\n" for line in lines)


def line_of_click(request, ts, item):
    return f'{{"type":"click","request_id":"{request}","ts":{ts},"item":"{item}"}}'


def sip_hash_2_4(key, data):
    """Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012."""
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]

    def rotated(x, n):
        return ((x << n) | (x >> (64 - n))) & MASK

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotated(v[1], 13) ^ v[0]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)

    whole = len(data) // 8 * 8
    last = data[whole:] + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    word = int.from_bytes(last, "little")
    v[3] ^= word
    rounds(2)
    v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def bucket(user, experiment):
    """That of a user, where no key and no seed is set."""
    key = xxhash.xxh3_128_intdigest(b"", 0).to_bytes(16, "little")
    unit = max(sip_hash_2_4(key, user.encode()) >> 32, 1)
    salt = xxhash.xxh3_64_intdigest(experiment.encode(), xxhash.xxh3_64_intdigest(b"bucket", 0))
    return xxhash.xxh3_64_intdigest(unit.to_bytes(8, "little"), salt) % 256


def joined(text):
    """Of each list: arm, user, number of items, and the ranks that were clicked in time."""
    lists, clicks = {}, []
    for line in text.splitlines():
        event = json.loads(line)
        if event["type"] == "served":
            lists[event["request_id"]] = (event, set())
        else:
            clicks.append(event)
    for click in clicks:
        served, ranks = lists[click["request_id"]]
        if 0 <= click["ts"] - served["ts"] <= ATTRIBUTION_MS and click["item"] in served["items"]:
            ranks.add(served["items"].index(click["item"]) + 1)
    for served, ranks in lists.values():
        yield served["experiments"]["e"], served["user_id"], len(served["items"]), ranks


def terms(n_items, ranks):
    """Numerator and denominator that a list adds to each metric."""
    return {
        "hit_rate@5": (1.0 if any(rank <= K for rank in ranks) else 0.0, 1.0),
        "ctr": (float(len(ranks)), float(n_items)),
        "mrr": (1.0 / min(ranks) if ranks else 0.0, 1.0),
    }


def summed(lists, unit):
    """By arm, metric and unit: numerator and denominator."""
    sums = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: [0.0, 0.0])))
    for arm, user, n_items, ranks in lists:
        for metric, (numerator, denominator) in terms(n_items, ranks).items():
            own = sums[arm][metric][unit(user)]
            own[0] += numerator
            own[1] += denominator
    return sums


def statistic(units):
    m, d = numpy.array(list(units.values())).T

    def mean(x):
        return SampleMeanStatistic(n=len(x), sum=float(x.sum()), sum_squares=float((x * x).sum()))

    return RatioStatistic(
        n=len(m), m_statistic=mean(m), d_statistic=mean(d), m_d_sum_of_products=float((m * d).sum())
    )


def test(control, arm, kind):
    result = TwoSidedTTest(control, arm, FrequentistConfig(difference_type=kind, alpha=ALPHA)).compute_result()
    assert result.error_message is None, result
    ci = [float(end) for end in result.ci]
    return {"lift": float(result.expected), "ci": ci, "p": float(result.p_value), "sd": float(result.uplift.stddev)}


def shown(control, arm, of_control, of_arm):
    """From gbstats' ratios and variances of both arms, and what their buckets have in common."""

    def errors(units, ratio):
        total = sum(denominator for _, denominator in units.values())
        return {at: (numerator - ratio * denominator) / total for at, (numerator, denominator) in units.items()}

    r_c, r_t = control.mean, arm.mean
    e_c, e_t = errors(of_control, r_c), errors(of_arm, r_t)
    common = sum(e_t[at] * e_c[at] for at in e_t.keys() & e_c.keys())
    n_c, n_t, n = len(e_c), len(e_t), len(e_t.keys() | e_c.keys())
    squares_c, squares_t = ((n_a - 1) / n_a * s.variance / s.n for n_a, s in ((n_c, control), (n_t, arm)))
    factor = n / (n - 1)
    v = factor * (squares_t + squares_c - 2 * common)
    v_lift = factor * (squares_t / r_c**2 + squares_c * r_t**2 / r_c**4 - 2 * common * r_t / r_c**3)
    degrees = min(n_c, n_t) - 1
    half = scipy.stats.t.ppf(1 - ALPHA / 2, degrees) * math.sqrt(v_lift)
    lift = r_t / r_c - 1
    p = 2 * scipy.stats.t.sf(abs(r_t - r_c) / math.sqrt(v), degrees)
    return {"ci": [lift - half, lift + half], "p": float(p)}


def experiment(seed):
    text = events(seed)
    lists = list(joined(text))
    buckets = {user: bucket(user, "e") for _, user, _, _ in lists}
    by_bucket = summed(lists, buckets.get)
    by_user = summed(lists, lambda user: user)
    arms = {}
    for arm in sorted(by_bucket.keys() - {"control"}):
        arms[arm] = {}
        for metric in METRICS:
            of_control, of_arm = by_bucket["control"][metric], by_bucket[arm][metric]
            control, own = statistic(of_control), statistic(of_arm)
            users = [statistic(by_user[name][metric]) for name in ("control", arm)]
            absolute = test(control, own, "absolute")
            arms[arm][metric] = {
                **test(control, own, "relative"),
                "absolute": {"difference": absolute["lift"], "ci": absolute["ci"], "p": absolute["p"]},
                "by_user": {key: value for key, value in test(*users, "relative").items() if key in ("lift", "ci")},
                "shown": shown(control, own, of_control, of_arm),
            }
    events_hash = f"{xxhash.xxh3_64_intdigest(text.encode(), 0):016x}"
    return {"seed": seed, "events": events_hash, "lists": len(lists), "arms": arms}


def ratios(experiments, width):
    """Widths of evaluate's intervals over others."""

    def of(ci):
        return ci[1] - ci[0]

    found = [of(m["shown"]["ci"]) / of(width(m)) for e in experiments for a in e["arms"].values() for m in a.values()]
    return f"{min(found):.3f} to {max(found):.3f}, median {sorted(found)[len(found) // 2]:.3f} of {len(found)}"


def main():
    key = bytes(range(16))
    assert sip_hash_2_4(key, bytes(range(15))) == 0xA129CA6149BE45E5
    experiments = [experiment(seed) for seed in range(1, N_EXPERIMENTS + 1)]
    packages = {
        "gbstats": "0.8.0",
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "xxhash": xxhash.VERSION,
    }
    src = "gbstats.frequentist.tests.TwoSidedTTest over RatioStatistic; tests/data/growthbook.py"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "growthbook.json")
    with open(path, "w") as out:
        out.write('{"meta":' + json.dumps({"packages": packages, "src": src}) + ',\n"experiments":[\n')
        out.write(",\n".join(json.dumps(e, separators=(",", ":")) for e in experiments))
        out.write("\n]}\n")
    print("widths as shown, over gbstats by buckets:", ratios(experiments, lambda m: m["ci"]))
    print("widths as shown, over gbstats by users:", ratios(experiments, lambda m: m["by_user"]["ci"]))


if __name__ == "__main__":
    main()
