package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var cases = []Case{
	{"join is read by other implementations", "proves: JOIN-38 JOIN-5 JOIN-40", joinsAndRejoins},
	{"eight nodes race for five uses over two replicas", "proves: JOIN-35 JOIN-4", raceForUses},
	{"two hundred nodes join at once with two hundred uses", "proves: JOIN-4 JOIN-35", fleetOf(200)},
	{"of two hundred nodes one is too many for 199 uses", "proves: JOIN-4 JOIN-35", fleetOf(199)},
	{"twenty races for the last use", "proves: JOIN-4", raceForLastUse},
	{"one machine joins at both replicas at once", "proves: JOIN-5 JOIN-40", sameMachineTwice},
	{"each refusal says why", "proves: JOIN-4 JOIN-36", refusals},
	{"a token is nowhere but with who has it", "proves: JOIN-13 JOIN-36", tokenIsSecret},
	{"bad envelopes are refused", "bad input", badEnvelopes},
	{"a Spec reaches the node on the other replica", "outbox", specCrossesReplicas},
	{"a booking's life over two replicas", "proves: GW-17", bookingsLife},
	{"the newest Hello wins, also across replicas", "proves: GW-27", newestHelloWins},
	{"a report that is sent again has its effect once", "proves: GW-17", reportTwice},
	{"what was acknowledged survives kill -9 of the replica", "ack after commit", ackedSurvives},
	{"kill -9 of one replica: the other goes on", "proves: ADM-7", replicaKilled},
	{"the lead is handed over at once, and no call fails meanwhile", "proves: ADM-7", leadHandedOver},
	{"a rolling restart: streams end with UNAVAILABLE", "drain", rollingRestart},
	{"who may open a stream", "proves: GW-25", whoMayConnect},
	{"streams out of order or unreadable end", "bad input", badMessages},
	{"silence ends a stream and the node is unreachable", "proves: GW-27", silence},
}

func refused(err error, code codes.Code, text string) error {
	if err == nil {
		return errors.New("it was not refused")
	}
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("refused with %v, not %v '%s'", err, code, text)
	}
	return nil
}

func (w *World) uses(id string) (float64, error) {
	record, err := w.B.Call("GET", "/v1/join-tokens/"+id, nil)
	if err != nil {
		return 0, err
	}
	return record["uses"].(float64), nil
}

func joinsAndRejoins(w *World) error {
	token, id, err := w.Token(2)
	if err != nil {
		return err
	}
	m := NewMachine(w)
	if err := m.Join(w.A, token); err != nil {
		return err
	}
	if m.Rejoined || m.Trust != "tenant-owned" {
		return fmt.Errorf("rejoined %v, trust %s", m.Rejoined, m.Trust)
	}
	first := m.ID
	if err := m.Join(w.B, token); err != nil {
		return err
	}
	if !m.Rejoined || m.ID != first {
		return fmt.Errorf("rejoined %v as %s, was %s", m.Rejoined, m.ID, first)
	}
	if uses, err := w.uses(id); err != nil || uses != 1 {
		return fmt.Errorf("uses %v %v", uses, err)
	}
	node, err := w.A.Call("GET", "/v1/nodes/"+first, nil)
	if err == nil && node["state"] == "ready" {
		err = errors.New("ready before it ever reported")
	}
	return err
}

// race lets the machines join at once, half of them at each replica; their outcomes.
func race(w *World, machines []*Machine, token string) []error {
	outcomes := make([]error, len(machines))
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i, m := range machines {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ready.Done()
			<-start
			outcomes[i] = m.Join([]*Replica{w.A, w.B}[i%2], token)
		}()
	}
	ready.Wait()
	close(start)
	done.Wait()
	return outcomes
}

