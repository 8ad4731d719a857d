package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

var interopCases = []string{
	"empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
	"timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response",
	"status_code_and_message", "special_status_message", "custom_metadata", "unimplemented_method",
	"unimplemented_service",
}

const caseLimit = 30 * time.Second

// interopServer: grpc-go's interop client against our server, over each transport.
func interopServer(b *bench) {
	f := makeFiles(b)
	socket := b.path("interop.sock")
	transports := []struct {
		name, listen string
		arguments    []string
		client       func(address string) []string
	}{
		{"unix", "unix:" + socket, nil, func(string) []string {
			return []string{"-server_host=unix://" + socket, "-server_port=0"}
		}},
		{"tcp", "127.0.0.1:0", nil, func(address string) []string {
			return []string{"-server_host=" + address, "-server_port=0"}
		}},
		{"tls", "127.0.0.1:0", []string{"--cert", f.serverCert, "--key", f.serverKey, "--ca", f.ca},
			func(address string) []string {
				return []string{"-server_host=" + address, "-server_port=0", "-use_tls", "-use_test_ca",
					"-ca_file=" + f.ca, "-server_host_override=" + serverName}
			}},
	}
	for _, t := range transports {
		s, err := startServer(t.listen, t.arguments...)
		if err != nil {
			b.check("server/"+t.name+"/start", func() error { return err })
			continue
		}
		for _, name := range interopCases {
			b.check("server/"+t.name+"/"+name, func() error {
				_, err := command(caseLimit, *client, append(t.client(s.address), "-test_case="+name)...)
				return err
			})
		}
		b.check("server/"+t.name+"/clean_end", s.stop)
	}
}

// interopClient: our interop client against grpc-go's interop server, over each transport.
func interopClient(b *bench) {
	f := makeFiles(b)
	socket := b.path("interop-go.sock")
	mutual := credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{f.pair}, ClientCAs: f.pool, ClientAuth: tls.RequireAndVerifyClientCert})
	transports := []struct {
		name, network, address string
		options                []grpc.ServerOption
		arguments              []string
	}{
		{"unix", "unix", socket, nil, nil},
		{"tcp", "tcp", "127.0.0.1:0", nil, nil},
		{"mtls", "tcp", "127.0.0.1:0", []grpc.ServerOption{grpc.Creds(mutual)},
			[]string{"--ca", f.ca, "--name", serverName, "--cert", f.clientCert, "--key", f.clientKey}},
	}
	for _, t := range transports {
		listener, err := net.Listen(t.network, t.address)
		if err != nil {
			b.check("client/"+t.name+"/start", func() error { return err })
			continue
		}
		s := grpc.NewServer(t.options...)
		testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
		go s.Serve(listener)
		address := listener.Addr().String()
		if t.network == "unix" {
			address = "unix:" + address
		}
		for _, name := range interopCases {
			b.check("client/"+t.name+"/"+name, func() error {
				_, err := command(caseLimit, ours("interop_client"), append([]string{address, name}, t.arguments...)...)
				return err
			})
		}
		if t.name == "mtls" {
			b.check("client/mtls/no_certificate_is_refused", func() error {
				said, err := command(caseLimit, ours("interop_client"), append([]string{address, "empty_unary"}, t.arguments[:4]...)...)
				if err == nil || !strings.Contains(said, "the server refused our certificate") {
					return fmt.Errorf("it said: %s", said)
				}
				return nil
			})
		}
		s.Stop()
	}
}
