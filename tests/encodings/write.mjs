// Writes records to Kafka by kafkajs and @kafkajs/confluent-schema-registry. Standard input: as for write.py.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The modules lie in the cache, not next to this file.
const require = createRequire(`${process.env.ABGAUGE_ENCODINGS_MODULES}/`);
const { Kafka, logLevel } = require("kafkajs");
const { COMPATIBILITY, SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const settings = JSON.parse((await lines.next()).value);
const registry = new SchemaRegistry({ host: settings.registry });
const kafka = new Kafka({ brokers: settings.brokers.split(","), logLevel: logLevel.ERROR });
const producer = kafka.producer({ allowAutoTopicCreation: false });

const ids = new Map();
async function idOf({ topic, schema }) {
  const key = `${topic}/${schema}`;
  if (!ids.has(key)) {
    const { proto } = settings.schemas[schema];
    const registered = proto
      ? { type: SchemaType.PROTOBUF, schema: proto }
      : { type: SchemaType.AVRO, schema: JSON.stringify(settings.schemas[schema]) };
    // Its default is BACKWARD, and it refuses a registry that is set to another value: Apicurio's is NONE.
    const options = { subject: `${topic}-value`, compatibility: COMPATIBILITY.NONE };
    ids.set(key, (await registry.register(registered, options)).id);
  }
  return ids.get(key);
}

// The names that protobufjs gives to the fields of a .proto file.
function inCamelCase(fields) {
  const named = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [named(name), value]));
}

const topics = new Map();
for await (const line of lines) {
  const record = JSON.parse(line);
  const fields = settings.schemas[record.schema].proto ? inCamelCase(record.value) : record.value;
  const value = await registry.encode(await idOf(record), fields);
  if (!topics.has(record.topic)) topics.set(record.topic, []);
  topics.get(record.topic).push({ value, partition: record.partition });
}
await producer.connect();
for (const [topic, messages] of topics) await producer.send({ topic, messages, acks: -1 });
await producer.disconnect();
