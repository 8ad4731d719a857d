package main

import (
	"context"
	"fmt"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Wire reads the project's own .proto files, so that no generated code can agree with itself.
type Wire struct {
	files map[string]protoreflect.FileDescriptor
}

func NewWire(root string) (*Wire, error) {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{root + "/proto"}}}
	compiled, err := compiler.Compile(context.Background(), "gateway.proto", "join.proto")
	if err != nil {
		return nil, err
	}
	w := &Wire{files: map[string]protoreflect.FileDescriptor{}}
	for _, file := range compiled {
		w.files[file.Path()] = file
	}
	return w, nil
}

func (w *Wire) message(name string) *dynamicpb.Message {
	for _, file := range w.files {
		if d := file.Messages().ByName(protoreflect.Name(name)); d != nil {
			return dynamicpb.NewMessage(d)
		}
	}
	panic("no message " + name)
}

// Pack makes a message from its JSON form.
func (w *Wire) Pack(name, json string) *dynamicpb.Message {
	m := w.message(name)
	if err := protojson.Unmarshal([]byte(json), m); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return m
}

// Unpack gives a message's fields by their JSON names.
func Unpack(m proto.Message) string {
	return protojson.MarshalOptions{EmitUnpopulated: true}.Format(m)
}
