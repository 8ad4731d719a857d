package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// --- what is done to the parts

func KillBCD() Step {
	return Step{"kill -9 bcd", func(w *World) error { return w.P.KillNode() }}
}

func StartBCD() Step {
	return Step{"start bcd", func(w *World) error {
		if err := w.before(); err != nil {
			return err
		}
		return w.P.StartNode()
	}}
}

func KillServe() Step { return Step{"kill -9 serve", func(w *World) error { return w.P.KillServe() }} }

// StartServe starts the control plane and waits until bcd is connected again.
func StartServe() Step {
	return Step{"start serve", func(w *World) error {
		if err := w.P.StartServe(); err != nil {
			return err
		}
		return NodeIsBack().Do(w)
	}}
}

// NodeIsBack waits for bcd to be connected to the control plane.
func NodeIsBack() Step {
	return Step{"the node is connected", func(w *World) error {
		return Eventually(Soon, func() error {
			n, err := w.P.Node()
			if err == nil && !n.Connected {
				err = fmt.Errorf("the node is %s and not connected", n.State)
			}
			return err
		})
	}}
}

func KillKubelet() Step {
	return Step{"kill -9 the kubelet", func(w *World) error {
		if err := w.before(); err != nil {
			return err
		}
		return w.K.Kill()
	}}
}

func StartKubelet() Step {
	return Step{"start the kubelet", func(w *World) (err error) {
		if err = w.K.Start(); err == nil {
			w.event, err = KubeletSocketSince(w.K)
		}
		return err
	}}
}

// DeleteSocket removes bcd's plugin socket of a class.
func DeleteSocket(class string) Step {
	return Step{"delete bcd's socket of " + class, func(w *World) error {
		if err := w.before(); err != nil {
			return err
		}
		names, err := Sockets(w.K, "bcd-"+class+"-")
		if err != nil {
			return err
		}
		if err := Expect("bcd's sockets of "+class, len(names), 1); err != nil {
			return err
		}
		return os.Remove(filepath.Join(w.K.Root(), "device-plugins", names[0]))
	}}
}

// before notes what `registered` compares with.
func (w *World) before() (err error) {
	w.event = time.Now()
	if w.sockets, err = Sockets(w.K, "bcd-"); err != nil {
		return err
	}
	for _, resource := range []string{"bcd.dev/gpu", "bcd.dev/gpu.mig", "bcd.dev/gpu.slot"} {
		times, err := w.K.Registrations(resource)
		if err != nil {
			return err
		}
		w.registered[resource] = len(times)
	}
	return nil
}

// RegistersAgain expects exactly one new Register within a second of the last event, with a socket name never used before.
func RegistersAgain(resource string) Step {
	return Step{resource + " is registered again within 1 s, under a new socket name", func(w *World) error {
		if err := registersAnew(w.K, resource, w.registered[resource]); err != nil {
			return err
		}
		times, err := w.K.Registrations(resource)
		if err != nil {
			return err
		}
		took := times[w.registered[resource]].Sub(w.event)
		fmt.Printf("     %s registered %d ms after the event\n", resource, took.Milliseconds())
		if took > time.Second {
			return fmt.Errorf("registered after %v", took)
		}
		return onlyNewSockets(w, resource)
	}}
}

func onlyNewSockets(w *World, resource string) error {
	now, err := Sockets(w.K, "bcd-"+strings.TrimPrefix(resource, "bcd.dev/")+"-")
	if err != nil {
		return err
	}
	if len(now) != 1 {
		return fmt.Errorf("bcd's sockets are %v, expected one", now)
	}
	if slices.Contains(w.sockets, now[0]) {
		return fmt.Errorf("the socket %s was used before", now[0])
	}
	return nil
}

// NobodyRegisters expects that nothing registers for a while.
func NobodyRegisters(resource string, during time.Duration) Step {
	return Step{"nobody registers " + resource, func(w *World) error {
		if err := w.before(); err != nil {
			return err
		}
		return Always(during, func() error {
			times, err := w.K.Registrations(resource)
			return errors.Join(err, Expect("Register calls", len(times), w.registered[resource]))
		})
	}}
}

// SecondBCD starts another bcd on the same machine; it must wait, not end.
func SecondBCD() Step {
	return Step{"start a second bcd", func(w *World) (err error) {
		w.second, err = w.P.AnotherNode("second.log")
		return err
	}}
}

func SecondWaits() Step {
	return Step{"the second bcd waits", func(w *World) error {
		if w.second.Ended() {
			return fmt.Errorf("it ended: %s", tail(w.second.Log))
		}
		return nil
	}}
}

// SecondTakesOver makes the second the only one, after the first was killed, and waits until it has registered: what the node publishes may
// still be what the first one offered.
func SecondTakesOver(resource string) Step {
	return Step{"the second bcd takes over", func(w *World) error {
		w.P.node, w.second = w.second, nil
		return registersAnew(w.K, resource, w.registered[resource])
	}}
}

// --- strangers that call bcd's plugin as a kubelet would

func (w *World) dial(class string) (pluginapi.DevicePluginClient, func(), error) {
	names, err := Sockets(w.K, "bcd-"+class+"-")
	if err != nil {
		return nil, nil, err
	}
	if err := Expect("bcd's sockets of "+class, len(names), 1); err != nil {
		return nil, nil, err
	}
	socket, done, err := short(filepath.Join(w.K.Root(), "device-plugins", names[0]))
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		done()
		return nil, nil, err
	}
	return pluginapi.NewDevicePluginClient(conn), func() { conn.Close(); done() }, nil
}

// Strangers watch the list and leave, n times.
func Strangers(class string, n int) Step {
	return Step{fmt.Sprintf("%d strangers watch the list and leave", n), func(w *World) error {
		for range n {
			client, done, err := w.dial(class)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), Soon)
			stream, err := client.ListAndWatch(ctx, &pluginapi.Empty{})
			if err == nil {
				_, err = stream.Recv()
			}
			cancel()
			done()
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// AllocateRefused expects Allocate of the reservation's devices to be refused, with a text that has all the words.
func AllocateRefused(class, name string, words ...string) Step {
	return Step{"Allocate of " + name + " is refused", func(w *World) error {
		ids := w.ids(name)
		return w.refused(class, ids[:1], append(words, strings.Split(ids[0], "@")[0][len("gpu_"):]))
	}}
}

// AllocateUnknownRefused expects the same of an id that was never bound.
func AllocateUnknownRefused(class string) Step {
	id := "gpu_5ca1ab1e-0000-4000-8000-00000000dead@alc_00000000000000000000000000"
	return Step{"Allocate of an unknown id is refused", func(w *World) error {
		return w.refused(class, []string{id}, []string{"00000000dead", "bound"})
	}}
}

func (w *World) refused(class string, ids, words []string) error {
	client, done, err := w.dial(class)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	_, err = client.Allocate(ctx, &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err == nil {
		return fmt.Errorf("Allocate of %v was answered", ids)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("the refusal does not say %q: %w", word, err)
		}
	}
	return nil
}
