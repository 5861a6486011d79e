"""Writes served lists and clicks as JSON lines in order of time, the same bytes in each run.

Lists have 10 different items out of 10,000, are spread over an hour, and are in one of three arms. Clicks are on random lists,
more often at early ranks, and a minute later on average. A list may have several clicks, even on the same item.
"""

import heapq
import random
import sys

N_ITEMS = 10_000
LENGTH = 10
ARMS = ("control", "blend", "neural")
START_MS = 1_763_596_800_000
SPAN_MS = 3_600_000
MEAN_DELAY_MS = 60_000
# Below the attribution window, so that every click counts.
MAX_DELAY_MS = 1_200_000


def main(n_lists, n_clicks, out):
    rng = random.Random(1)
    n_clicks_of = [0] * n_lists
    for _ in range(n_clicks):
        n_clicks_of[int(n_lists * rng.random())] += 1

    pending = []
    for n in range(n_lists):
        ts = START_MS + n * SPAN_MS // n_lists
        while pending and pending[0][0] <= ts:
            out.write(click(*heapq.heappop(pending)))
        request = f"r{rng.getrandbits(128):032x}"
        # 9 strides stay below the number of items: no item comes twice.
        first, stride = int(N_ITEMS * rng.random()), 1 + int((N_ITEMS // LENGTH - 1) * rng.random())
        items = [f"i{(first + rank * stride) % N_ITEMS}" for rank in range(LENGTH)]
        user, arm = int(10_000_000 * rng.random()), ARMS[int(len(ARMS) * rng.random())]
        out.write(served(request, user, ts, arm, items))
        for _ in range(n_clicks_of[n]):
            delay = min(int(rng.expovariate(1 / MEAN_DELAY_MS)), MAX_DELAY_MS)
            heapq.heappush(pending, (ts + delay, request, items[int(LENGTH * rng.random() ** 2)]))
    while pending:
        out.write(click(*heapq.heappop(pending)))


def served(request, user, ts, arm, items):
    head = f'"request_id":"{request}","user_id":"u{user}","ts":{ts},"experiments":{{"ranker":"{arm}"}}'
    items = ",".join(f'"{item}"' for item in items)
    return f'{{"type":"served",{head},"items":[{items}]}}\n'


def click(ts, request, item):
    return f'{{"type":"click","request_id":"{request}","ts":{ts},"item":"{item}"}}\n'


if __name__ == "__main__":
    with open(sys.argv[3], "w", encoding="ascii", buffering=1 << 20) as out:
        main(int(sys.argv[1]), int(sys.argv[2]), out)
