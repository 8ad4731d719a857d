package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var frozenCases = []Case{
	{"a database that says nothing holds nobody", "proves: ADM-10 ADM-7", frozenDatabase},
}

// serverProcesses are the database server and who works there for this world.
func (w *World) serverProcesses() ([]int, error) {
	text, err := w.env.postgres.SQL(w.database,
		"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "+
			"UNION ALL SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, line := range strings.Fields(text) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func signalAll(pids []int, signal syscall.Signal) error {
	var failed error
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != syscall.ESRCH { // one that tidied up has ended meanwhile
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// said is what an unavailable API answers, and after how long.
func said(r *Replica, method, path, body string) (time.Duration, string, error) {
	request, err := http.NewRequest(method, r.API+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Close = true
	request.Header.Set("Authorization", "Bearer "+r.Key)
	request.Header.Set("Content-Type", "application/json")
	start := time.Now()
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "UNAVAILABLE")) {
		err = fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	return time.Since(start), string(text), err
}

func wantSoon(r *Replica, limit time.Duration, method, path, body string) error {
	took, text, err := said(r, method, path, body)
	if err == nil && (took > limit || !strings.Contains(text, "database")) {
		err = fmt.Errorf("%s %s was answered after %v: %s", method, path, took, text)
	}
	return err
}

// frozenDatabase stops the server's processes: connections are there, and nobody answers on them.
func frozenDatabase(w *World) error {
	const callers = 12 // more than there are workers
	body := fmt.Sprintf(`{"tenantId":"%s","poolId":"%s","duration":"1h","binding":"kubernetes","devices":[{"class":"gpu","count":1}]}`, w.Tenant, w.Pool)
	pids, err := w.serverProcesses()
	if err != nil {
		return err
	}
	defer signalAll(pids, syscall.SIGCONT)
	if err := signalAll(pids, syscall.SIGSTOP); err != nil {
		return err
	}
	answers := make(chan error, callers) // each call has 10 s, readyz 1.5 s
	for range callers {
		go func() { answers <- wantSoon(w.A, 15*time.Second, "POST", "/v1/reservations", body) }()
	}
	for range 3 { // at first there are workers, then all of them wait
		if err := wantSoon(w.A, 5*time.Second, "GET", "/readyz", ""); err != nil {
			return err
		}
	}
	for range callers {
		if err := <-answers; err != nil {
			return err
		}
	}
	if err := signalAll(pids, syscall.SIGCONT); err != nil {
		return err
	}
	if err := within(soon, func() error {
		_, err := w.A.Call("GET", "/v1/pools/"+w.Pool, nil)
		return err
	}); err != nil {
		return err
	}
	// Who was told to try again didn't book all the same.
	list, err := w.A.Call("GET", "/v1/reservations", nil)
	if err == nil && len(list["items"].([]any)) != 0 {
		err = fmt.Errorf("%d of %d were booked after all", len(list["items"].([]any)), callers)
	}
	return err
}
