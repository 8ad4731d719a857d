// goplugin is the yardstick: a device plugin on grpc-go with the answers that bcd gives for the same devices.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	pb.UnimplementedDevicePluginServer
	ids []string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *pb.Empty) (*pb.DevicePluginOptions, error) {
	return &pb.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) ListAndWatch(_ *pb.Empty, s grpc.ServerStreamingServer[pb.ListAndWatchResponse]) error {
	r := &pb.ListAndWatchResponse{}
	for _, id := range p.ids {
		r.Devices = append(r.Devices, &pb.Device{ID: id, Health: pb.Healthy,
			Topology: &pb.TopologyInfo{Nodes: []*pb.NUMANode{{ID: 0}}}})
	}
	if err := s.Send(r); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

func (p *plugin) GetPreferredAllocation(_ context.Context, q *pb.PreferredAllocationRequest) (*pb.PreferredAllocationResponse, error) {
	r := &pb.PreferredAllocationResponse{}
	for _, c := range q.ContainerRequests {
		r.ContainerResponses = append(r.ContainerResponses,
			&pb.ContainerPreferredAllocationResponse{DeviceIDs: c.AvailableDeviceIDs[:c.AllocationSize]})
	}
	return r, nil
}

func (p *plugin) Allocate(_ context.Context, q *pb.AllocateRequest) (*pb.AllocateResponse, error) {
	r := &pb.AllocateResponse{}
	for _, c := range q.ContainerRequests {
		a := &pb.ContainerAllocateResponse{}
		var uuids, allocations []string
		for _, id := range c.DevicesIds {
			atom, allocation, ok := strings.Cut(id, "@")
			if !ok {
				return nil, fmt.Errorf("device %q is not bound", id)
			}
			a.CdiDevices = append(a.CdiDevices, &pb.CDIDevice{Name: "bcd.dev/gpu=" + id})
			uuids = append(uuids, "GPU-"+strings.TrimPrefix(atom, "gpu_"))
			allocations = append(allocations, allocation)
		}
		a.Envs = map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(uuids, ","), "BCD_ALLOCATION_IDS": allocations[0]}
		a.Annotations = map[string]string{"bcd.dev/allocation-ids": allocations[0]}
		r.ContainerResponses = append(r.ContainerResponses, a)
	}
	return r, nil
}

func register(dir, endpoint, resource string) error {
	conn, err := grpc.NewClient("unix:"+filepath.Join(dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = pb.NewRegistrationClient(conn).Register(ctx, &pb.RegisterRequest{
		Version: pb.Version, Endpoint: endpoint, ResourceName: resource})
	return err
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: goplugin DEVICE-PLUGINS-FOLDER RESOURCE ID...")
		os.Exit(2)
	}
	dir, resource := os.Args[1], os.Args[2]
	endpoint := fmt.Sprintf("goplugin-%d.sock", os.Getpid())
	listener, err := net.Listen("unix", filepath.Join(dir, endpoint))
	if err == nil {
		server := grpc.NewServer()
		pb.RegisterDevicePluginServer(server, &plugin{ids: os.Args[3:]})
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
		go func() { <-stop; server.Stop() }()
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		if err = register(dir, endpoint, resource); err == nil {
			err = <-served
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goplugin:", err)
		os.Exit(1)
	}
}