func raceOnce(w *World, contenders, uses int) error {
	token, id, err := w.Token(uses)
	if err != nil {
		return err
	}
	var machines []*Machine
	for range contenders {
		machines = append(machines, NewMachine(w))
	}
	joined, ids := 0, map[string]bool{}
	for i, err := range race(w, machines, token) {
		if err == nil {
			joined++
			ids[machines[i].ID] = true
		} else if err := refused(err, codes.Unauthenticated, "used up"); err != nil {
			return err
		}
	}
	if joined != uses || len(ids) != uses {
		return fmt.Errorf("%d joined as %d nodes, %d uses", joined, len(ids), uses)
	}
	if spent, err := w.uses(id); err != nil || int(spent) != uses {
		return fmt.Errorf("uses %v %v", spent, err)
	}
	return nil
}

// fleetOf lets 200 machines join at once, with a token of so many uses. One whose answer doesn't come in
// time asks again at the other replica, as a pod's init container does: that is no second use.
func fleetOf(uses int) func(*World) error {
	return func(w *World) error {
		const machines = 200
		token, id, err := w.Token(uses)
		if err != nil {
			return err
		}
		var all []*Machine
		for range machines {
			all = append(all, NewMachine(w))
		}
		began := time.Now()
		joined, ids := map[*ecdsa.PrivateKey]bool{}, map[string]bool{}
		for i, err := range race(w, all, token) {
			for tries := 0; isLate(err) && tries < 10; tries++ {
				err = all[i].Join([]*Replica{w.B, w.A}[(i+tries)%2], token)
			}
			if err == nil {
				joined[all[i].key] = true
				ids[all[i].ID] = true
			} else if err := refused(err, codes.Unauthenticated, "used up"); err != nil {
				return err
			}
		}
		fmt.Printf("     %d of %d joined in %.1f s\n", len(joined), machines, time.Since(began).Seconds())
		if len(joined) != uses || len(ids) != uses {
			return fmt.Errorf("%d machines joined as %d nodes, %d uses", len(joined), len(ids), uses)
		}
		if spent, err := w.uses(id); err != nil || int(spent) != uses {
			return fmt.Errorf("uses %v %v", spent, err)
		}
		nodes, err := w.env.postgres.SQL(w.database, "SELECT count(*) FROM nodes")
		if err == nil && nodes != strconv.Itoa(uses) {
			err = fmt.Errorf("the database has %s nodes", nodes)
		}
		return err
	}
}

func isLate(err error) bool {
	return status.Code(err) == codes.DeadlineExceeded || status.Code(err) == codes.Unavailable
}

func raceForUses(w *World) error { return raceOnce(w, 8, 5) }

func raceForLastUse(w *World) error {
	for i := range 20 {
		if err := raceOnce(w, 2, 1); err != nil {
			return fmt.Errorf("race %d: %w", i, err)
		}
	}
	return nil
}

func sameMachineTwice(w *World) error {
	for range 10 {
		token, id, err := w.Token(1)
		if err != nil {
			return err
		}
		one := NewMachine(w)
		two := &Machine{world: w, key: one.key}
		for _, err := range race(w, []*Machine{one, two}, token) {
			if err != nil {
				return err
			}
		}
		if one.ID != two.ID {
			return fmt.Errorf("one machine became %s and %s", one.ID, two.ID)
		}
		if uses, err := w.uses(id); err != nil || uses != 1 {
			return fmt.Errorf("uses %v %v", uses, err)
		}
	}
	return nil
}

func refusals(w *World) error {
	token, id, err := w.Token(5)
	if err != nil {
		return err
	}
	wrong := []string{"", "x", token[:len(token)-1], token + "A", token + "\n", strings.ToUpper(token), strings.Repeat("a", 4000),
		token[:len(token)-4] + "AAAA"}
	for _, one := range wrong {
		if err := refused(NewMachine(w).Join(w.A, one), codes.Unauthenticated, "unknown"); err != nil {
			return fmt.Errorf("'%.60s': %w", one, err)
		}
	}
	if _, err := w.env.postgres.SQL(w.database, "UPDATE join_tokens SET expires_ms = expires_ms - 3600001 WHERE id = '"+id+"'"); err != nil {
		return err
	}
	if err := refused(NewMachine(w).Join(w.B, token), codes.Unauthenticated, "expired"); err != nil {
		return err
	}
	token, id, err = w.Token(1)
	if err != nil {
		return err
	}
	if err := NewMachine(w).Join(w.B, token); err != nil {
		return err
	}
	if err := refused(NewMachine(w).Join(w.A, token), codes.Unauthenticated, "used up"); err != nil {
		return err
	}
	if _, err := w.B.Call("POST", "/v1/join-tokens/"+id+"/revoke", object{}); err != nil {
		return err
	}
	return refused(NewMachine(w).Join(w.A, token), codes.Unauthenticated, "revoked")
}

