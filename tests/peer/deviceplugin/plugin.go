package deviceplugin

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Plugin is a small device plugin on grpc-go. It proves a kubelet before bcd is tried on it, and is a foreign plugin beside bcd.
type Plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	Resource string
	// CDIKind is prefixed to a device's id to make its CDI name.
	CDIKind string

	kubelet Kubelet
	mu      sync.Mutex
	devices []*pluginapi.Device
	changed chan struct{} // closed at each change
	asked   [][]string    // the ids of each Allocate
	stop    chan struct{}
	done    chan struct{}
}

// PluginDevice is one device to offer. NUMA -1 sends no topology.
type PluginDevice struct {
	ID        string
	NUMA      int64
	Unhealthy bool
}

// StartPlugin serves and registers until Stop, and again whenever the kubelet starts anew.
func StartPlugin(k Kubelet, resource, cdiKind string, devices []PluginDevice) *Plugin {
	p := &Plugin{Resource: resource, CDIKind: cdiKind, kubelet: k, changed: make(chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{})}
	p.Offer(devices)
	go p.run()
	return p
}

// Offer replaces the list of devices.
func (p *Plugin) Offer(devices []PluginDevice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices = nil
	for _, d := range devices {
		dev := &pluginapi.Device{ID: d.ID, Health: pluginapi.Healthy}
		if d.Unhealthy {
			dev.Health = pluginapi.Unhealthy
		}
		if d.NUMA >= 0 {
			dev.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: d.NUMA}}}
		}
		p.devices = append(p.devices, dev)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// Asked are the ids of each Allocate so far.
func (p *Plugin) Asked() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Stop ends the plugin; the kubelet then counts its devices as unhealthy.
func (p *Plugin) Stop() {
	close(p.stop)
	<-p.done
}

func (p *Plugin) run() {
	defer close(p.done)
	dir := filepath.Join(p.kubelet.Root(), "device-plugins")
	for n := 0; ; n++ {
		socket := filepath.Join(dir, fmt.Sprintf("test-%d-%d.sock", os.Getpid(), time.Now().UnixNano()))
		server, err := p.serve(dir, socket)
		was, _ := os.Stat(filepath.Join(dir, "kubelet.sock"))
		for again := err != nil; !again; {
			select {
			case <-p.stop:
				server.Stop()
				os.Remove(socket)
				return
			case <-time.After(50 * time.Millisecond):
			}
			now, _ := os.Stat(filepath.Join(dir, "kubelet.sock"))
			_, gone := os.Stat(socket)
			again = gone != nil || (now != nil && !os.SameFile(was, now))
		}
		if server != nil {
			server.Stop()
		}
		select {
		case <-p.stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *Plugin) serve(dir, socket string) (*grpc.Server, error) {
	at, done, err := short(socket)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.Listen("unix", at)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, p)
	go server.Serve(l)
	kubelet, done, err := short(filepath.Join(dir, "kubelet.sock"))
	if err != nil {
		return server, err
	}
	defer done()
	conn, err := grpc.NewClient("unix:"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return server, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: filepath.Base(socket), ResourceName: p.Resource})
	return server, err
}

func (p *Plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (p *Plugin) ListAndWatch(_ *pluginapi.Empty, s grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		p.mu.Lock()
		list, changed := p.devices, p.changed
		p.mu.Unlock()
		if err := s.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.Context().Done():
			return nil
		}
	}
}

func (p *Plugin) Allocate(_ context.Context, q *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &pluginapi.AllocateResponse{}
	for _, c := range q.ContainerRequests {
		answer := &pluginapi.ContainerAllocateResponse{
			Envs:        map[string]string{"TEST_DEVICES": fmt.Sprint(len(c.DevicesIds))},
			Annotations: map[string]string{"bcd.dev/test": "from Allocate"},
		}
		for _, id := range c.DevicesIds {
			answer.CdiDevices = append(answer.CdiDevices, &pluginapi.CDIDevice{Name: p.CDIKind + "=" + id})
		}
		r.ContainerResponses = append(r.ContainerResponses, answer)
		p.asked = append(p.asked, slices.Clone(c.DevicesIds))
	}
	return r, nil
}
