package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	dp "better-compute/deviceplugin"
)

const (
	hostedSpace  = "bcd-system"
	hostedImage  = "registry.example.com/better-compute/bcd"
	hostedReady  = 60 * time.Second
	hostedGap    = time.Second // what a rollout may take the kubelet's plugin away for
	hostedSelect = "nvidia.com/gpu.present=true"
	hostedAgent  = "better-compute/" // bcd's user agent
)

// hosted is bcd as a DaemonSet, from the project's own image, with a control plane of its own.
type hosted struct {
	c       *cluster
	p       *dp.Product
	build   string // the made-up driver's folder
	bcd     string
	dir     string
	images  []string // two digests of the same program
	pins    []string // flags, each with its value
	tenant  string
	user    int       // a process of a pod with a GPU
	clings  string    // the UID of the pod that kept a released GPU
	clung   time.Time // just before the release
	before  func()    // ends other cases' bcd: one plugin a resource
	earlier int       // requests in the audit log that are of other cases
}

// hostedCases: what an admin does, and what can go wrong on the way.
func hostedCases(c *cluster, build, bcd, betterCompute string, before func()) (cases []dp.Case, stop func()) {
	h := &hosted{c: c, build: build, bcd: bcd, before: before, dir: filepath.Join(c.run, "hosted")}
	h.p = &dp.Product{Kubelet: c, Dir: h.dir, BCD: bcd, BetterCompute: betterCompute, Host: nodeIP, PodLogs: h.logs}
	h.p.TLS.Cert, h.p.TLS.Key, h.p.TLS.CA = filepath.Join(c.run, "pki/kubelet.crt"), filepath.Join(c.run, "pki/kubelet.key"), filepath.Join(c.run, "pki/ca.crt")
	rows := []dp.Row{
		{Name: "hosted/whole-path", Proves: "proves: HOSTED-1 HOSTED-4 HOSTED-5 HOSTED-6 HOSTED-7 HOSTED-8 HOSTED-9 HOSTED-10 HOSTED-11 HOSTED-12 HOSTED-13 HOSTED-14 HOSTED-15 HOSTED-16 HOSTED-20 HOSTED-21 HOSTED-23 HOSTED-31 HOSTED-38 HOSTED-40 JOIN-24 MAN-41 MAN-62",
			Steps: []dp.Step{
				h.step("the tenant's own site", func() error { return h.pool("custom", false) }),
				h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
				h.step("the node is tenant-owned and ready", func() error { return h.joined("tenant-owned") }),
				h.step("exactly the mounts of the manifest", h.mounts),
				h.step("bcd confined itself", h.confined),
				h.step("labels of the Node", h.labels),
				dp.Reserve("r", dp.GPUs(2)),
				dp.StartPod("user", "bcd.dev/gpu", 2),
				dp.Runs("user"),
				dp.Given("user", 2, "r"),
				h.step("rollout of a second digest", h.rollout),
				dp.GoesOn("user"),
				dp.Given("user", 2, "r"),
				h.step("token revoked, Secret deleted, pod restarts", h.forgetToken),
				dp.GoesOn("user"),
				dp.Reserve("s", dp.GPUs(1)),
				dp.StartStubbornPod("clings", "bcd.dev/gpu", 1),
				dp.Runs("clings"),
				dp.Given("clings", 1, "s"),
				h.step("its process is known", func() (err error) { h.user, err = h.c.processOf("clings"); return err }),
				h.step("and the pod, too", h.knowClings),
				dp.Release("s"),
				dp.StaysHeld("s", 5*time.Second),
				{Say: "its pod is ended in time, and then it is released", Do: h.reaped},
				dp.Released("s"),
				dp.GoesOn("user"),
				dp.Given("user", 2, "r"),
				dp.DeletePod("user"),
				dp.Release("r"),
				dp.Released("r"),
				h.step("bcd asked the API server what it may, and nothing was refused", h.audited),
				h.step("of the pod that clung, by its UID, and told why", h.auditedReaper),
				h.step("uninstall", h.uninstall),
			}},
		{Name: "hosted/platform", Proves: "proves: JOIN-21 POOL-18", Steps: []dp.Step{
			h.step("the platform's own site, platformOperated", func() error { return h.pool("platform", true) }),
			h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
			h.step("the node is the platform's", func() error { return h.joined("platform") }),
			h.step("uninstall", h.uninstall),
		}},
		{Name: "hosted/tenant-controlled", Proves: "proves: JOIN-21 RES-15", Steps: []dp.Step{
			h.step("the platform's site without platformOperated", func() error { return h.pool("platform", false) }),
			h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
			h.step("the node is tenant-controlled", func() error { return h.joined("tenant-controlled") }),
			h.step("it adds no capacity", h.addsNothing),
			h.step("uninstall", h.uninstall),
		}},
		{Name: "hosted/kubelet-restarts-without-api-server", Proves: "proves: HOSTED-24 HOSTED-25 HOSTED-42 REL-2 REL-14", Steps: []dp.Step{
			h.step("the tenant's own site", func() error { return h.pool("custom", false) }),
			h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
			h.step("the node is tenant-owned and ready", func() error { return h.joined("tenant-owned") }),
			dp.Reserve("r", dp.GPUs(1)),
			dp.StartPod("user", "bcd.dev/gpu", 1),
			dp.Runs("user"),
			h.step("its process is known", func() (err error) { h.user, err = c.processOf("user"); return err }),
			c.killPart("kube-apiserver"),
			h.step("the kubelet is restarted", c.Start),
			h.step("it lists no pods", c.listsNobody),
			dp.Release("r"),
			dp.StaysHeld("r", 25*time.Second),
			h.step("the pod runs", func() error { return dp.Expect("its process is there", h.userRuns(), true) }),
			h.step("bcd says who, and why nobody can be asked", h.saysWhoIsUnlisted),
			c.restartPart("kube-apiserver"),
			dp.DeletePod("user"),
			{Say: "released once the pod's process is gone", Do: func(w *dp.World) error { return h.releasedAfterUser(w, "r", dp.Soon) }},
			dp.Released("r"),
			h.step("uninstall", h.uninstall),
		}},
		{Name: "hosted/pods-that-vanish", Proves: "proves: HOSTED-24 REL-2 REL-14", Steps: append(append([]dp.Step{
			h.step("the tenant's own site", func() error { return h.pool("custom", false) }),
			h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
			h.step("the node is tenant-owned and ready", func() error { return h.joined("tenant-owned") }),
		}, bookings(3)...), dp.Step{Say: "each is reported once its process is gone", Do: h.vanish},
			h.step("uninstall", h.uninstall))},
		{Name: "hosted/joins-anew-while-a-pod-runs", Proves: "proves: REL-2 REL-4 REL-27 DP-42 RES-30", Steps: []dp.Step{
			h.step("the tenant's own site", func() error { return h.pool("custom", false) }),
			h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
			h.step("the node is tenant-owned and ready", func() error { return h.joined("tenant-owned") }),
			dp.Reserve("old", dp.GPUs(2)),
			dp.StartStubbornPod("user", "bcd.dev/gpu", 2),
			dp.Runs("user"),
			h.step("its process is known", func() (err error) { h.user, err = c.processOf("user"); return err }),
			{Say: "the node is declared lost, and all that bcd had there is removed", Do: h.losesState},
			h.step("it joins anew", func() error { return h.install(h.images[0]) }),
			h.step("it is ready", func() error { return h.joined("tenant-owned") }),
			{Say: "all its GPUs are booked, and bound once the pod's process is gone", Do: h.boundAfterUser},
			dp.StartPod("next", "bcd.dev/gpu", 8),
			dp.Runs("next"),
			dp.Given("next", 8, "r"),
			dp.DeletePod("next"),
			dp.Release("r"),
			dp.Released("r"),
			h.step("uninstall", h.uninstall),
		}},
		{Name: "hosted/what-goes-wrong", Proves: "proves: JOIN-42 HOSTED-41 MAN-58", Steps: []dp.Step{
			h.step("a pool", func() error { return h.pool("custom", false) }),
			h.step("no token", h.withoutToken),
			h.step("a wrong pin", h.wrongPin),
			h.step("a runtime's configuration that isn't there", h.wrongRuntime),
			h.step("no NODE_NAME", h.withoutNodeName),
		}},
		{Name: "hosted/expired", Proves: "proves: JOIN-41 JOIN-42 HOSTED-14 HOSTED-16", Steps: []dp.Step{
			h.step("a pool", func() error { return h.pool("custom", false) }),
			h.step("manifest, Secret, apply", func() error { return h.install(h.images[0]) }),
			h.step("joined", func() error { return h.joined("tenant-owned") }),
			h.step("off for five weeks, the Secret gone: back by its key", h.expiredLately),
			h.step("off for six weeks: what to do is said", h.expiredLongAgo),
		}},
	}
	return dp.Cases(c, h.p, rows), func() { h.p.Stop() }
}