func tokenIsSecret(w *World) error {
	token, id, err := w.Token(1)
	if err != nil {
		return err
	}
	secret := token[len(token)-43:]
	NewMachine(w).Join(w.A, token)
	NewMachine(w).Join(w.B, token)
	places := map[string]string{"log of a": w.A.Log(), "log of b": w.B.Log()}
	for _, path := range []string{"/v1/join-tokens", "/v1/join-tokens/" + id, "/v1/events", "/v1/nodes"} {
		answer, err := w.A.Call("GET", path, nil)
		if err != nil {
			return err
		}
		places[path] = fmt.Sprint(answer)
	}
	for _, table := range []string{"join_tokens", "audit", "idempotency", "nodes", "events"} {
		rows, err := w.env.postgres.SQL(w.database, "SELECT * FROM "+table)
		if err != nil {
			return err
		}
		places["table "+table] = rows
	}
	for place, text := range places {
		if strings.Contains(text, secret) {
			return fmt.Errorf("the token is in %s", place)
		}
		if strings.Contains(text, strings.TrimPrefix(w.A.Key[len(w.A.Key)-43:], "_")) {
			return fmt.Errorf("the operator's key is in %s", place)
		}
	}
	return nil
}

func badEnvelopes(w *World) error {
	token, id, err := w.Token(1)
	if err != nil {
		return err
	}
	m := NewMachine(w)
	sealed, err := m.seal(token, base64.RawURLEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		return err
	}
	parts := strings.Split(sealed, ".")
	flip := func(i int) string {
		changed := append([]string{}, parts...)
		text := []byte(changed[i])
		text[len(text)/2] ^= 1
		if text[len(text)/2] == '.' || text[len(text)/2] == '`' {
			text[len(text)/2] = 'A'
		}
		changed[i] = string(text)
		return strings.Join(changed, ".")
	}
	bad := []string{"", "a.b.c.d.e", sealed + "A", sealed + ".", strings.Join(parts[:4], "."), strings.Repeat("a.", 10)}
	for i := range parts {
		bad = append(bad, flip(i))
	}
	foreign := *w
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	foreign.Pins.EncryptionJwk = jwkOf(key)
	other, err := (&Machine{world: &foreign, key: m.key}).seal(token, strings.Repeat("A", 43))
	if err != nil {
		return err
	}
	for i, one := range append(bad, other) {
		if _, err := m.JoinEnvelope(w.A, one); status.Code(err) != codes.InvalidArgument {
			return fmt.Errorf("envelope %d: %v", i, err)
		}
	}
	if _, err := m.JoinEnvelope(w.B, strings.Repeat("a", 1<<20)); status.Code(err) != codes.ResourceExhausted {
		return fmt.Errorf("1 MiB: %v", err)
	}
	if uses, err := w.uses(id); err != nil || uses != 0 {
		return fmt.Errorf("uses %v %v", uses, err)
	}
	return m.Join(w.B, token)
}

func jwkOf(key *ecdsa.PrivateKey) json.RawMessage {
	point, err := key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	text, _ := json.Marshal(object{"kty": "EC", "crv": "P-256", "x": base64.RawURLEncoding.EncodeToString(point[1:33]),
		"y": base64.RawURLEncoding.EncodeToString(point[33:])})
	return text
}

