package main

import (
	"errors"
	"fmt"
	"time"

	"better-compute/aged"
	dp "better-compute/deviceplugin"
)

const nodeCertificate = "/var/lib/bcd/node.pem"

// expire ends the pod and lays a certificate of this node on its disk that expired so many days ago.
func (h *hosted) expire(days int) error {
	if _, err := h.kubectl("delete", "-f", h.file("bcd.json"), "--ignore-not-found"); err != nil {
		return err
	}
	if err := dp.Eventually(hostedReady, func() error {
		pods, err := h.pods()
		if err == nil && len(pods) > 0 {
			err = errors.New("pods are left")
		}
		return err
	}); err != nil {
		return err
	}
	ca, err := aged.NewAuthority(h.p.PKIFolder())
	if err != nil {
		return err
	}
	return errors.Join(ca.Write(h.p.PKIFolder()), ca.Expire(nodeCertificate, days))
}

func (h *hosted) expiredLately() error {
	if err := h.expire(6); err != nil {
		return err
	}
	before, err := h.p.Node()
	if err != nil {
		return err
	}
	if err := h.apply(false); err != nil {
		return err
	}
	if err := h.running(); err != nil {
		return err
	}
	renewed, err := aged.Read(nodeCertificate)
	if err == nil && time.Until(renewed.NotAfter) < 29*24*time.Hour {
		err = fmt.Errorf("the certificate ends %v", renewed.NotAfter)
	}
	after, gone := h.p.Node()
	if err = errors.Join(err, gone); err == nil {
		err = dp.Expect("node", after.ID, before.ID)
	}
	return err
}

// expiredLongAgo: the pod's log is all that its people have.
func (h *hosted) expiredLongAgo() error {
	if err := h.expire(12); err != nil {
		return err
	}
	return h.fails(false, h.exits("join", exitTokenFile, "more than 7 days ago", "Apply a Secret with a live token", "kubernetes manifest"))
}

const exitTokenFile = 3 // of `bcd join`: it isn't there
