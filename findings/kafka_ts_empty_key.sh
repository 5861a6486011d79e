#!/bin/sh
# The default partitioner of kafka-ts treats one and the same empty key in two ways: given as a string it is no key, and records go
# to all partitions in turn; given as a Buffer it is a key, and all records go to one partition, Java's. Both are the same bytes.
# Needs Node.js and npm. Fails if a version does otherwise.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund kafka-ts@1.5.0
cat > keys.cjs <<'JS'
const { defaultPartitioner } = require('kafka-ts')
const metadata = { getTopicPartitions: () => ({ t: Array.from({ length: 12 }, (_, partition) => partition) }) }
const partition = defaultPartitioner({ metadata })
for (const [name, key] of [['string', 'r-1'], ['Buffer', Buffer.from('r-1')], ['string', ''], ['Buffer', Buffer.from('')]]) {
  const partitions = Array.from({ length: 6 }, () => partition({ topic: 't', key }))
  console.log(`key '${key}' as ${name}: ${partitions.join(' ')}`)
}
JS
cat > expected <<'TEXT'
key 'r-1' as string: 11 11 11 11 11 11
key 'r-1' as Buffer: 11 11 11 11 11 11
key '' as string: 0 1 2 3 4 5
key '' as Buffer: 9 9 9 9 9 9
TEXT
echo "kafka-ts $(node -p "require('kafka-ts/package.json').version")"
node keys.cjs | tee actual
diff expected actual