// joinReady is a node that is ready, with its stream at a replica.
func (w *World) joinReady(at *Replica, gpus int) (*Machine, *Stream, error) {
	token, _, err := w.Token(1)
	if err != nil {
		return nil, nil, err
	}
	m := NewMachine(w)
	if err := m.Join(at, token); err != nil {
		return nil, nil, err
	}
	s, err := m.Ready(at, gpus)
	return m, s, err
}

func (w *World) reserve(at *Replica, gpus int) (string, error) {
	made, err := at.Call("POST", "/v1/reservations", object{"tenantId": w.Tenant, "poolId": w.Pool, "duration": "1h", "binding": "kubernetes",
		"devices": []object{{"class": "gpu", "count": gpus}}})
	if err != nil {
		return "", err
	}
	return made["id"].(string), nil
}

func wantState(r *Replica, id, state string) error {
	return wantStateWithin(soon, r, id, state)
}

func wantStateWithin(limit time.Duration, r *Replica, id, state string) error {
	return within(limit, func() error {
		found, err := r.Call("GET", "/v1/reservations/"+id, nil)
		if err == nil && found["state"] != state {
			err = fmt.Errorf("%s is %v, not %s: %v", id, found["state"], state, found)
		}
		return err
	})
}

func generationOf(spec object) int {
	var n int
	fmt.Sscan(fmt.Sprint(spec["generation"]), &n)
	return n
}

// assigned waits for a Spec with so many assignments.
func assigned(s *Stream, count int) (object, error) {
	for {
		spec, err := s.Next("spec", soon)
		if err != nil || len(spec["assignments"].([]any)) == count {
			return spec, err
		}
	}
}

func specCrossesReplicas(w *World) error {
	_, s, err := w.joinReady(w.A, 8)
	if err != nil {
		return err
	}
	defer s.Close()
	var slowest time.Duration
	for i := range 3 {
		start := time.Now()
		if _, err := w.reserve(w.B, 2); err != nil {
			return err
		}
		spec, err := assigned(s, i+1)
		if err != nil {
			return err
		}
		slowest = max(slowest, time.Since(start))
		for _, one := range spec["assignments"].([]any) {
			if devices := one.(object)["devices"].([]any); len(devices) != 2 {
				return fmt.Errorf("%d devices", len(devices))
			}
		}
	}
	if slowest > 4*time.Second { // it is looked for each second, and all is looked at each 5 s
		return fmt.Errorf("a Spec took %v to the other replica", slowest)
	}
	return nil
}

func bookingsLife(w *World) error {
	_, s, err := w.joinReady(w.A, 4)
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := w.reserve(w.B, 2)
	if err != nil {
		return err
	}
	spec, err := assigned(s, 1)
	if err != nil {
		return err
	}
	assignment := spec["assignments"].([]any)[0].(object)
	allocation := assignment["allocation"].(string)
	var atoms []string
	for _, device := range assignment["devices"].([]any) {
		atoms = append(atoms, device.(object)["atom"].(string))
	}
	text, _ := json.Marshal(atoms)
	if err := s.Report(3, generationOf(spec), fmt.Sprintf(`"bound":{"allocation":"%s","atoms":%s}`, allocation, text)); err != nil {
		return err
	}
	if err := wantState(w.B, id, "active"); err != nil {
		return err
	}
	if _, err := w.B.Call("POST", "/v1/reservations/"+id+"/release", object{}); err != nil {
		return err
	}
	if spec, err = assigned(s, 0); err != nil {
		return err
	}
	if _, err := w.reserve(w.B, 4); err != nil {
		return err
	}
	held, err := w.B.Call("GET", "/v1/reservations/"+id, nil)
	if err != nil || held["state"] != "released" || !strings.Contains(fmt.Sprint(held["conditions"]), "DevicesHeld") {
		return fmt.Errorf("released but held: %v %v", held, err)
	}
	if err := s.Report(4, generationOf(spec), fmt.Sprintf(`"released":{"allocation":"%s"}`, allocation)); err != nil {
		return err
	}
	if _, err := assigned(s, 1); err != nil { // the four that waited
		return err
	}
	freed, err := w.B.Call("GET", "/v1/reservations/"+id, nil)
	if err != nil || strings.Contains(fmt.Sprint(freed["conditions"]), "DevicesHeld") {
		return fmt.Errorf("released and free: %v %v", freed, err)
	}
	return nil
}

