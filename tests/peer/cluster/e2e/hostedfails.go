package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	dp "better-compute/deviceplugin"
)

// An installation that can't work: how it fails, and what it says.

// fails applies what was rendered, waits until look finds the failure, and takes it away again.
func (h *hosted) fails(secret bool, look func(*hostedPod) error) error {
	err := h.apply(secret)
	if err == nil {
		err = dp.Eventually(hostedReady, func() error {
			pod, err := h.pod()
			if err != nil {
				return err
			}
			return look(pod)
		})
	}
	if err != nil {
		err = errors.Join(err, errors.New(h.logs()))
	}
	_, deleted := h.kubectl("delete", "-f", h.file("bcd.json"), "--ignore-not-found")
	gone := dp.Eventually(hostedReady, func() error {
		pods, err := h.pods()
		if err == nil && len(pods) > 0 {
			err = errors.New("pods are left")
		}
		return err
	})
	return errors.Join(err, deleted, gone, h.forgetIdentity())
}

// exits: the container named ends with this status and its log says so.
func (h *hosted) exits(container string, status int, words ...string) func(*hostedPod) error {
	return func(pod *hostedPod) error {
		all := append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...)
		for _, one := range all {
			if one.Name != container {
				continue
			}
			ended := one.State.Terminated
			if ended == nil {
				ended = one.LastState.Terminated
			}
			if ended == nil {
				return fmt.Errorf("%s goes on", container)
			}
			if err := dp.Expect("exit status of "+container, ended.ExitCode, status); err != nil {
				return err
			}
		}
		log, _ := h.kubectl("-n", hostedSpace, "logs", pod.Metadata.Name, "-c", container)
		if log == "" {
			log, _ = h.kubectl("-n", hostedSpace, "logs", pod.Metadata.Name, "-c", container, "--previous")
		}
		for _, word := range words {
			if !strings.Contains(log, word) {
				return fmt.Errorf("%s says %q, and nothing of %q", container, log, word)
			}
		}
		return nil
	}
}

func (h *hosted) withoutToken() error {
	if err := h.render(h.images[0]); err != nil {
		return err
	}
	return h.fails(false, h.exits("join", 3, "/var/run/secrets/bcd.dev/join/token", "kubernetes manifest", "kubectl apply"))
}

func (h *hosted) wrongPin() error {
	const other = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	pins := slices.Clone(h.pins)
	pins[1] = other // of the gateway's authority
	if err := h.renderFor(h.images[0], pins); err == nil {
		return errors.New("a pin that isn't the control plane's was rendered")
	}
	// As of a control plane whose keys changed since, or an edited document.
	if err := h.render(h.images[0]); err != nil {
		return err
	}
	text, err := os.ReadFile(h.file("bcd.json"))
	if err != nil {
		return err
	}
	changed := strings.ReplaceAll(string(text), h.pins[1], other)
	if changed == string(text) {
		return fmt.Errorf("the document doesn't have %s", h.pins[1])
	}
	if err := os.WriteFile(h.file("bcd.json"), []byte(changed), 0o600); err != nil {
		return err
	}
	return h.fails(true, h.exits("join", 5, "pin"))
}

func (h *hosted) wrongRuntime() error {
	if err := h.render(h.images[0], "--container-runtime", "k3s"); err != nil {
		return err
	}
	return h.fails(true, func(pod *hostedPod) error {
		events, err := h.kubectl("-n", hostedSpace, "get", "events", "--field-selector", "involvedObject.uid="+pod.Metadata.UID)
		if err == nil && !strings.Contains(events, "/var/lib/rancher/k3s/agent/etc/containerd/config.toml") {
			err = fmt.Errorf("no event names the path: %s", events)
		}
		return err
	})
}

// withoutNodeName: the variable taken out of what was rendered.
func (h *hosted) withoutNodeName() error {
	if err := h.render(h.images[0]); err != nil {
		return err
	}
	text, err := os.ReadFile(h.file("bcd.json"))
	if err != nil {
		return err
	}
	var list struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Items      []object `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		if item["kind"] == "DaemonSet" {
			spec := item["spec"].(object)["template"].(object)["spec"].(object)
			delete(spec["containers"].([]any)[0].(object), "env")
		}
	}
	if text, err = json.Marshal(list); err != nil {
		return err
	}
	if err := os.WriteFile(h.file("bcd.json"), text, 0o600); err != nil {
		return err
	}
	return h.fails(true, h.exits("bcd", 2, "NODE_NAME"))
}
