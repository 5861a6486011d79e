// Prints the partitions that clients of Node.js give keys: see make. Arguments: brokers, file of keys, partition counts.
const fs = require('node:fs')
const { Kafka, Partitioners } = require('kafkajs')
const { createKafkaClient } = require('kafka-ts')
const { Producer, compatibilityPartitioner, stringSerializers } = require('@platformatic/kafka')

const [brokers, file, ...counts] = process.argv.slice(2)
const keys = JSON.parse(fs.readFileSync(file))
const print = (name, n, partitions) => console.log(`${name}\t${n}\t${partitions.join(' ')}`)

async function main() {
  for (const n of counts) {
    const topic = `t-${n}`
    const partitionMetadata = Array.from({ length: n }, (_, partitionId) => ({ partitionId, leader: 1 }))
    for (const [name, createPartitioner] of Object.entries(Partitioners)) {
      if (name === 'JavaCompatiblePartitioner') continue
      const partition = createPartitioner()
      const given = key => partition({ topic, partitionMetadata, message: { key } })
      print(`kafkajs ${name}`, n, keys.map(given))
    }
    const kafka = new Kafka({ brokers: [brokers], logLevel: 0 })
    print('kafkajs', n, await withKafkajs(kafka.producer(), topic))
    print('@platformatic/kafka', n, await withPlatformatic(topic, {}))
    print('@platformatic/kafka compatibilityPartitioner', n, await withPlatformatic(topic, { partitioner: compatibilityPartitioner }))
    print('kafka-ts', n, await withKafkaTs(topic))
  }
}

// Sends key by key, and reads from the answer where it lies.
async function withKafkajs(producer, topic) {
  await producer.connect()
  const partitions = []
  for (const key of keys) {
    const [sent] = await producer.send({ topic, messages: [{ key, value: 'v' }] })
    partitions.push(sent.partition)
  }
  await producer.disconnect()
  return partitions
}

async function withPlatformatic(topic, options) {
  const producer = new Producer({ clientId: 'c', bootstrapBrokers: [brokers], serializers: stringSerializers, ...options })
  const partitions = []
  for (const key of keys) {
    const sent = await producer.send({ messages: [{ topic, key, value: 'v' }] })
    partitions.push(sent.offsets[0].partition)
  }
  await producer.close()
  return partitions
}

async function withKafkaTs(topic) {
  const [host, port] = brokers.split(':')
  const { defaultPartitioner } = require('kafka-ts/dist/distributors/partitioner.js')
  const client = createKafkaClient({ clientId: 'c', bootstrapServers: [{ host, port: Number(port) }] })
  const cluster = client.createCluster()
  await cluster.connect()
  const { Metadata } = require('kafka-ts/dist/metadata.js')
  const metadata = new Metadata({ cluster })
  await metadata.fetchMetadata({ topics: [topic], allowTopicAutoCreation: false })
  const partition = defaultPartitioner({ metadata })
  await cluster.disconnect()
  return keys.map(key => partition({ topic, key: Buffer.from(key) }))
}

main().catch(error => { console.error(error); process.exit(1) })
