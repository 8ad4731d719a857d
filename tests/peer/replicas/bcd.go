package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"better-compute/aged"
)

// Exit statuses of `bcd join` (JOIN-42).
const (
	exitJoined    = 0
	exitTokenFile = 3
	exitToken     = 4
	exitPins      = 5
	exitNetwork   = 6
)

// bcdCases are joins of the real bcd.
var bcdCases = []Case{
	{"bcd joins, and has joined", "proves: JOIN-6 JOIN-7 JOIN-12 JOIN-14 JOIN-42", bcdJoins},
	{"two bcd race over two replicas for the last use", "proves: JOIN-4 JOIN-42", bcdRace},
	{"bcd says why its token was refused", "proves: JOIN-4 JOIN-42", bcdRefused},
	{"bcd refuses token files that others could read, and what is no file", "proves: JOIN-8 JOIN-9 JOIN-10", bcdTokenFiles},
	{"bcd refuses what doesn't match its pins", "proves: JOIN-17 JOIN-19 JOIN-20 JOIN-42", bcdPins},
	{"bcd fetches the join key, and trusts only its pin", "proves: JOIN-11 JOIN-16 JOIN-19 JOIN-39", bcdWellKnown},
	{"a node that was off for weeks renews by its key", "proves: JOIN-41", bcdExpired},
	{"no gateway is a network failure", "proves: JOIN-42", bcdNoGateway},
}

// Bcd is one machine's folder and configuration.
type Bcd struct {
	world     *World
	dir       string
	Addresses []string
	Pins      Pins
	Server    string // with it the key is fetched
	CAFile    string
	Output    string // of the last join
}

var bcds int

func NewBcd(w *World, at *Replica) *Bcd {
	bcds++
	b := &Bcd{world: w, dir: filepath.Join(w.dir, fmt.Sprintf("bcd%d", bcds)), Addresses: []string{at.Gateway}, Pins: w.Pins}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		panic(err)
	}
	return b
}

func (b *Bcd) path(name string) string { return filepath.Join(b.dir, name) }

func (b *Bcd) writeConfig() error {
	quoted, _ := json.Marshal(b.Addresses)
	join := fmt.Sprintf("server = %q\nca_file = %q\n", b.Server, b.CAFile)
	if b.Server == "" {
		if err := os.WriteFile(b.path("join.jwk"), b.Pins.EncryptionJwk, 0o600); err != nil {
			return err
		}
		join = fmt.Sprintf("encryption_jwk = %q\n", b.path("join.jwk"))
	}
	text := fmt.Sprintf("[paths]\ndata = %q\nrun = %q\n[gateway]\naddresses = %s\nserver_name = %q\nca_pins = %q\n[join]\n%sencryption_pins = %q\nsigning_pins = %q\n",
		b.path("data"), b.path("run"), quoted, serverName, b.Pins.CAPins, join, b.Pins.EncryptionPins, b.Pins.SigningPins)
	return os.WriteFile(b.path("config.toml"), []byte(text), 0o600)
}

// Join runs `bcd join` with a token file of our making; its exit status.
func (b *Bcd) Join(token string) (int, error) {
	if err := os.WriteFile(b.path("token"), []byte(token+"\n"), 0o600); err != nil {
		return 0, err
	}
	return b.JoinFile(b.path("token"))
}

