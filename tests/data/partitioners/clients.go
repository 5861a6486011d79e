// Prints the partitions that Go clients give keys: see make. Arguments: file of keys, partition counts.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var keys []string
	must(json.Unmarshal(text, &keys))
	for _, arg := range os.Args[2:] {
		n, err := strconv.Atoi(arg)
		must(err)
		for name, constructor := range map[string]sarama.PartitionerConstructor{
			"sarama NewHashPartitioner":              sarama.NewHashPartitioner,
			"sarama NewReferenceHashPartitioner":     sarama.NewReferenceHashPartitioner,
			"sarama NewConsistentCRCHashPartitioner": sarama.NewConsistentCRCHashPartitioner,
			"sarama NewMurmur2Partitioner":           sarama.NewMurmur2Partitioner,
			"sarama NewConfig":                       sarama.NewConfig().Producer.Partitioner,
		} {
			partitioner := constructor("t")
			show(name, n, keys, func(key []byte) int {
				partition, err := partitioner.Partition(&sarama.ProducerMessage{Key: sarama.ByteEncoder(key)}, int32(n))
				must(err)
				return int(partition)
			})
		}
		partitions := make([]int, n)
		for i := range partitions {
			partitions[i] = i
		}
		for name, balancer := range map[string]kafka.Balancer{
			"kafka-go Hash":            &kafka.Hash{},
			"kafka-go ReferenceHash":   &kafka.ReferenceHash{},
			"kafka-go CRC32Balancer":   kafka.CRC32Balancer{},
			"kafka-go Murmur2Balancer": kafka.Murmur2Balancer{},
		} {
			show(name, n, keys, func(key []byte) int {
				return balancer.Balance(kafka.Message{Key: key}, partitions...)
			})
		}
		franz := kgo.StickyKeyPartitioner(nil).ForTopic("t")
		show("franz-go StickyKeyPartitioner", n, keys, func(key []byte) int {
			return franz.Partition(&kgo.Record{Key: key}, n)
		})
	}
}

func show(name string, n int, keys []string, partition func([]byte) int) {
	var partitions []string
	for _, key := range keys {
		partitions = append(partitions, strconv.Itoa(partition([]byte(key))))
	}
	fmt.Printf("%s\t%d\t%s\n", name, n, strings.Join(partitions, " "))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
