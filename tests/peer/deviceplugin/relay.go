package deviceplugin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Relay stands between a kubelet and a plugin: it passes every byte on, and records when the bytes of each ListAndWatch message went to the
// kubelet. A plugin whose kubelet folder is Root() registers with the relay, which registers itself with the kubelet in its place.
type Relay struct {
	api.UnimplementedRegistrationServer
	kubelet, root string // kubelet folders: the real one, and the one that the plugin sees
	server        *grpc.Server

	mu        sync.Mutex
	changed   *sync.Cond
	seen      []Sight
	listeners []net.Listener
	conns     map[net.Conn]bool
}

// Sight is one ListAndWatch message on its way to the kubelet: the health of each device.
type Sight struct {
	At     time.Time
	Health map[string]string
}

// StartRelay serves a plugin in front of the kubelet whose folder is given; all of its own files are in dir.
func StartRelay(kubelet, dir string) (*Relay, error) {
	r := &Relay{kubelet: kubelet, root: dir, conns: map[net.Conn]bool{}}
	r.changed = sync.NewCond(&r.mu)
	if err := os.MkdirAll(filepath.Join(dir, "device-plugins"), 0o755); err != nil {
		return nil, err
	}
	err := os.Symlink(filepath.Join(kubelet, "pod-resources"), filepath.Join(dir, "pod-resources"))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	l, err := r.listen(filepath.Join(dir, "device-plugins", "kubelet.sock"))
	if err != nil {
		return nil, err
	}
	r.server = grpc.NewServer()
	api.RegisterRegistrationServer(r.server, r)
	go r.server.Serve(l)
	return r, nil
}

// Root is the kubelet folder for the plugin.
func (r *Relay) Root() string { return r.root }

// Stop ends everything, as if the plugin had gone.
func (r *Relay) Stop() {
	r.server.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.listeners {
		l.Close()
	}
	for c := range r.conns {
		c.Close()
	}
}

// Cut breaks the kubelet's connections: for it the plugin is gone, for the plugin the kubelet.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

// Sights are the messages so far.
func (r *Relay) Sights() []Sight {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Sight(nil), r.seen...)
}

// Await gives the first message after that moment in which the device has that health, or an error after 10 s.
func (r *Relay) Await(since time.Time, device, health string) (Sight, error) {
	deadline := time.Now().Add(10 * time.Second)
	wake := time.AfterFunc(time.Until(deadline), func() { r.changed.Broadcast() })
	defer wake.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for next := 0; ; r.changed.Wait() {
		for ; next < len(r.seen); next++ {
			if s := r.seen[next]; !s.At.Before(since) && s.Health[device] == health {
				return s, nil
			}
		}
		if !time.Now().Before(deadline) {
			return Sight{}, fmt.Errorf("no message said %s of %s within 10 s; %d were seen", health, device, len(r.seen))
		}
	}
}

// Register takes the plugin's registration and makes it its own with the kubelet.
func (r *Relay) Register(ctx context.Context, in *api.RegisterRequest) (*api.Empty, error) {
	folder := filepath.Join(r.kubelet, "device-plugins")
	own := "relay-" + in.Endpoint
	l, err := r.listen(filepath.Join(folder, own))
	if err != nil {
		return nil, err
	}
	go r.accept(l, filepath.Join(r.root, "device-plugins", in.Endpoint))
	socket, done, err := short(filepath.Join(folder, "kubelet.sock"))
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	out := proto.Clone(in).(*api.RegisterRequest)
	out.Endpoint = own
	return api.NewRegistrationClient(conn).Register(ctx, out)
}

func (r *Relay) listen(path string) (net.Listener, error) {
	socket, done, err := short(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // by that name it could not: the folder's descriptor is closed
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, &removing{l, path})
	return l, nil
}

// removing takes the socket's file away with it.
type removing struct {
	net.Listener
	path string
}

func (r *removing) Close() error { return errors.Join(r.Listener.Close(), os.Remove(r.path)) }

func (r *Relay) accept(l net.Listener, plugin string) {
	for {
		up, err := l.Accept()
		if err != nil {
			return
		}
		go r.pass(up, plugin)
	}
}

// pass carries one connection of the kubelet; what the plugin says is read on the way.
func (r *Relay) pass(up net.Conn, plugin string) {
	defer up.Close()
	socket, done, err := short(plugin)
	if err != nil {
		return
	}
	down, err := net.Dial("unix", socket)
	done()
	if err != nil {
		return
	}
	defer down.Close()
	r.mu.Lock()
	r.conns[up] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.conns, up)
		r.mu.Unlock()
	}()
	go func() { io.Copy(down, up); down.Close() }()
	tap, said := io.Pipe()
	go r.read(tap)
	io.Copy(io.MultiWriter(up, said), down)
	said.Close()
}

// read follows the plugin's half of an HTTP/2 connection.
func (r *Relay) read(from *io.PipeReader) {
	defer io.Copy(io.Discard, from) // whatever comes: the bytes go on
	framer := http2.NewFramer(nil, from)
	streams := map[uint32][]byte{}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if data, ok := frame.(*http2.DataFrame); ok {
			streams[data.StreamID] = r.messages(append(streams[data.StreamID], data.Data()...))
		}
	}
}

// messages records the whole gRPC messages that begin the bytes, and gives the rest.
func (r *Relay) messages(b []byte) []byte {
	const prefix = 5
	for len(b) >= prefix {
		size := int(binary.BigEndian.Uint32(b[1:prefix]))
		if len(b) < prefix+size {
			break
		}
		r.record(b[prefix : prefix+size])
		b = b[prefix+size:]
	}
	return b
}

func (r *Relay) record(message []byte) {
	var list api.ListAndWatchResponse
	if proto.Unmarshal(message, &list) != nil {
		return
	}
	sight := Sight{time.Now(), map[string]string{}}
	for _, d := range list.Devices {
		if d.Health == api.Healthy || d.Health == api.Unhealthy { // other answers have no such field
			sight.Health[d.ID] = d.Health
		}
	}
	if len(sight.Health) == 0 && len(list.Devices) > 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, sight)
	r.changed.Broadcast()
}
