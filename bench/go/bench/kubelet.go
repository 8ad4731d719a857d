package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet is as much of one as the bench needs: it takes registrations, watches devices, and says that no pod runs.
type kubelet struct {
	pb.UnimplementedRegistrationServer
	podresources.UnimplementedPodResourcesListerServer
	root string

	mu         sync.Mutex
	server     *grpc.Server
	registered chan registration
}

type registration struct {
	resource, socket string
	at               time.Time
}

func newKubelet(root string) (*kubelet, error) {
	for _, dir := range []string{"device-plugins", "pod-resources"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	return &kubelet{root: root, registered: make(chan registration, 64)}, nil
}

func (k *kubelet) Register(_ context.Context, q *pb.RegisterRequest) (*pb.Empty, error) {
	k.registered <- registration{q.ResourceName, filepath.Join(k.root, "device-plugins", q.Endpoint), time.Now()}
	return &pb.Empty{}, nil
}

func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{}, nil
}

// start makes the sockets and tells when kubelet.sock was there.
func (k *kubelet) start() (time.Time, error) {
	k.server = grpc.NewServer()
	pb.RegisterRegistrationServer(k.server, k)
	podresources.RegisterPodResourcesListerServer(k.server, k)
	pods, err := net.Listen("unix", filepath.Join(k.root, "pod-resources", "kubelet.sock"))
	if err != nil {
		return time.Time{}, err
	}
	plugins, err := net.Listen("unix", filepath.Join(k.root, "device-plugins", "kubelet.sock"))
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	go k.server.Serve(pods)
	go k.server.Serve(plugins)
	return at, nil
}

// stop goes away as a kubelet does, and clears the plugins' sockets as the next one will.
func (k *kubelet) stop() {
	k.server.Stop()
	sockets, _ := filepath.Glob(filepath.Join(k.root, "device-plugins", "*.sock"))
	for _, socket := range sockets {
		os.Remove(socket)
	}
}

func (k *kubelet) await(resource string) (registration, error) {
	timeout := time.After(20 * time.Second)
	for {
		select {
		case r := <-k.registered:
			if r.resource == resource {
				return r, nil
			}
		case <-timeout:
			return registration{}, fmt.Errorf("%s was not registered within 20 s", resource)
		}
	}
}

// plugin is the kubelet's side of one device plugin.
type plugin struct {
	conn   *grpc.ClientConn
	client pb.DevicePluginClient
	lists  chan list
}

type list struct {
	ids []string
	at  time.Time
}

func dial(socket string) (*plugin, error) {
	conn, err := grpc.NewClient("passthrough:///"+socket, grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, err
	}
	p := &plugin{conn: conn, client: pb.NewDevicePluginClient(conn), lists: make(chan list, 256)}
	stream, err := p.client.ListAndWatch(context.Background(), &pb.Empty{})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				close(p.lists)
				return
			}
			l := list{at: time.Now()}
			for _, d := range r.Devices {
				if d.Health == pb.Healthy {
					l.ids = append(l.ids, d.ID)
				}
			}
			p.lists <- l
		}
	}()
	return p, nil
}

// awaitDevices waits for a list with exactly n healthy devices.
func (p *plugin) awaitDevices(n int) (list, error) {
	timeout := time.After(20 * time.Second)
	for {
		select {
		case l, ok := <-p.lists:
			if !ok {
				return list{}, fmt.Errorf("ListAndWatch ended")
			}
			if len(l.ids) == n {
				return l, nil
			}
		case <-timeout:
			return list{}, fmt.Errorf("no list of %d devices within 20 s", n)
		}
	}
}

func (p *plugin) allocate(ids []string) error {
	_, err := p.client.Allocate(context.Background(), &pb.AllocateRequest{
		ContainerRequests: []*pb.ContainerAllocateRequest{{DevicesIds: ids}}})
	return err
}
