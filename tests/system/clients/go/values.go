package main

import (
	"encoding/json"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
)

// sighting is what the tests write and read; only the second version of its schema has a note.
type sighting struct {
	Plate  string           `avro:"plate" json:"plate"`
	Seen   int64            `avro:"seen" json:"seen"`
	Speed  float64          `avro:"speed" json:"speed"`
	Lane   *int             `avro:"lane" json:"lane"`
	Kind   string           `avro:"kind" json:"kind"`
	Tags   []string         `avro:"tags" json:"tags"`
	Counts map[string]int64 `avro:"counts" json:"counts"`
	Photo  []byte           `avro:"photo" json:"photo"`
	Where  place            `avro:"where" json:"where"`
	Note   string           `avro:"note" json:"note,omitempty"`
}

type place struct {
	Road    string `avro:"road" json:"road"`
	Segment int    `avro:"segment" json:"segment"`
}

// Small is what the client makes up a schema for.
type Small struct {
	Name  string  `avro:"name" json:"name"`
	Count int     `avro:"count" json:"count"`
	Share float64 `avro:"share" json:"share"`
}

// record is a payload and what stands in the record's headers.
type record struct {
	Bytes   []byte            `json:"bytes"`
	Headers map[string][]byte `json:"headers"`
}

// write writes a sighting with the latest schema of its topic.
func write(client schemaregistry.Client, asked request) (any, error) {
	var value sighting
	if err := json.Unmarshal(asked.Value, &value); err != nil {
		return nil, err
	}
	config := avrov2.NewSerializerConfig()
	config.AutoRegisterSchemas = false
	config.UseLatestVersion = true
	return written(client, config, asked, &value)
}

// writeAnything lets the client make up a schema for what it writes, and register it.
func writeAnything(client schemaregistry.Client, asked request) (any, error) {
	var value Small
	if err := json.Unmarshal(asked.Value, &value); err != nil {
		return nil, err
	}
	return written(client, avrov2.NewSerializerConfig(), asked, &value)
}

func written(
	client schemaregistry.Client, config *avrov2.SerializerConfig, asked request, value any,
) (any, error) {
	serializer, err := avrov2.NewSerializer(client, serde.ValueSerde, config)
	if err != nil {
		return nil, err
	}
	if asked.Header {
		serializer.SchemaIDSerializer = serde.HeaderSchemaIDSerializer
	}
	headers, payload, err := serializer.SerializeWithHeaders(asked.Topic, value)
	named := map[string][]byte{}
	for _, header := range headers {
		named[header.Key] = header.Value
	}
	return record{payload, named}, err
}

// read reads a sighting, with its writer's schema or with the latest one.
func read(client schemaregistry.Client, asked request) (any, error) {
	config := avrov2.NewDeserializerConfig()
	config.UseLatestVersion = asked.Latest
	deserializer, err := avrov2.NewDeserializer(client, serde.ValueSerde, config)
	if err != nil {
		return nil, err
	}
	var headers []kafka.Header
	for name, told := range asked.Headers {
		headers = append(headers, kafka.Header{Key: name, Value: told})
	}
	// What is empty is none to Go; the tests tell them apart.
	value := sighting{Tags: []string{}, Counts: map[string]int64{}, Photo: []byte{}}
	err = deserializer.DeserializeWithHeadersInto(asked.Topic, headers, asked.Bytes, &value)
	return value, err
}
