"""Prints the partitions that quixstreams gives keys: see make. Arguments: brokers, file of keys, partition counts."""

import json
import sys

import quixstreams

brokers, file, *counts = sys.argv[1:]
keys = [key.encode() for key in json.load(open(file))]

for name, settings in [("", {}), (" partitioner=murmur2_random", {"partitioner": "murmur2_random"})]:
    app = quixstreams.Application(
        broker_address=brokers, consumer_group="g", loglevel=None, producer_extra_config={"linger.ms": 0, **settings}
    )
    for n in counts:
        partitions = [None] * len(keys)
        with app.get_producer() as producer:
            for place, key in enumerate(keys):

                def delivered(error, record, place=place):
                    assert error is None, error
                    partitions[place] = record.partition()

                producer.produce(topic=f"t-{n}", value=b"v", key=key, on_delivery=delivered)
        print(f"quixstreams{name}", n, " ".join(map(str, partitions)), sep="\t")
