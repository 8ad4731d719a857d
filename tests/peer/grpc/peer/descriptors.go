package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// published are the official descriptors; a partial one we wrote only as far as we use it.
var published = []struct {
	file     string
	official []protoreflect.FileDescriptor
	partial  bool
}{
	{"deviceplugin.proto", []protoreflect.FileDescriptor{(&deviceplugin.Device{}).ProtoReflect().Descriptor().ParentFile()}, false},
	{"podresources.proto", []protoreflect.FileDescriptor{(&podresources.PodResources{}).ProtoReflect().Descriptor().ParentFile()}, false},
	{"pluginregistration.proto", []protoreflect.FileDescriptor{(&pluginregistration.PluginInfo{}).ProtoReflect().Descriptor().ParentFile()}, false},
	{"grpc_testing.proto", []protoreflect.FileDescriptor{
		(&testpb.SimpleRequest{}).ProtoReflect().Descriptor().ParentFile(),
		(&testpb.Empty{}).ProtoReflect().Descriptor().ParentFile()}, true},
}

// protoc-c 1.4 can't compile proto3's `optional`; on the wire it is the same.
var withoutPresence = []protoreflect.FullName{"v1.ClaimResource.share_id"}

func compile(b *bench, name string) (protoreflect.FileDescriptor, error) {
	out := b.path(name + ".set")
	if _, err := command(time.Minute, "protoc-c", "-I", filepath.Join(*root, "proto"), "--descriptor_set_out="+out,
		filepath.Join(*root, "proto", name)); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil {
		return nil, err
	}
	return protodesc.NewFile(set.File[0], nil)
}

// all messages of a file by full name, nested ones (map entries) too.
func allMessages(messages protoreflect.MessageDescriptors, into map[protoreflect.FullName]protoreflect.MessageDescriptor) {
	for i := range messages.Len() {
		into[messages.Get(i).FullName()] = messages.Get(i)
		allMessages(messages.Get(i).Messages(), into)
	}
}

func kindOf(f protoreflect.FieldDescriptor) string {
	kind := fmt.Sprintf("%v %v", f.Cardinality(), f.Kind())
	if f.Message() != nil {
		kind += " " + string(f.Message().FullName())
	}
	if f.Enum() != nil {
		kind += " " + string(f.Enum().FullName())
	}
	if f.HasPresence() && f.Message() == nil && !slices.Contains(withoutPresence, f.FullName()) {
		kind += " with presence"
	}
	return fmt.Sprintf("%s map=%v packed=%v", kind, f.IsMap(), f.IsPacked())
}

func compareMessage(ours, official protoreflect.MessageDescriptor, partial bool) error {
	for i := range ours.Fields().Len() {
		field := ours.Fields().Get(i)
		other := official.Fields().ByNumber(field.Number())
		if other == nil || other.Name() != field.Name() || kindOf(other) != kindOf(field) {
			return fmt.Errorf("%s = %d is %s here; officially %v", field.FullName(), field.Number(), kindOf(field), other)
		}
	}
	if !partial && ours.Fields().Len() != official.Fields().Len() {
		return fmt.Errorf("%s has %d fields here, officially %d", ours.FullName(), ours.Fields().Len(), official.Fields().Len())
	}
	return nil
}

func compareFile(b *bench, name string, official []protoreflect.FileDescriptor, partial bool) error {
	file, err := compile(b, name)
	if err != nil {
		return err
	}
	here := map[protoreflect.FullName]protoreflect.MessageDescriptor{}
	there := map[protoreflect.FullName]protoreflect.MessageDescriptor{}
	allMessages(file.Messages(), here)
	for _, f := range official {
		allMessages(f.Messages(), there)
	}
	for full, message := range here {
		if there[full] == nil {
			return fmt.Errorf("message %s is not official", full)
		}
		if err := compareMessage(message, there[full], partial); err != nil {
			return err
		}
	}
	if !partial && len(here) != len(there) {
		return fmt.Errorf("%d messages here, officially %d", len(here), len(there))
	}
	return nil
}

// ourPaths reads proto/methods.h.
func ourPaths() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(*root, "proto/methods.h"))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, match := range regexp.MustCompile(`"(/[\w.]+/\w+)"`).FindAllStringSubmatch(string(text), -1) {
		paths = append(paths, match[1])
	}
	slices.Sort(paths)
	return paths, nil
}

// comparePaths: each method of the official services is in methods.h, and nothing else under their packages.
func comparePaths() error {
	paths, err := ourPaths()
	if err != nil {
		return err
	}
	var official []string
	for _, p := range published {
		for i := range p.official[0].Services().Len() {
			service := p.official[0].Services().Get(i)
			for j := range service.Methods().Len() {
				official = append(official, fmt.Sprintf("/%s/%s", service.FullName(), service.Methods().Get(j).Name()))
			}
		}
	}
	slices.Sort(official)
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasPrefix(path, "/bettercompute.") })
	if !slices.Equal(paths, official) {
		return fmt.Errorf("methods.h has %v, officially there are %v", paths, official)
	}
	return nil
}

// ownPaths: what methods.h says of our services is what their .proto files say.
func ownPaths() error {
	paths, err := ourPaths()
	if err != nil {
		return err
	}
	for _, name := range []string{"gateway.proto", "join.proto"} {
		text, err := os.ReadFile(filepath.Join(*root, "proto", name))
		if err != nil {
			return err
		}
		match := regexp.MustCompile(`path (/[\w.]+/\w+)`).FindStringSubmatch(string(text))
		if match == nil || !slices.Contains(paths, match[1]) {
			return fmt.Errorf("the path in %s is not in methods.h: %v", name, match)
		}
	}
	return nil
}

func descriptors(b *bench) {
	for _, p := range published {
		b.check("descriptors/"+p.file, func() error { return compareFile(b, p.file, p.official, p.partial) })
	}
	b.check("descriptors/method_paths", comparePaths)
	b.check("descriptors/own_method_paths", ownPaths)
}