func (h *hosted) step(say string, do func() error) dp.Step {
	return dp.Step{Say: say, Do: func(*dp.World) error { return do() }}
}

// --- the control plane's side

// start is what all cases need; the first one does it.
func (h *hosted) start() error {
	if len(h.images) == 2 {
		return nil
	}
	h.before()
	if err := h.forgetIdentity(); err != nil {
		return err
	}
	all, err := h.c.requests(hostedAgent)
	if err != nil {
		return err
	}
	h.earlier = len(all)
	if _, err := h.c.installDriver(h.build); err != nil {
		return err
	}
	if err := h.p.SetupServe(); err != nil {
		return err
	}
	if h.tenant, err = h.p.MakeTenant(); err != nil {
		return err
	}
	if err := os.WriteFile(h.file("key"), []byte(h.p.Key()+"\n"), 0o600); err != nil {
		return err
	}
	pki, err := h.p.PKI()
	if err != nil {
		return err
	}
	h.pins = []string{"--serving-ca-pin", pki.CAPins, "--join-signing-pin", pki.SigningPins, "--join-encryption-pin", pki.EncryptionPins}
	for epoch := range 2 {
		archive := h.file(fmt.Sprintf("bcd-%d.oci.tar", epoch))
		build := exec.Command(filepath.Join(h.c.scripts, "../../../packaging/image/build"), "--program", h.bcd, "--out", archive)
		build.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch))
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("packaging/image/build: %w: %s", err, out)
		}
		load := exec.Command(filepath.Join(h.c.scripts, "load"), archive, hostedImage)
		load.Env = append(os.Environ(), "RUN="+h.c.run)
		name, err := load.Output()
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		h.images = append(h.images, strings.TrimSpace(string(name)))
	}
	if h.images[0] == h.images[1] {
		return errors.New("both images have one digest")
	}
	return nil
}

