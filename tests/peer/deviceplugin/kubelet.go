// Package deviceplugin holds one table of device plugin cases and what they need: a kubelet, real or stand-in, and
// better-compute with bcd behind the plugins. The same table runs on both kubelets, which is what keeps the stand-in honest.
package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Kubelet is one node's kubelet, as the table drives it.
type Kubelet interface {
	// Name says which kubelet it is, such as "kubelet v1.37.2".
	Name() string
	// Root is the kubelet's folder, as this process sees it: device-plugins/, pod-resources/.
	Root() string

	// Counts are what the node publishes for a resource; zeros for one it does not have.
	Counts(resource string) (Counts, error)

	StartPod(PodSpec) error
	// Pod is nil once the pod is gone.
	Pod(name string) (*Pod, error)
	// Inside looks around in the pod's container; the pod must be running.
	Inside(name string) (*Inside, error)
	// DeletePod asks for deletion with a grace period; it does not wait.
	DeletePod(name string, grace time.Duration) error
	// Restarts counts how often the pod's container was started again.
	Restarts(name string) (int, error)

	// Kill ends the kubelet at once, Start starts it and waits for its socket.
	Kill() error
	Start() error
	// Revive starts it, and what is around it, unless it runs.
	Revive() error

	// Registrations lists the Register calls that the kubelet got for the resource, oldest first.
	Registrations(resource string) ([]time.Time, error)
}

// Counts are a node's numbers for one resource.
type Counts struct{ Capacity, Allocatable int }

// PodSpec is a pod of one container that sleeps.
type PodSpec struct {
	Name     string
	Resource string // "" for none
	Count    int
	// Bound pods skip the scheduler: the kubelet alone decides on them.
	Bound bool
	// Stubborn pods ignore SIGTERM.
	Stubborn bool
}

// Pod is what can be known of a pod from outside.
type Pod struct {
	Phase    string // Pending, Running, Succeeded, Failed
	Ready    bool
	Reason   string // of a failed or unschedulable pod
	Message  string
	Deleting bool
}

// Inside is what the pod's container was given.
type Inside struct {
	Env         map[string]string
	Annotations map[string]string // of the container, as the runtime got them
	Devices     map[string]Device // by path, those below /dev/nvidia*
}

// Device is a character device's number.
type Device struct{ Major, Minor uint32 }

// Held is one device of one resource in a pod's hands, by pod-resources.
type Held struct {
	Pod, Container, Resource, ID string
	NUMA                         []int64
}

func podResources(k Kubelet) (podresources.PodResourcesListerClient, func(), error) {
	socket, done, err := short(filepath.Join(k.Root(), "pod-resources", "kubelet.sock"))
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		done()
		return nil, nil, err
	}
	return podresources.NewPodResourcesListerClient(conn), func() { conn.Close(); done() }, nil
}

// short gives a path of a socket that fits into a socket address, however deep its folder is.
func short(path string) (string, func(), error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { dir.Close() }, nil
}

// ListHeld asks pod-resources who holds what.
func ListHeld(k Kubelet) ([]Held, error) {
	client, done, err := podResources(k)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	var held []Held
	for _, p := range list.PodResources {
		for _, c := range p.Containers {
			held = append(held, flatten(p.Name, c.Name, c.Devices)...)
		}
	}
	return held, nil
}

// ListOffered asks pod-resources what all plugins offer.
func ListOffered(k Kubelet) ([]Held, error) {
	client, done, err := podResources(k)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return flatten("", "", list.Devices), nil
}

func flatten(pod, container string, devices []*podresources.ContainerDevices) []Held {
	var held []Held
	for _, d := range devices {
		var numa []int64
		for _, n := range d.GetTopology().GetNodes() {
			numa = append(numa, n.ID)
		}
		for _, id := range d.DeviceIds {
			held = append(held, Held{pod, container, d.ResourceName, id, numa})
		}
	}
	return held
}

// Sockets lists the plugin sockets in the kubelet's folder whose names start with prefix.
func Sockets(k Kubelet, prefix string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(k.Root(), "device-plugins"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 && strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// MadeSocket expects the kubelet's registration socket to be of after that moment.
func MadeSocket(k Kubelet, started time.Time) error {
	const tick = 20 * time.Millisecond // of the kernel's: a file's time may be so far behind the clock
	since, err := KubeletSocketSince(k)
	if err == nil && since.Before(started.Add(-tick)) {
		err = errors.New("the kubelet has not made its socket yet")
	}
	return err
}

// KubeletSocketSince is when the kubelet's registration socket was made.
func KubeletSocketSince(k Kubelet) (time.Time, error) {
	info, err := os.Stat(filepath.Join(k.Root(), "device-plugins", "kubelet.sock"))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