func (b *Bcd) JoinFile(file string) (int, error) {
	if err := b.writeConfig(); err != nil {
		return 0, err
	}
	args := []string{"join", "--config", b.path("config.toml")}
	if file != "" {
		args = append(args, "--token-file", file)
	}
	var out bytes.Buffer
	cmd := exec.Command(b.world.env.bcd, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	timer := time.AfterFunc(60*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	b.Output = out.String()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// wants runs a join and wants this exit status and text.
func (b *Bcd) wants(token string, exit int, text string) error {
	got, err := b.Join(token)
	return b.judge(got, err, exit, text)
}

func (b *Bcd) judge(got int, err error, exit int, text string) error {
	if err == nil && (got != exit || !strings.Contains(b.Output, text)) {
		err = fmt.Errorf("exit status %d with %q, not %d with '%s'", got, b.Output, exit, text)
	}
	if err == nil && strings.Contains(b.Output, "bcj1_") {
		err = fmt.Errorf("it shows the token: %s", b.Output)
	}
	return err
}

func bcdJoins(w *World) error {
	token, id, err := w.Token(1)
	if err != nil {
		return err
	}
	b := NewBcd(w, w.A)
	if err := b.wants(token, exitJoined, "node_"); err != nil {
		return err
	}
	for _, name := range []string{"identity.json", "node.key", "node.pem"} {
		info, err := os.Stat(filepath.Join(b.path("data"), name))
		if err != nil || info.Mode().Perm() != 0o600 {
			return fmt.Errorf("%s: %v %v", name, info, err)
		}
	}
	// From now on neither token nor network is needed.
	b.Addresses = []string{"127.0.0.1:1"}
	got, err := b.JoinFile("")
	if err := b.judge(got, err, exitJoined, "node_"); err != nil {
		return err
	}
	if uses, err := w.uses(id); err != nil || uses != 1 {
		return fmt.Errorf("uses %v %v", uses, err)
	}
	// A lost identity with the key kept is the same machine: a live token, no use.
	if err := os.Remove(filepath.Join(b.path("data"), "identity.json")); err != nil {
		return err
	}
	b.Addresses = []string{w.B.Gateway}
	if err := b.wants(token, exitJoined, "node_"); err != nil {
		return err
	}
	if uses, err := w.uses(id); err != nil || uses != 1 {
		return fmt.Errorf("uses %v %v", uses, err)
	}
	return nil
}

func bcdRace(w *World) error {
	for i := range 5 {
		token, id, err := w.Token(1)
		if err != nil {
			return err
		}
		two := []*Bcd{NewBcd(w, w.A), NewBcd(w, w.B)}
		exits, errs := make([]int, 2), make([]error, 2)
		var done sync.WaitGroup
		for i, b := range two {
			done.Go(func() { exits[i], errs[i] = b.Join(token) })
		}
		done.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if exits[0]+exits[1] != exitJoined+exitToken || exits[0] == exits[1] {
			return fmt.Errorf("race %d: exit statuses %v: %s %s", i, exits, two[0].Output, two[1].Output)
		}
		if loser := two[exits[1]/exitToken]; !strings.Contains(loser.Output, "used up") {
			return fmt.Errorf("race %d: the loser was told %q", i, loser.Output)
		}
		if uses, err := w.uses(id); err != nil || uses != 1 {
			return fmt.Errorf("uses %v %v", uses, err)
		}
	}
	return nil
}

func bcdRefused(w *World) error {
	token, id, err := w.Token(2)
	if err != nil {
		return err
	}
	b := NewBcd(w, w.A)
	if err := b.wants(token[:len(token)-4]+"AAAA", exitToken, "unknown"); err != nil {
		return err
	}
	if _, err := w.env.postgres.SQL(w.database, "UPDATE join_tokens SET expires_ms = expires_ms - 3600001 WHERE id = '"+id+"'"); err != nil {
		return err
	}
	if err := b.wants(token, exitToken, "expired"); err != nil {
		return err
	}
	if token, id, err = w.Token(2); err != nil {
		return err
	}
	if _, err := w.B.Call("POST", "/v1/join-tokens/"+id+"/revoke", object{}); err != nil {
		return err
	}
	if err := b.wants(token, exitToken, "revoked"); err != nil {
		return err
	}
	if token, _, err = w.Token(1); err != nil {
		return err
	}
	if err := NewMachine(w).Join(w.B, token); err != nil {
		return err
	}
	return b.wants(token, exitToken, "used up")
}

func bcdTokenFiles(w *World) error {
	token, id, err := w.Token(1)
	if err != nil {
		return err
	}
	b := NewBcd(w, w.A)
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
			panic(err)
		}
		os.Chmod(b.path(name), mode)
	}
	write("world", token, 0o644)
	write("group", token, 0o640)
	write("large", token+strings.Repeat(" ", 4096), 0o600)
	write("empty", "", 0o600)
	os.Mkdir(b.path("folder"), 0o700)
	syscall.Mkfifo(b.path("fifo"), 0o600)
	os.Symlink("world", b.path("link-to-world"))
	table := map[string]string{"world": "others may read", "group": "others may read", "link-to-world": "others may read", "large": "4096",
		"empty": "holds none", "folder": "not a file but", "fifo": "not a file but", "absent": "No such file"}
	for name, text := range table {
		got, err := b.JoinFile(b.path(name))
		if err := b.judge(got, err, exitTokenFile, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if uses, err := w.uses(id); err != nil || uses != 0 {
		return fmt.Errorf("uses %v %v", uses, err)
	}
	// As a Secret volume has it: token -> ..data/token, ..data -> a dated folder.
	os.Mkdir(b.path("..2026"), 0o700)
	write("..2026/token", token+"\n", 0o600)
	os.Symlink("..2026", b.path("..data"))
	os.Symlink("..data/token", b.path("mounted"))
	got, err := b.JoinFile(b.path("mounted"))
	return b.judge(got, err, exitJoined, "node_")
}

const otherPin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func bcdPins(w *World) error {
	token, id, err := w.Token(9)
	if err != nil {
		return err
	}
	wrong := NewBcd(w, w.A)
	wrong.Pins.CAPins = otherPin
	if err := wrong.wants(token, exitPins, "seen: "+w.Pins.CAPins); err != nil {
		return fmt.Errorf("gateway CA: %w", err)
	}
	wrong.Pins = w.Pins
	wrong.Pins.EncryptionPins = otherPin
	if err := wrong.wants(token, exitPins, "the join encryption key has pin"); err != nil {
		return fmt.Errorf("encryption: %w", err)
	}
	if uses, err := w.uses(id); err != nil || uses != 0 {
		return fmt.Errorf("the token was shown to who isn't trusted: uses %v %v", uses, err)
	}
	// Somebody in between who has a certificate for the name, of a CA of his own.
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{caSigned(serverName)}, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer listener.Close()
	go accept(listener)
	between := NewBcd(w, w.A)
	between.Addresses = []string{listener.Addr().String()}
	if err := between.wants(token, exitPins, "pin"); err != nil {
		return fmt.Errorf("another certificate: %w", err)
	}
	// The answer's signer: the use is spent, as the machine's key; nothing is kept.
	b := NewBcd(w, w.A)
	b.Pins.SigningPins = otherPin
	if err := b.wants(token, exitPins, otherPin); err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	if _, err := os.Stat(filepath.Join(b.path("data"), "identity.json")); !os.IsNotExist(err) {
		return fmt.Errorf("an identity was kept: %v", err)
	}
	// Two pins, the second one right: while keys change.
	b.Pins = w.Pins
	b.Pins.CAPins, b.Pins.EncryptionPins, b.Pins.SigningPins = otherPin+","+w.Pins.CAPins, otherPin+","+w.Pins.EncryptionPins, otherPin+","+w.Pins.SigningPins
	return b.wants(token, exitJoined, "node_")
}

func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			conn.Read(make([]byte, 4096))
		}()
	}
}

