"""Prints the partitions that Python's clients give keys: see make. Arguments: brokers, file of keys, partition counts."""

import asyncio
import json
import sys

import aiokafka
import confluent_kafka
import kafka

brokers, file, *counts = sys.argv[1:]
keys = [key.encode() for key in json.load(open(file))]


def show(name, n, partitions):
    print(name, n, " ".join(map(str, partitions)), sep="\t")


def with_confluent(topic, **settings):
    settings = {name.replace("_", "."): value for name, value in settings.items()}
    producer = confluent_kafka.Producer({"bootstrap.servers": brokers, "linger.ms": 0, **settings})
    partitions = [None] * len(keys)
    for place, key in enumerate(keys):

        def delivered(error, record, place=place):
            assert error is None, error
            partitions[place] = record.partition()

        producer.produce(topic, b"v", key, on_delivery=delivered)
    producer.flush()
    return partitions


def with_kafka_python(topic):
    producer = kafka.KafkaProducer(bootstrap_servers=brokers)
    sent = [producer.send(topic, b"v", key=key) for key in keys]
    partitions = [record.get(timeout=10).partition for record in sent]
    producer.close()
    return partitions


async def with_aiokafka(topic):
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=brokers) as producer:
        return [(await producer.send_and_wait(topic, b"v", key=key)).partition for key in keys]


for n in counts:
    topic = f"t-{n}"
    show("confluent-kafka-python", n, with_confluent(topic))
    for partitioner in ["murmur2_random", "fnv1a_random"]:
        show(f"confluent-kafka-python partitioner={partitioner}", n, with_confluent(topic, partitioner=partitioner))
    show("kafka-python", n, with_kafka_python(topic))
    show("aiokafka", n, asyncio.run(with_aiokafka(topic)))
