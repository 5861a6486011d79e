#!/bin/sh
# Two Go packages each have a partitioner that is said to equal librdkafka's consistent_random, and differ for an empty key:
# Sarama's NewConsistentCRCHashPartitioner hashes it, so all such records go to partition 0; kafka-go's CRC32Balancer takes it for
# no key, as librdkafka does, and spreads them.
# Needs Go, and its module proxy. Fails if a version does otherwise.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
)

func main() {
	ofSarama := sarama.NewConsistentCRCHashPartitioner("t")
	ofKafkaGo := kafka.CRC32Balancer{}
	for _, key := range []string{"r-1", ""} {
		var seen [2][4]bool
		for record := 0; record < 1000; record++ {
			partition, err := ofSarama.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, 4)
			if err != nil {
				panic(err)
			}
			seen[0][partition] = true
			seen[1][ofKafkaGo.Balance(kafka.Message{Key: []byte(key)}, 0, 1, 2, 3)] = true
		}
		for place, name := range []string{"sarama", "kafka-go"} {
			fmt.Printf("key %q, %s: partitions 0 to 3 seen: %v\n", key, name, seen[place])
		}
	}
}
GO
cat > expected <<'TEXT'
key "r-1", sarama: partitions 0 to 3 seen: [false true false false]
key "r-1", kafka-go: partitions 0 to 3 seen: [false true false false]
key "", sarama: partitions 0 to 3 seen: [true false false false]
key "", kafka-go: partitions 0 to 3 seen: [true true true true]
TEXT
go mod init finding 2>/dev/null
go get github.com/IBM/sarama@v1.61.1 github.com/segmentio/kafka-go@v0.4.51 2>/dev/null
go list -m github.com/IBM/sarama github.com/segmentio/kafka-go
go run . | tee actual
diff expected actual