func newestHelloWins(w *World) error {
	m, old, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	defer old.Close()
	fresh, err := m.Open(w.B, 2)
	if err != nil {
		return err
	}
	defer fresh.Close()
	// What the old one says has no effect; it is closed at the latest when it speaks.
	old.Send(`{"heartbeat":{}}`)
	if err := old.Ends(codes.Aborted, soon); err != nil {
		return err
	}
	if err := fresh.Report(3, 0, `"conditions":{}`); err != nil {
		return err
	}
	// And back, without a word from the older one: the Spec that is due tells.
	again, err := m.Open(w.A, 3)
	if err != nil {
		return err
	}
	defer again.Close()
	if _, err := w.reserve(w.B, 1); err != nil {
		return err
	}
	if _, err := assigned(again, 1); err != nil {
		return err
	}
	if err := fresh.Ends(codes.Aborted, soon); err != nil {
		return err
	}
	node, err := w.B.Call("GET", "/v1/nodes/"+m.ID, nil)
	if err == nil && node["connected"] != true {
		err = fmt.Errorf("the older stream's end disconnected the node: %v", node)
	}
	return err
}

func reportTwice(w *World) error {
	m, s, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	count := func() (int, error) {
		answer, err := w.B.Call("GET", "/v1/events?limit=1000", nil)
		return strings.Count(fmt.Sprint(answer), "node.condition.changed"), err
	}
	stuck := `"conditions":{"conditions":[{"type":"KubernetesReleaseStuck","reason":"PodsHoldDevices","message":"m","sinceMs":"1"}]}`
	if err := s.Report(3, 0, stuck); err != nil {
		return err
	}
	once, err := count()
	if err != nil {
		return err
	}
	s.Close()
	if s, err = m.Open(w.B, 3); err != nil { // it never heard the Ack
		return err
	}
	defer s.Close()
	if err := s.Report(3, 0, stuck); err != nil {
		return err
	}
	if twice, err := count(); err != nil || once == 0 || twice != once {
		return fmt.Errorf("%d events, then %d %v", once, twice, err)
	}
	return nil
}

func ackedSurvives(w *World) error {
	m, s, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range 5 {
		message := fmt.Sprintf("round %d", i)
		report := fmt.Sprintf(`"conditions":{"conditions":[{"type":"KubernetesReleaseStuck","reason":"PodsHoldDevices","message":"%s","sinceMs":"1"}]}`, message)
		if err := s.Report(3+i, 0, report); err != nil {
			return err
		}
		w.A.Stop(syscall.SIGKILL)
		node, err := w.B.Call("GET", "/v1/nodes/"+m.ID, nil)
		if err != nil || !strings.Contains(fmt.Sprint(node["conditions"]), message) {
			return fmt.Errorf("'%s' was acknowledged and is lost: %v %v", message, node["conditions"], err)
		}
		if err := w.A.Start(); err != nil {
			return err
		}
		s.Close()
		if s, err = m.Open(w.A, 3+i); err != nil {
			return err
		}
	}
	return nil
}

