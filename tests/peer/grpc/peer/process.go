package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is one running interop_server of ours.
type server struct {
	command *exec.Cmd
	address string // as it said: a path, or host:port
	errors  bytes.Buffer
}

func startServer(address string, arguments ...string) (*server, error) {
	s := &server{command: exec.Command(ours("interop_server"), append([]string{address}, arguments...)...)}
	s.command.Stderr = &s.errors
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.command.Wait()
		return nil, fmt.Errorf("interop_server: %v: %s", err, s.errors.String())
	}
	s.address = strings.TrimSpace(strings.TrimPrefix(line, "listening "))
	return s, nil
}

func (s *server) term() { s.command.Process.Signal(syscall.SIGTERM) }

// wait wants the server to end by itself and cleanly: with a sanitizer its report fails the case.
func (s *server) wait(limit time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- s.command.Wait() }()
	select {
	case err := <-done:
		if err != nil || s.errors.Len() > 0 {
			return fmt.Errorf("server: %v: %s", err, s.errors.String())
		}
		return nil
	case <-time.After(limit):
		s.command.Process.Kill()
		<-done
		return fmt.Errorf("the server is still running %v after SIGTERM", limit)
	}
}

func (s *server) stop() error {
	s.term()
	return s.wait(10 * time.Second)
}

// kibibytes of resident memory.
func (s *server) resident() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			size, _ := strconv.Atoi(strings.Fields(rest)[0])
			return size
		}
	}
	return 0
}

// command runs a program to its end and gives what it wrote to stderr.
func command(limit time.Duration, name string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, name, arguments...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	if ctx.Err() != nil {
		err = errors.New("took too long")
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return stderr.String(), err
}
