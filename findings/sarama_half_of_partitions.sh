#!/bin/sh
# Sarama's default partitioner (FNV-1a) leaves every second partition empty if keys contain an id twice, such as "7:7", and the
# number of partitions is even: 12 as well as 2. Murmur2 and CRC32 of the same package fill all of them.
# The lowest bit of FNV-1a is the parity of the lowest bits of all bytes: an id written twice cancels out.
# Needs Go, and its module proxy. Fails if a version fills the partitions otherwise.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

func filled(constructor sarama.PartitionerConstructor, n int32, key string) []int32 {
	partitioner := constructor("t")
	count := make([]int, n)
	for id := 0; id < 10000; id++ {
		text := sarama.StringEncoder(fmt.Sprintf(key, id))
		partition, err := partitioner.Partition(&sarama.ProducerMessage{Key: text}, n)
		if err != nil {
			panic(err)
		}
		count[partition]++
	}
	var filled []int32
	for partition, records := range count {
		if records > 0 {
			filled = append(filled, int32(partition))
		}
	}
	return filled
}

func main() {
	standard := sarama.NewConfig().Producer.Partitioner
	for _, n := range []int32{2, 12, 13} {
		fmt.Println("default, 7:", n, filled(standard, n, "%d"))
		fmt.Println("default, 7:7:", n, filled(standard, n, "%[1]d:%[1]d"))
		fmt.Println("CRC32, 7:7:", n, filled(sarama.NewConsistentCRCHashPartitioner, n, "%[1]d:%[1]d"))
		fmt.Println("murmur2, 7:7:", n, filled(sarama.NewMurmur2Partitioner, n, "%[1]d:%[1]d"))
	}
}
GO
cat > expected <<'TEXT'
default, 7: 2 [0 1]
default, 7:7: 2 [1]
CRC32, 7:7: 2 [0 1]
murmur2, 7:7: 2 [0 1]
default, 7: 12 [0 1 2 3 4 5 6 7 8 9 10 11]
default, 7:7: 12 [1 3 5 7 9 11]
CRC32, 7:7: 12 [0 1 2 3 4 5 6 7 8 9 10 11]
murmur2, 7:7: 12 [0 1 2 3 4 5 6 7 8 9 10 11]
default, 7: 13 [0 1 2 3 4 5 6 7 8 9 10 11 12]
default, 7:7: 13 [0 1 2 3 4 5 6 7 8 9 10 11 12]
CRC32, 7:7: 13 [0 1 2 3 4 5 6 7 8 9 10 11 12]
murmur2, 7:7: 13 [0 1 2 3 4 5 6 7 8 9 10 11 12]
TEXT
go mod init finding 2>/dev/null
go get github.com/IBM/sarama@v1.61.1 2>/dev/null
go list -m github.com/IBM/sarama
go run . | tee actual
diff expected actual