func replicaKilled(w *World) error {
	m, s, err := w.joinReady(w.A, 2)
	if err != nil {
		return err
	}
	defer s.Close()
	first, err := w.reserve(w.A, 2)
	if err != nil {
		return err
	}
	spec, err := assigned(s, 1)
	if err != nil {
		return err
	}
	w.A.Stop(syscall.SIGKILL)
	again, err := m.Connect(w.B, true)
	if err != nil {
		return err
	}
	defer again.Close()
	again.Send(`{"hello":{"bootId":"b","version":"0.1.0","capabilities":["kubernetes-binding","assignment-limits"],"lastSequence":"2"}}`)
	kept, err := again.Next("spec", soon)
	if err != nil || fmt.Sprint(kept["assignments"]) != fmt.Sprint(spec["assignments"]) {
		return fmt.Errorf("the Spec changed: %v, was %v, %v", kept, spec, err)
	}
	// Leader work goes on: what waits is placed once there is room.
	waiting, err := w.reserve(w.B, 2)
	if err != nil {
		return err
	}
	if err := wantState(w.B, waiting, "pending"); err != nil {
		return err
	}
	if _, err := w.B.Call("POST", "/v1/reservations/"+first+"/release", object{}); err != nil {
		return err
	}
	none, err := assigned(again, 0)
	if err != nil {
		return err
	}
	allocation := spec["assignments"].([]any)[0].(object)["allocation"]
	if err := again.Report(3, generationOf(none), fmt.Sprintf(`"released":{"allocation":"%s"}`, allocation)); err != nil {
		return err
	}
	// The dead replica's lease has to run out first.
	return wantStateWithin(5*time.Second, w.B, waiting, "placed")
}

// leader is who has the lead now, "" for nobody.
func (w *World) leader() (string, error) {
	return w.env.postgres.SQL(w.database, "SELECT holder FROM leases WHERE until_ms > extract(epoch FROM now()) * 1000")
}

// leadHandedOver restarts one replica after the other, as an upgrade would.
func leadHandedOver(w *World) error {
	for _, pair := range [][2]*Replica{{w.A, w.B}, {w.B, w.A}} {
		going, staying := pair[0], pair[1]
		var before string
		if err := within(soon, func() (err error) {
			if before, err = w.leader(); err == nil && before == "" {
				err = errors.New("nobody leads")
			}
			return err
		}); err != nil {
			return err
		}
		stop := make(chan struct{})
		called := make(chan error, 1)
		go func() { called <- callAll(*going, *staying, stop) }()
		if err := going.Stop(syscall.SIGTERM); err != nil {
			return err
		}
		if err := within(2*time.Second, func() error {
			now, err := w.leader()
			if err == nil && (now == "" || now == before) {
				err = fmt.Errorf("'%s' leads, before it was '%s'", now, before)
			}
			return err
		}); err != nil {
			return err
		}
		if err := going.Start(); err != nil {
			return err
		}
		close(stop)
		if err := <-called; err != nil {
			return err
		}
	}
	return nil
}

// callAll makes calls as a load balancer would: the next replica is asked when one takes no connection.
func callAll(first, second Replica, stop chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			if i < 10 {
				return fmt.Errorf("only %d calls were made", i)
			}
			return nil
		default:
		}
		_, err := first.Call("GET", "/v1/pools", nil)
		if errors.Is(err, syscall.ECONNREFUSED) {
			_, err = second.Call("GET", "/v1/pools", nil)
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
}

func rollingRestart(w *World) error {
	m, s, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := w.A.Stop(syscall.SIGTERM); err != nil {
		return fmt.Errorf("exit status: %w\n%s", err, w.A.Log())
	}
	if err := s.Ends(codes.Unavailable, soon); err != nil {
		return err
	}
	node, err := w.B.Call("GET", "/v1/nodes/"+m.ID, nil)
	if err != nil || node["connected"] != false {
		return fmt.Errorf("told nobody that its stream is gone: %v %v", node["connected"], err)
	}
	if err := w.A.Start(); err != nil {
		return err
	}
	again, err := m.Open(w.A, 2)
	if err == nil {
		again.Close()
	}
	return err
}

