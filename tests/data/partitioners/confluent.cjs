// Prints the partitions that both APIs of @confluentinc/kafka-javascript give keys. Arguments: brokers, file of keys, partition counts.
const fs = require('node:fs')
const rd = require('@confluentinc/kafka-javascript')
const [brokers, file, ...counts] = process.argv.slice(2)
const keys = JSON.parse(fs.readFileSync(file))
const print = (name, n, partitions) => console.log(`${name}\t${n}\t${partitions.join(' ')}`)
async function promisified(topic) {
  const producer = new rd.KafkaJS.Kafka({ kafkaJS: { brokers: [brokers], logLevel: 0 } }).producer({ 'linger.ms': 0 })
  await producer.connect()
  const sent = await Promise.all(keys.map(key => producer.send({ topic, messages: [{ key, value: 'v' }] })))
  await producer.disconnect()
  return sent.map(([record]) => record.partition)
}
async function callback(topic, options) {
  // Without 0, all records without a key that are sent at once go to one partition, which looks like a rule.
  const producer = new rd.Producer({ 'bootstrap.servers': brokers, dr_cb: true, 'sticky.partitioning.linger.ms': 0, ...options })
  const partitions = Array(keys.length)
  await new Promise(resolve => producer.connect({}, resolve))
  producer.setPollInterval(10)
  await new Promise(resolve => {
    let left = keys.length
    producer.on('delivery-report', (error, report) => {
      partitions[report.opaque] = report.partition
      if (--left === 0) resolve()
    })
    keys.forEach((key, place) => producer.produce(topic, null, Buffer.from('v'), key, null, place))
  })
  await new Promise(resolve => producer.disconnect(resolve))
  return partitions
}
async function main() {
  for (const n of counts) {
    print('@confluentinc/kafka-javascript promisified', n, await promisified(`t-${n}`))
    print('@confluentinc/kafka-javascript callback', n, await callback(`t-${n}`, {}))
    print('@confluentinc/kafka-javascript callback partitioner=murmur2_random', n, await callback(`t-${n}`, { partitioner: 'murmur2_random' }))
  }
}
main().catch(e => { console.error(e); process.exit(1) })