// caSigned is a certificate for a name, with the CA that signed it.
func caSigned(name string) tls.Certificate {
	caKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	end := time.Now().Add(time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: end, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der, caDER}, PrivateKey: key}
}

func bcdWellKnown(w *World) error {
	token, _, err := w.Token(9)
	if err != nil {
		return err
	}
	real, err := http.Get(w.A.API + "/.well-known/better-compute")
	if err != nil {
		return err
	}
	defer real.Body.Close()
	var document object
	if err := json.NewDecoder(real.Body).Decode(&document); err != nil {
		return err
	}
	// A proxy with a private CA in front of the API, as operators have it.
	certificate := caSigned("localhost")
	var answer func(http.ResponseWriter, *http.Request)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	defer listener.Close()
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) { answer(out, in) })}
	go server.Serve(listener)
	caFile := filepath.Join(w.dir, "proxy-ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[1]})
	if err := os.WriteFile(caFile, ca, 0o644); err != nil {
		return err
	}
	machine := func() *Bcd {
		b := NewBcd(w, w.A)
		b.Addresses = []string{}
		b.Server = "https://localhost:" + fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
		b.CAFile = caFile
		return b
	}
	serve := func(document any) {
		text, _ := json.Marshal(document)
		answer = func(out http.ResponseWriter, in *http.Request) { out.Write(text) }
	}
	foreign, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	serve(object{"version": 1, "gateway": document["gateway"], "join": object{"url": "https://x", "encryptionJwk": jwkOf(foreign), "signingKid": "x"}})
	if err := machine().wants(token, exitPins, "pin"); err != nil {
		return fmt.Errorf("a foreign key: %w", err)
	}
	for what, one := range map[string]any{"no object": "x", "no version": object{}, "large": strings.Repeat("x", 20000)} {
		serve(one)
		b := machine()
		if got, err := b.Join(token); err != nil || got == exitJoined || b.Output == "" {
			return fmt.Errorf("%s: exit status %d, %q, %v", what, got, b.Output, err)
		}
	}
	answer = func(out http.ResponseWriter, in *http.Request) {
		http.Redirect(out, in, w.A.API+"/.well-known/better-compute", http.StatusFound)
	}
	b := machine()
	if got, err := b.Join(token); err != nil || got == exitJoined {
		return fmt.Errorf("a redirect to another host: exit status %d, %q, %v", got, b.Output, err)
	}
	serve(document)
	untrusting := machine()
	untrusting.CAFile = ""
	if got, err := untrusting.Join(token); err != nil || got == exitJoined {
		return fmt.Errorf("a certificate of nobody: exit status %d, %q, %v", got, untrusting.Output, err)
	}
	return machine().wants(token, exitJoined, "node_")
}