func whoMayConnect(w *World) error {
	m, s, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	s.Close()
	bare, err := m.Connect(w.A, false)
	if err != nil {
		return err
	}
	defer bare.Close()
	if err := bare.Ends(codes.Unauthenticated, soon); err != nil {
		return fmt.Errorf("no certificate: %w", err)
	}
	// One that says the same but is signed by itself ends in the handshake.
	forged := &Machine{world: w, key: m.key, certificate: selfSigned(m)}
	f, err := forged.Connect(w.A, true)
	if err == nil {
		defer f.Close()
		err = f.Ends(codes.Unavailable, soon)
	} else if status.Code(err) == codes.Unavailable {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("self-signed: %w", err)
	}
	if _, err := w.B.Call("POST", "/v1/nodes/"+m.ID+"/retire", object{}); err != nil {
		return err
	}
	retired, err := m.Open(w.A, 2)
	if retired != nil {
		defer retired.Close()
		return retired.Ends(codes.PermissionDenied, soon)
	}
	return refused(err, codes.PermissionDenied, "")
}

func selfSigned(m *Machine) tls.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: m.ID}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &m.key.PublicKey, m.key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: m.key}
}

func badMessages(w *World) error {
	m, s, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	defer s.Close()
	table := []struct {
		what  string
		hello bool
		text  string
		code  codes.Code
	}{
		{"a report before Hello", false, `{"report":{"sequence":"1","kubernetesReleased":{}}}`, codes.InvalidArgument},
		{"nothing at all before Hello", false, `{}`, codes.InvalidArgument},
		{"a second Hello", true, `{"hello":{}}`, codes.InvalidArgument},
		{"more bytes than a message may have", true, `{"hello":{"hostname":"` + strings.Repeat("x", 5<<20) + `"}}`, codes.ResourceExhausted},
	}
	for _, one := range table {
		var bad *Stream
		if one.hello {
			bad, err = m.Open(w.B, 2)
		} else {
			bad, err = m.Connect(w.B, true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.what, err)
		}
		bad.Send(one.text)
		err = bad.Ends(one.code, soon)
		bad.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", one.what, err)
		}
	}
	// A report that makes no sense is acknowledged without effect: nothing may be stuck behind it.
	again, err := m.Open(w.B, 2)
	if err != nil {
		return err
	}
	defer again.Close()
	many := strings.TrimSuffix(strings.Repeat(`{"type":"A","reason":"B"},`, 1000), ",")
	senseless := []string{`"conditions":{"conditions":[` + many + `]}`, `"bound":{"allocation":"alc_none","atoms":["x"]}`, `"released":{}`,
		`"failed":{"allocation":"` + strings.Repeat("y", 100000) + `"}`, `"operationResult":{}`, Inventory(300)}
	for i, one := range senseless {
		if err := again.Report(3+i, 0, one); err != nil {
			return fmt.Errorf("%.60s: %w", one, err)
		}
	}
	node, err := w.A.Call("GET", "/v1/nodes/"+m.ID, nil)
	if err != nil {
		return err
	}
	if shown := fmt.Sprint(node["conditions"]); len(node["gpus"].([]any)) != 1 || !strings.Contains(shown, "InventoryRefused") ||
		strings.Contains(shown, "type:A") {
		return fmt.Errorf("%v GPUs, conditions %s", node["gpus"], shown)
	}
	return nil
}

func silence(w *World) error {
	m, s, err := w.joinReady(w.A, 1)
	if err != nil {
		return err
	}
	defer s.Close()
	start := time.Now()
	for range 2 { // heartbeats keep it
		time.Sleep(10 * time.Second)
		if err := s.Send(`{"heartbeat":{}}`); err != nil {
			return err
		}
	}
	if err := s.Ends(codes.DeadlineExceeded, 40*time.Second); err != nil {
		return err
	}
	if took := time.Since(start); took < 49*time.Second || took > 55*time.Second {
		return fmt.Errorf("it ended after %v", took)
	}
	return within(soon, func() error {
		node, err := w.B.Call("GET", "/v1/nodes/"+m.ID, nil)
		if err == nil && node["connected"] != false {
			err = fmt.Errorf("it is still connected")
		}
		return err
	})
}
