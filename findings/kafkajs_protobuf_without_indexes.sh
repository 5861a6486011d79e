#!/bin/sh
# @kafkajs/confluent-schema-registry writes a Protobuf message right behind the id of its schema. All other clients of Confluent's
# registry write the path of the message type in between: a byte 0 for the first message. So their consumers fail on its records.
# It also refuses to register a schema if the registry checks compatibility in another way than it expects.
# Needs Node.js and npm. Fails if a version does otherwise.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @kafkajs/confluent-schema-registry@4.1.0
cat > write.cjs <<'JS'
const http = require('http')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')
let compatibilityLevel = 'BACKWARD'
const server = http.createServer((request, answer) => {
  answer.setHeader('content-type', 'application/json')
  answer.end(JSON.stringify(request.url.startsWith('/config') ? { compatibilityLevel } : { id: 7 }))
})
server.listen(0, async () => {
  const registry = new SchemaRegistry({ host: `http://127.0.0.1:${server.address().port}` })
  const schema = { type: SchemaType.PROTOBUF, schema: 'syntax = "proto3"; message Click { string id = 1; }' }
  const { id } = await registry.register(schema, { subject: 'clicks-value' })
  console.log('record:', (await registry.encode(id, { id: 'r7' })).toString('hex'))
  compatibilityLevel = 'NONE'
  await registry.register(schema, { subject: 'clicks-value' }).catch((error) => console.log('registry without checks:', error.message))
  server.close()
})
JS
cat > expected <<'TEXT'
record: 00000000070a027237
registry without checks: Compatibility does not match the configuration (BACKWARD != NONE)
TEXT
echo "@kafkajs/confluent-schema-registry $(node -p "require('@kafkajs/confluent-schema-registry/package.json').version")"
node write.cjs | tee actual
diff expected actual