func bcdNoGateway(w *World) error {
	token, _, err := w.Token(1)
	if err != nil {
		return err
	}
	b := NewBcd(w, w.A)
	b.Addresses = []string{"127.0.0.1:1"}
	if err := b.wants(token, exitNetwork, "127.0.0.1:1"); err != nil {
		return err
	}
	b.Addresses = []string{"127.0.0.1:1", w.B.Gateway} // the next one is tried
	return b.wants(token, exitJoined, "node_")
}

// age gives both replicas a node CA that is as old as nodes that expired.
func (w *World) age() (*aged.Authority, error) {
	ca, err := aged.NewAuthority(filepath.Join(w.A.home, "pki"))
	if err != nil {
		return nil, err
	}
	for _, r := range []*Replica{w.A, w.B} {
		if err := errors.Join(r.Stop(syscall.SIGTERM), ca.Write(filepath.Join(r.home, "pki"))); err != nil {
			return nil, err
		}
		if err := r.Start(); err != nil {
			return nil, err
		}
	}
	return ca, nil
}

func bcdExpired(w *World) error {
	ca, err := w.age()
	if err != nil {
		return err
	}
	token, _, err := w.Token(1)
	if err != nil {
		return err
	}
	b := NewBcd(w, w.A)
	if err := b.wants(token, exitJoined, "node_"); err != nil {
		return err
	}
	b.Addresses = []string{w.B.Gateway}
	file := filepath.Join(b.path("data"), "node.pem")
	good, err := aged.Read(file)
	if err != nil {
		return err
	}
	if err := ca.Expire(file, 8); err != nil {
		return err
	}
	got, err := b.JoinFile("")
	if err := b.judge(got, err, exitToken, "more than 7 days ago"); err != nil {
		return err
	}
	if err := ca.Expire(file, 6); err != nil {
		return err
	}
	got, err = b.JoinFile("")
	if err := b.judge(got, err, exitJoined, good.Subject.CommonName); err != nil {
		return err
	}
	fresh, err := aged.Read(file)
	if err == nil && time.Until(fresh.NotAfter) < 29*24*time.Hour {
		err = fmt.Errorf("the new certificate ends %v", fresh.NotAfter)
	}
	return err
}