func (h *hosted) file(name string) string { return filepath.Join(h.dir, name) }

// pool makes a site of this kind and a pool there, for the next installation.
func (h *hosted) pool(kind string, platformOperated bool) error {
	if err := errors.Join(h.start(), h.reset()); err != nil {
		return err
	}
	if !platformOperated {
		return h.p.MakePool(h.tenant, kind, object{})
	}
	var tenants struct{ Items []struct{ ID, Name string } }
	if err := h.p.Call("GET", "/v1/tenants", nil, &tenants); err != nil {
		return err
	}
	for _, tenant := range tenants.Items {
		if tenant.Name == "platform" { // only the platform's word on who operates a cluster counts
			return h.p.MakePool(tenant.ID, kind, object{"kubernetes": object{"platformOperated": true}})
		}
	}
	return errors.New("there is no tenant platform")
}

// reset takes away what an earlier case left when it failed.
func (h *hosted) reset() error {
	_, err := h.kubectl("delete", "namespace", hostedSpace, "--ignore-not-found")
	if node, left := h.p.Node(); left == nil {
		err = errors.Join(err, h.p.Call("POST", "/v1/nodes/"+node.ID+"/retire", nil, nil))
	}
	return errors.Join(err, h.forgetIdentity())
}

// --- the admin's side

