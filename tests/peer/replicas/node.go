package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/dynamicpb"
)

const serverName = "gateway.better-compute.internal"

// Machine is a host that joins and then is a node.
type Machine struct {
	world       *World
	key         *ecdsa.PrivateKey
	ID          string
	Trust       string
	Rejoined    bool
	certificate tls.Certificate
}

func NewMachine(w *World) *Machine {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return &Machine{world: w, key: key}
}

func pinOf(public any) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	digest := sha256.Sum256(der)
	return "sha256/" + base64.StdEncoding.EncodeToString(digest[:])
}

// tlsConfig trusts a chain that holds a CA with the pinned key.
func (m *Machine) tlsConfig(withCertificate bool) *tls.Config {
	c := &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
	c.VerifyConnection = func(state tls.ConnectionState) error {
		roots := x509.NewCertPool()
		for _, one := range state.PeerCertificates {
			if one.IsCA && pinOf(one.PublicKey) == m.world.Pins.CAPins {
				roots.AddCert(one)
			}
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: serverName})
		return err
	}
	if withCertificate { // whatever the server says it would take
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &m.certificate, nil }
	}
	return c
}

func (m *Machine) dial(r *Replica, withCertificate bool) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+r.Gateway, grpc.WithTransportCredentials(credentials.NewTLS(m.tlsConfig(withCertificate))))
}

// seal makes the request's envelope, with go-jose.
func (m *Machine) seal(token, nonce string) (string, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, m.key)
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(object{"version": 1, "nonce": nonce, "token": token,
		"csr":     string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})),
		"machine": object{"hostname": "gpu-1", "bootId": "b"}})
	if err != nil {
		return "", err
	}
	var to jose.JSONWebKey
	if err := json.Unmarshal(m.world.Pins.EncryptionJwk, &to); err != nil {
		return "", err
	}
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.ECDH_ES_A256KW, Key: to.Key}, nil)
	if err != nil {
		return "", err
	}
	sealed, err := encrypter.Encrypt(plain)
	if err != nil {
		return "", err
	}
	return sealed.CompactSerialize()
}

// Join joins at one replica; a refusal is its gRPC status.
func (m *Machine) Join(r *Replica, token string) error {
	raw := make([]byte, 32)
	rand.Read(raw)
	nonce := base64.RawURLEncoding.EncodeToString(raw)
	envelope, err := m.seal(token, nonce)
	if err != nil {
		return err
	}
	answer, err := m.JoinEnvelope(r, envelope)
	if err != nil {
		return err
	}
	return m.take(answer, nonce)
}

// JoinEnvelope sends an envelope as it is.
func (m *Machine) JoinEnvelope(r *Replica, envelope string) (string, error) {
	conn, err := m.dial(r, false)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	wire := m.world.env.wire
	request, answer := wire.message("JoinRequest"), wire.message("JoinAnswer")
	field := request.Descriptor().Fields().ByName("envelope")
	request.Set(field, valueOf(envelope))
	if err := conn.Invoke(ctx, "/bettercompute.v1.Join/Join", request, answer); err != nil {
		return "", err
	}
	return answer.Get(answer.Descriptor().Fields().ByName("envelope")).String(), nil
}

