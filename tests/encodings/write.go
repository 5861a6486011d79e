// Writes records to Kafka by franz-go, its client of Confluent's registry, hamba/avro and Go's Protobuf. Standard input: as for write.py.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type settings struct {
	Brokers  string
	Registry string
	Schemas  []json.RawMessage
}

type record struct {
	Topic     string
	Partition int32
	Schema    int
	Value     json.RawMessage
}

// Encodes records of one schema.
type writer struct {
	id int
	// Indexes of the message; nil for Avro.
	message []int
	encode  func(value json.RawMessage) []byte
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	lines := bufio.NewReader(os.Stdin)
	var settings settings
	check(json.Unmarshal(must(lines.ReadBytes('\n')), &settings))
	registry := must(sr.NewClient(sr.URLs(settings.Registry)))
	producer := must(kgo.NewClient(
		kgo.SeedBrokers(strings.Split(settings.Brokers, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	))
	writers := map[string]writer{}
	var records []*kgo.Record
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var record record
		check(json.Unmarshal(line, &record))
		key := fmt.Sprint(record.Topic, record.Schema)
		if _, isKnown := writers[key]; !isKnown {
			writers[key] = newWriter(ctx, registry, record.Topic+"-value", settings.Schemas[record.Schema])
		}
		writer := writers[key]
		value := must(new(sr.ConfluentHeader).AppendEncode(nil, writer.id, writer.message))
		value = append(value, writer.encode(record.Value)...)
		records = append(records, &kgo.Record{Topic: record.Topic, Partition: record.Partition, Value: value})
	}
	check(producer.ProduceSync(ctx, records...).FirstErr())
}

func newWriter(ctx context.Context, registry *sr.Client, subject string, schema json.RawMessage) writer {
	var protobuf struct {
		Proto, Message string
		Set            []byte
	}
	check(json.Unmarshal(schema, &protobuf))
	if protobuf.Proto != "" {
		registered := must(registry.CreateSchema(ctx, subject, sr.Schema{Schema: protobuf.Proto, Type: sr.TypeProtobuf}))
		var set descriptorpb.FileDescriptorSet
		check(proto.Unmarshal(protobuf.Set, &set))
		files := must(protodesc.NewFiles(&set))
		found := must(files.FindDescriptorByName(protoreflect.FullName(protobuf.Message)))
		message := found.(protoreflect.MessageDescriptor)
		return writer{registered.ID, []int{message.Index()}, func(value json.RawMessage) []byte {
			fields := dynamicpb.NewMessage(message)
			check(protojson.Unmarshal(value, fields))
			return must(proto.Marshal(fields))
		}}
	}
	registered := must(registry.CreateSchema(ctx, subject, sr.Schema{Schema: string(schema)}))
	parsed := must(avro.ParseBytes(schema))
	return writer{registered.ID, nil, func(value json.RawMessage) []byte {
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber()
		var fields any
		check(decoder.Decode(&fields))
		return must(avro.Marshal(parsed, typed(parsed, fields)))
	}}
}

// Converts JSON to the types of Go that the schema needs.
func typed(schema avro.Schema, value any) any {
	switch schema := schema.(type) {
	case *avro.RecordSchema:
		fields := map[string]any{}
		for _, field := range schema.Fields() {
			fields[field.Name()] = typed(field.Type(), value.(map[string]any)[field.Name()])
		}
		return fields
	case *avro.MapSchema:
		values := map[string]any{}
		for name, value := range value.(map[string]any) {
			values[name] = typed(schema.Values(), value)
		}
		return values
	case *avro.ArraySchema:
		elements := []any{}
		for _, element := range value.([]any) {
			elements = append(elements, typed(schema.Items(), element))
		}
		return elements
	case *avro.UnionSchema:
		if value == nil {
			return nil
		}
		// Each union is of null and another type.
		other := schema.Types()[1]
		return map[string]any{nameOf(other): typed(other, value)}
	}
	switch nameOf(schema) {
	case "int":
		return int(must(value.(json.Number).Int64()))
	case "long":
		return must(value.(json.Number).Int64())
	case "long.timestamp-millis":
		return time.UnixMilli(must(value.(json.Number).Int64()))
	}
	return value
}

// Returns the name of a type within a union.
func nameOf(schema avro.Schema) string {
	if primitive, is := schema.(*avro.PrimitiveSchema); is && primitive.Logical() != nil {
		return string(primitive.Type()) + "." + string(primitive.Logical().Type())
	}
	return string(schema.Type())
}
