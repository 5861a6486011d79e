"""Writes records to Kafka by confluent-kafka and fastavro.

Standard input: a line with `brokers`, `registry` and `schemas`, then a line per record with `topic`, `partition`, `framing`, the
number of its schema, and `value`. A schema of Protobuf has the text of its file in `proto`, a descriptor set in base64 in `set`, and
the name of its `message`.
"""

import base64
import io
import json
import sys

import fastavro
from confluent_kafka import Producer
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

settings = json.loads(sys.stdin.readline())
producer = Producer({"bootstrap.servers": settings["brokers"]})
registry = SchemaRegistryClient({"url": settings["registry"]})
schemas = settings["schemas"]
serializers = {}


def serializer(framing, schema):
    by_id = {"confluent": prefix_schema_id_serializer, "header": header_schema_id_serializer}
    match framing:
        case "confluent" | "header" if "proto" in schema:
            return protobuf_serializer(by_id[framing], schema)
        case "confluent" | "header":
            return AvroSerializer(registry, json.dumps(schema), conf={"schema.id.serializer": by_id[framing]})
        case "json":
            return JSONSerializer(json.dumps(schema), registry)
        case "single_object":
            schema = fastavro.parse_schema(schema)
            form = fastavro.schema.to_parsing_canonical_form(schema)
            # As bytes in the order of the record.
            fingerprint = bytes.fromhex(fastavro.schema.fingerprint(form, "CRC-64-AVRO"))
            return lambda value, _: single_object(schema, fingerprint, value)


def protobuf_serializer(by_id, schema):
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema["set"])).file:
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema["message"]))
    conf = {"use.deprecated.format": False, "schema.id.serializer": by_id}
    to_bytes = ProtobufSerializer(message, registry, conf)
    return lambda value, context: to_bytes(json_format.ParseDict(value, message()), context)


def single_object(schema, fingerprint, value):
    out = io.BytesIO(b"\xc3\x01" + fingerprint)
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


refused = []
for line in sys.stdin:
    record = json.loads(line)
    topic, key = record["topic"], (record["framing"], record["topic"], record["schema"])
    if key not in serializers:
        serializers[key] = serializer(record["framing"], schemas[record["schema"]])
    context = SerializationContext(topic, MessageField.VALUE, headers=[])
    value = serializers[key](record["value"], context)
    producer.produce(
        topic,
        value,
        partition=record["partition"],
        headers=context.headers,
        on_delivery=lambda error, _: error and refused.append(error),
    )
    producer.poll(0)
left = producer.flush(30)
if left or refused:
    sys.exit(f"{left} records are not acknowledged, {refused}")