// take checks the answer as a node must: signer by pin, nonce, certificate for its own key.
func (m *Machine) take(envelope, nonce string) error {
	signed, err := jose.ParseSigned(envelope, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	signer := signed.Signatures[0].Protected.JSONWebKey
	if signer == nil || pinOf(signer.Key) != m.world.Pins.SigningPins {
		return fmt.Errorf("the signer is not pinned")
	}
	payload, err := signed.Verify(signer)
	if err != nil {
		return err
	}
	var answer struct {
		Version                           int
		Nonce, NodeID, Trust, Certificate string
		Gateway                           struct{ Address, ServerName string }
		Rejoined                          bool
	}
	if err := json.Unmarshal(payload, &answer); err != nil {
		return err
	}
	if answer.Version != 1 || answer.Nonce != nonce || answer.Gateway.ServerName != serverName {
		return fmt.Errorf("the answer is not ours: %s", payload)
	}
	der, err := x509.MarshalECPrivateKey(m.key)
	if err != nil {
		return err
	}
	m.certificate, err = tls.X509KeyPair([]byte(answer.Certificate), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	m.ID, m.Trust, m.Rejoined = answer.NodeID, answer.Trust, answer.Rejoined
	return err
}

// Stream is a node's stream; what comes down is read in the background.
type Stream struct {
	machine *Machine
	conn    *grpc.ClientConn
	cancel  context.CancelFunc
	stream  grpc.ClientStream
	down    chan object
	end     chan error
}

func (m *Machine) Connect(r *Replica, withCertificate bool) (*Stream, error) {
	conn, err := m.dial(r, withCertificate)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/bettercompute.v1.Gateway/Connect")
	if err != nil {
		cancel()
		conn.Close()
		return nil, err
	}
	s := &Stream{machine: m, conn: conn, cancel: cancel, stream: stream, down: make(chan object, 1000), end: make(chan error, 1)}
	go s.read()
	return s, nil
}

func (s *Stream) read() {
	for {
		m := s.machine.world.env.wire.message("Down")
		if err := s.stream.RecvMsg(m); err != nil {
			s.end <- err
			return
		}
		var fields object
		if err := json.Unmarshal([]byte(Unpack(m)), &fields); err != nil {
			panic(err)
		}
		s.down <- fields
	}
}

func (s *Stream) Close() {
	s.cancel()
	s.conn.Close()
}

// Send sends an Up given as JSON.
func (s *Stream) Send(json string) error {
	return s.stream.SendMsg(s.machine.world.env.wire.Pack("Up", json))
}

func (s *Stream) SendRaw(m *dynamicpb.Message) error { return s.stream.SendMsg(m) }

// Next gives the next message of a kind ("welcome", "spec", "ack", …), dropping others.
func (s *Stream) Next(kind string, limit time.Duration) (object, error) {
	deadline := time.After(limit)
	for {
		select {
		case fields := <-s.down:
			if body, ok := fields[kind].(object); ok {
				return body, nil
			}
		case err := <-s.end:
			s.end <- err
			return nil, fmt.Errorf("no %s: the stream ended: %w", kind, err)
		case <-deadline:
			return nil, fmt.Errorf("no %s within %v", kind, limit)
		}
	}
}

// Ends waits for the stream's end and wants this status.
func (s *Stream) Ends(code codes.Code, limit time.Duration) error {
	select {
	case err := <-s.end:
		s.end <- err
		if status.Code(err) != code {
			return fmt.Errorf("it ended with %v, not %v", err, code)
		}
		return nil
	case <-time.After(limit):
		return fmt.Errorf("it did not end within %v", limit)
	}
}

// Open says Hello and waits for Welcome and the first Spec.
func (m *Machine) Open(r *Replica, lastSequence int) (*Stream, error) {
	s, err := m.Connect(r, true)
	if err != nil {
		return nil, err
	}
	hello := fmt.Sprintf(`{"hello":{"bootId":"b","version":"0.1.0","hostname":"gpu-1","capabilities":["kubernetes-binding","assignment-limits"],"lastSequence":"%d"}}`, lastSequence)
	if err := s.Send(hello); err != nil {
		return s, err
	}
	if _, err := s.Next("welcome", soon); err != nil {
		return s, err
	}
	_, err = s.Next("spec", soon)
	return s, err
}

// Report sends a report and waits for its Ack.
func (s *Stream) Report(sequence, generation int, body string) error {
	if err := s.Send(fmt.Sprintf(`{"report":{"sequence":"%d","specGeneration":"%d",%s}}`, sequence, generation, body)); err != nil {
		return err
	}
	ack, err := s.Next("ack", soon)
	if err != nil {
		return err
	}
	if ack["sequence"] != fmt.Sprint(sequence) {
		return fmt.Errorf("acknowledged %v, not %d", ack["sequence"], sequence)
	}
	return nil
}

// Inventory is a machine with `gpus` whole GPUs.
func Inventory(gpus int) string {
	type list = []object
	g, a := list{}, list{}
	for i := 0; i < gpus; i++ {
		uuid := fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		g = append(g, object{"uuid": uuid, "model": "H100", "memoryBytes": "85899345920", "pci": fmt.Sprintf("0000:%02x:00.0", i+1), "numa": 0,
			"health": object{"healthy": true}})
		a = append(a, object{"atom": "gpu/" + uuid, "class": "gpu", "gpu": uuid, "leafLo": 0, "leafHi": 1024, "visibleDevice": "GPU-" + uuid,
			"numa": 0, "health": object{"healthy": true}, "memoryBytes": "85899345920"})
	}
	text, err := json.Marshal(object{"hostname": "gpu-1", "osKubernetesNodeName": "gpu-1", "kernel": "6.1", "vcpus": 64, "memoryBytes": "549755813888",
		"gpuApi": "device-plugin", "gpus": g, "atoms": a})
	if err != nil {
		panic(err)
	}
	return `"inventory":` + string(text)
}

// Ready opens a stream and reports what makes the node one that is placed on; two reports.
func (m *Machine) Ready(r *Replica, gpus int) (*Stream, error) {
	s, err := m.Open(r, 0)
	if err != nil {
		return s, err
	}
	if err := s.Report(1, 0, Inventory(gpus)); err != nil {
		return s, err
	}
	if err := s.Report(2, 0, `"conditions":{}`); err != nil {
		return s, err
	}
	return s, within(soon, func() error {
		node, err := r.Call("GET", "/v1/nodes/"+m.ID, nil)
		if err == nil && node["state"] != "ready" {
			err = fmt.Errorf("the node is %v", node["state"])
		}
		return err
	})
}