func (h *hosted) kubectl(args ...string) (string, error) {
	out, err := exec.Command("kubectl", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// render runs the command of the guide.
func (h *hosted) render(image string, more ...string) error {
	return h.renderFor(image, h.pins, more...)
}

func (h *hosted) renderFor(image string, pins []string, more ...string) error {
	for _, name := range []string{"secret.json", "bcd.json"} {
		os.Remove(h.file(name))
	}
	args := append([]string{"kubernetes", "manifest", "--api", h.p.URL(), "--key-file", h.file("key"), "--ca-file", h.p.TLS.CA,
		"--tenant", h.p.Tenant(), "--pool", h.p.Pool, "--image", image, "--node-selector", hostedSelect, "--max-uses", "1", "--ttl", "10m",
		"--secret-out", h.file("secret.json"), "--out", h.file("bcd.json")}, pins...)
	_, err := h.p.CLI(append(args, more...)...)
	return err
}

func (h *hosted) apply(secret bool) error {
	if _, err := h.kubectl("create", "namespace", hostedSpace); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		return err
	}
	if secret {
		if _, err := h.kubectl("apply", "-f", h.file("secret.json")); err != nil {
			return err
		}
	}
	_, err := h.kubectl("apply", "-f", h.file("bcd.json"))
	return err
}

func (h *hosted) install(image string) error {
	if err := h.render(image); err != nil {
		return err
	}
	return errors.Join(h.apply(true), h.running())
}

// hostedPod is what the cases look at.
type hostedPod struct {
	Metadata struct{ Name, UID string }
	Spec     struct {
		Containers []struct {
			Image        string
			VolumeMounts []struct {
				Name, MountPath string
				ReadOnly        bool
			}
		}
		AutomountServiceAccountToken *bool
		HostPID                      bool
		Volumes                      []struct {
			Name     string
			HostPath *struct{ Path, Type string }
		}
	}
	Status struct {
		Phase                                    string
		Conditions                               []struct{ Type, Status string }
		InitContainerStatuses, ContainerStatuses []struct {
			Name, ContainerID string
			RestartCount      int
			State, LastState  struct {
				Waiting    *struct{ Reason, Message string }
				Terminated *struct{ ExitCode int }
			}
		}
	}
}

func (h *hosted) pods() ([]hostedPod, error) {
	var list struct{ Items []hostedPod }
	err := h.c.api.call("GET", "/api/v1/namespaces/"+hostedSpace+"/pods", nil, &list)
	return list.Items, err
}

func (h *hosted) pod() (*hostedPod, error) {
	pods, err := h.pods()
	if err == nil && len(pods) != 1 {
		err = fmt.Errorf("%d pods of bcd", len(pods))
	}
	if err != nil {
		return nil, err
	}
	return &pods[0], nil
}

func (h *hosted) running() error {
	err := dp.Eventually(hostedReady, func() error {
		pod, err := h.pod()
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("the pod is %s: %+v %+v", pod.Status.Phase, pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	})
	if err != nil {
		err = errors.Join(err, errors.New(h.logs()))
	}
	return err
}

// confined wants each container to have given up what it can; a kernel may lack landlock.
func (h *hosted) confined() error {
	for _, container := range []string{"join", "bcd"} {
		log, err := h.kubectl("-n", hostedSpace, "logs", "-l", "app.kubernetes.io/name=bcd", "-c", container, "--tail=-1")
		if err != nil {
			return err
		}
		want := `"confined":"privileges, capabilities, files, calls, dumps"`
		if strings.Contains(log, "this kernel has no landlock") {
			want = `"confined":"privileges, capabilities, calls, dumps"`
		}
		if !strings.Contains(log, want) {
			return fmt.Errorf("%s doesn't say that it is confined: %s", container, log)
		}
	}
	return nil
}

func (h *hosted) logs() string {
	join, _ := h.kubectl("-n", hostedSpace, "logs", "-l", "app.kubernetes.io/name=bcd", "-c", "join", "--tail=5")
	node, _ := h.kubectl("-n", hostedSpace, "logs", "-l", "app.kubernetes.io/name=bcd", "-c", "bcd", "--tail=15")
	events, _ := h.kubectl("-n", hostedSpace, "get", "events", "--field-selector", "type=Warning")
	return "join: " + join + "bcd: " + node + events
}

func (h *hosted) forgetToken() error {
	id, err := h.kubectl("-n", hostedSpace, "get", "secret", "bcd-join", "-o", `jsonpath={.metadata.annotations.bcd\.dev/join-token}`)
	if err != nil {
		return err
	}
	if _, err := h.p.CLI("join-tokens", "revoke", id, "--api", h.p.URL(), "--key-file", h.file("key"), "--ca-file", h.p.TLS.CA); err != nil {
		return err
	}
	pod, err := h.pod()
	if err != nil {
		return err
	}
	if _, err := h.kubectl("-n", hostedSpace, "delete", "secret", "bcd-join"); err != nil {
		return err
	}
	if _, err := h.kubectl("-n", hostedSpace, "delete", "pod", pod.Metadata.Name); err != nil {
		return err
	}
	return errors.Join(h.running(), h.joined("tenant-owned"))
}

// uninstall is the guide's, and what it says is left is all that is left.
func (h *hosted) uninstall() error {
	if err := h.c.namesNobody(); err != nil {
		return err
	}
	node, err := h.p.Node()
	if err != nil {
		return err
	}
	if err := h.p.Call("POST", "/v1/nodes/"+node.ID+"/retire", nil, nil); err != nil {
		return err
	}
	if _, err := h.kubectl("delete", "-f", h.file("bcd.json"), "--ignore-not-found"); err != nil {
		return err
	}
	if _, err := h.kubectl("label", "node", nodeName, "bcd.dev/node-id-", "bcd.dev/site-", "bcd.dev/pool-", "bcd.dev/gpu.count-", "bcd.dev/gpu.product-",
		"bcd.dev/gpu.driver-", "bcd.dev/gpu.memory-", "bcd.dev/gpu.compute.major-", "bcd.dev/gpu.compute.minor-", "bcd.dev/gpu.mig.capable-"); err != nil {
		return err
	}
	left, _ := filepath.Glob("/etc/cdi/bcd.dev-*")
	sockets, _ := filepath.Glob("/var/lib/kubelet/device-plugins/bcd*")
	if len(left)+len(sockets) > 0 {
		return fmt.Errorf("left on the node: %v %v", left, sockets)
	}
	var namespace any
	err = dp.Eventually(dp.Soon, func() error {
		if err := h.c.api.call("GET", "/api/v1/namespaces/"+hostedSpace, nil, &namespace); !errors.Is(err, errNotFound) {
			return errors.Join(err, errors.New("the namespace is still there"))
		}
		return nil
	})
	return errors.Join(err, h.forgetIdentity())
}

// forgetIdentity empties /var/lib/bcd, the admin's last step on a node.
func (h *hosted) forgetIdentity() error {
	entries, err := os.ReadDir("/var/lib/bcd")
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join("/var/lib/bcd", entry.Name())))
	}
	return err
}
