package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	tp "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// What the server may hold while peers misuse it; far above what it needs, far below what they send.
const residentLimit = 64 << 10 // KiB; a sanitizer's own share is in it

type conf struct {
	*bench
	server *server
	socket string
	client tp.TestServiceClient
	ctx    context.Context
}

func dialGo(target string, options ...grpc.DialOption) (tp.TestServiceClient, error) {
	connection, err := grpc.NewClient(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	return tp.NewTestServiceClient(connection), nil
}

func payload(size int) *tp.Payload { return &tp.Payload{Body: make([]byte, size)} }

func wantCode(err error, code codes.Code) error {
	if status.Code(err) != code {
		return fmt.Errorf("%v, not %v", err, code)
	}
	return nil
}

// raw is a case of frames on a connection of its own.
func (c *conf) raw(name string, do func(r *raw) uint32, texts ...string) {
	c.check("conformance/"+name, func() error { return want(c.socket, do, texts...) })
}

func (c *conf) call(name string, run func() error) { c.check("conformance/"+name, run) }

func conformance(b *bench) {
	socket := b.path("conformance.sock")
	s, err := startServer("unix:" + socket)
	if err != nil {
		b.check("conformance/start", func() error { return err })
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := &conf{bench: b, server: s, socket: socket, ctx: ctx, client: must(dialGo("unix://" + socket))}
	c.authorities()
	c.messages()
	c.metadata()
	c.flowControl()
	c.frames()
	c.abuse()
	c.alive()
	c.drain()
}

// The kubelet's client has named unix sockets in all these ways over the years.
func (c *conf) authorities() {
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	})
	for _, t := range []struct {
		name, target string
		options      []grpc.DialOption
	}{
		{"unix_url", "unix://" + c.socket, nil},
		{"unix_path", "unix:" + c.socket, nil},
		{"escaped_path", "passthrough:///" + c.socket, []grpc.DialOption{dialer}},
		{"with_authority", "passthrough:///" + c.socket, []grpc.DialOption{dialer, grpc.WithAuthority("localhost")}},
	} {
		c.call("authority_"+t.name, func() error {
			_, err := must(dialGo(t.target, t.options...)).EmptyCall(c.ctx, &tp.Empty{})
			return err
		})
	}
	// RFC 3986 knows no authority that is a path; nghttp2 holds peers to it.
	for name, t := range map[string]struct{ authority, text string }{
		"localhost":     {"localhost", "grpc-status=0"},
		"percent":       {"%2Fvar%2Flib%2Fkubelet%2Fx.sock", "grpc-status=0"},
		"base_name":     {"x.sock", "grpc-status=0"},
		"absolute_path": {"/var/lib/kubelet/x.sock", "rst=PROTOCOL_ERROR"},
		"empty":         {"", "rst=PROTOCOL_ERROR"},
		"with_space":    {"a b", "rst=PROTOCOL_ERROR"},
	} {
		c.raw("raw_authority_"+name, func(r *raw) uint32 {
			id := r.send(false, r.encode(request(service+"EmptyCall", t.authority)...))
			r.frames.WriteData(id, true, message(0, nil))
			return id
		}, t.text)
	}
}

func (c *conf) messages() {
	c.call("gzip_request", func() error {
		_, err := c.client.UnaryCall(c.ctx, &tp.SimpleRequest{ResponseSize: 10, Payload: payload(100)}, grpc.UseCompressor("gzip"))
		return wantCode(err, codes.Unimplemented)
	})
	c.call("request_too_large", func() error {
		_, err := c.client.UnaryCall(c.ctx, &tp.SimpleRequest{Payload: payload(5 << 20)})
		return wantCode(err, codes.ResourceExhausted)
	})
	c.call("four_megabytes_each_way", func() error {
		r, err := c.client.UnaryCall(c.ctx, &tp.SimpleRequest{ResponseSize: 4000000, Payload: payload(4000000)})
		if err == nil && len(r.GetPayload().GetBody()) != 4000000 {
			err = errors.New("short")
		}
		return err
	})
	c.call("percent_encoded_message", func() error {
		text := "\t%\u2603 ünï\n"
		_, err := c.client.UnaryCall(c.ctx, &tp.SimpleRequest{ResponseStatus: &tp.EchoStatus{Code: 5, Message: text}})
		if status.Convert(err).Message() != text {
			return err
		}
		return wantCode(err, codes.NotFound)
	})
	unary, five := service+"UnaryCall", message(0, []byte{0x10, 0x05})
	c.raw("one_byte_a_frame_padded", func(r *raw) uint32 {
		id := r.open(unary, false)
		for i := range five {
			r.frames.WriteDataPadded(id, i == len(five)-1, five[i:i+1], make([]byte, i))
		}
		return id
	}, "grpc-status=0")
	c.raw("end_in_empty_data", func(r *raw) uint32 {
		id := r.open(unary, false)
		r.frames.WriteData(id, false, five)
		r.frames.WriteData(id, true, nil)
		return id
	}, "grpc-status=0")
	c.raw("end_in_trailers", func(r *raw) uint32 {
		id := r.open(unary, false)
		r.frames.WriteData(id, false, five)
		r.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.encode("x-t", "1"), EndStream: true, EndHeaders: true})
		return id
	}, "grpc-status=0")
	for name, t := range map[string]struct {
		data  []byte
		extra []string
		texts []string
	}{
		"flag_without_encoding": {message(1, []byte{1}), nil, []string{"grpc-status=13"}},
		"flag_with_gzip":        {message(1, []byte{1}), []string{"grpc-encoding", "gzip"}, []string{"grpc-status=12", "grpc-accept-encoding=identity"}},
		"unknown_flag":          {message(2, nil), nil, []string{"grpc-status=13"}},
		"cut_short":             {message(0, []byte{1, 2, 3})[:6], nil, []string{"grpc-status=13"}},
		"cut_in_prefix":         {message(0, nil)[:3], nil, []string{"grpc-status=13"}},
		"two_in_a_unary":        {append(message(0, nil), message(0, nil)...), nil, []string{"grpc-status=13"}},
		"none_in_a_unary":       {nil, nil, []string{"grpc-status=13"}},
		"claims_4_gib":          {[]byte{0, 255, 255, 255, 255}, nil, []string{"grpc-status=8"}},
		"not_protobuf":          {message(0, []byte{0xff, 0xff, 0xff}), nil, []string{"grpc-status=13"}},
		"not_utf8":              {message(0, []byte{0x3a, 3, 0x12, 1, 0xff}), nil, []string{"grpc-status=13", "UTF-8"}},
		"accepts_gzip":          {five, []string{"grpc-accept-encoding", "gzip", "grpc-encoding", "identity"}, []string{"grpc-status=0"}},
	} {
		c.raw(name, func(r *raw) uint32 { return r.call(unary, t.data, t.extra...) }, t.texts...)
	}
}

func (c *conf) metadata() {
	big := func(size int) error {
		_, err := c.client.EmptyCall(metadata.AppendToOutgoingContext(c.ctx, "x-big", strings.Repeat("x", size)), &tp.Empty{})
		return err
	}
	c.call("metadata_of_12_kb", func() error { return big(12000) })
	c.call("metadata_of_40_kb_is_kept_back", func() error {
		if big(40000) == nil {
			return errors.New("taken")
		}
		return nil
	})
	empty := service + "EmptyCall"
	for name, t := range map[string]struct {
		extra []string
		text  string
	}{
		"headers_of_40_kb":    {[]string{"x", strings.Repeat("abc!", 10000)}, "grpc-status=8"},
		"timeout_unit":        {[]string{"grpc-timeout", "12x"}, "grpc-status=13"},
		"timeout_nine_digits": {[]string{"grpc-timeout", "123456789m"}, "grpc-status=13"},
		"timeout_negative":    {[]string{"grpc-timeout", "-1S"}, "grpc-status=13"},
		"binary_not_base64":   {[]string{"x-y-bin", "!!!"}, "grpc-status=13"},
	} {
		c.raw(name, func(r *raw) uint32 { return r.open(empty, false, t.extra...) }, t.text)
	}
	c.raw("deadline_of_the_server", func(r *raw) uint32 { return r.open(service+"FullDuplexCall", false, "grpc-timeout", "100m") }, "grpc-status=4")
	c.raw("method_get", func(r *raw) uint32 {
		return r.send(true, r.encode(":method", "GET", ":scheme", "http", ":path", empty, ":authority", "localhost"))
	}, ":status=405")
	c.raw("other_content_type", func(r *raw) uint32 {
		return r.send(true, r.encode(":method", "POST", ":scheme", "http", ":path", empty, ":authority", "localhost", "content-type", "text/plain"))
	}, ":status=415")
	c.raw("content_type_proto", func(r *raw) uint32 {
		id := r.send(false, r.encode(":method", "POST", ":scheme", "http", ":path", empty, ":authority", "localhost", "content-type", "application/grpc+proto"))
		r.frames.WriteData(id, true, message(0, nil))
		return id
	}, "grpc-status=0")
	c.raw("unknown_method", func(r *raw) uint32 { return r.call("/no.Such/Method", message(0, nil)) }, "grpc-status=12")
}

func (c *conf) flowControl() {
	c.call("1000_calls_at_once", func() error {
		var wait sync.WaitGroup
		failures := make(chan error, 1000)
		for range 1000 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				if _, err := c.client.UnaryCall(c.ctx, &tp.SimpleRequest{ResponseSize: 20000, Payload: payload(20000)}); err != nil {
					failures <- err
				}
			}()
		}
		wait.Wait()
		if len(failures) > 0 {
			return fmt.Errorf("%d failed: %v", len(failures), <-failures)
		}
		return nil
	})
	c.call("stalled_reader", func() error {
		stream, err := c.client.FullDuplexCall(c.ctx)
		if err != nil {
			return err
		}
		go func() {
			for range 300 {
				if stream.Send(&tp.StreamingOutputCallRequest{Payload: payload(100000), ResponseParameters: []*tp.ResponseParameters{{Size: 300000}}}) != nil {
					return
				}
			}
			stream.CloseSend()
		}()
		before := c.server.resident()
		time.Sleep(time.Second)
		grown, total := c.server.resident()-before, 0
		for {
			m, err := stream.Recv()
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			total += len(m.Payload.Body)
		}
		if total != 90000000 || grown > residentLimit {
			return fmt.Errorf("%d bytes; grown by %d KiB while nobody read", total, grown)
		}
		return nil
	})
	c.call("deadline_with_a_shut_window", func() error {
		r, err := dialRaw(c.socket, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if err != nil {
			return err
		}
		defer r.Close()
		id := r.open(service+"FullDuplexCall", false, "grpc-timeout", "200m")
		r.frames.WriteData(id, false, message(0, []byte{0x12, 0x02, 0x08, 0x05}))
		if said := r.result(id, 5*time.Second); !strings.Contains(said, "grpc-status=4") {
			return errors.New(said)
		}
		return nil
	})
}

func (c *conf) frames() {
	empty := message(0, nil)
	c.raw("unknown_frame_and_priority", func(r *raw) uint32 {
		r.frames.WriteRawFrame(0xfa, 0, 0, []byte("anything"))
		r.frames.WritePriority(1, http2.PriorityParam{StreamDep: 3, Weight: 7})
		return r.call(service+"EmptyCall", empty)
	}, "grpc-status=0")
	c.raw("settings_and_table_size_changes", func(r *raw) uint32 {
		for _, size := range []uint32{0, 4096, 128} {
			r.frames.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: size})
			r.fields.SetMaxDynamicTableSize(size)
			r.call(service+"EmptyCall", empty, "x-a", "b")
		}
		r.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		return r.call(service+"EmptyCall", empty, "x-a", "b")
	}, "grpc-status=0")
	c.raw("reset_then_a_new_call", func(r *raw) uint32 {
		r.frames.WriteRSTStream(r.open(service+"FullDuplexCall", false), http2.ErrCodeCancel)
		return r.call(service+"EmptyCall", empty)
	}, "grpc-status=0")
	c.raw("reset_in_a_message", func(r *raw) uint32 {
		id := r.open(service+"UnaryCall", false)
		r.frames.WriteData(id, false, message(0, make([]byte, 1000))[:500])
		r.frames.WriteRSTStream(id, http2.ErrCodeCancel)
		return r.call(service+"EmptyCall", empty)
	}, "grpc-status=0")
	c.raw("one_stream_too_many", func(r *raw) uint32 {
		r.result(r.call(service+"EmptyCall", empty), time.Second) // its SETTINGS are acknowledged now
		for range 128 {
			r.open(service+"FullDuplexCall", false)
		}
		return r.open(service+"FullDuplexCall", false)
	}, "goaway=PROTOCOL_ERROR(request HEADERS: max concurrent streams exceeded)")
	c.raw("data_on_no_stream", func(r *raw) uint32 {
		r.frames.WriteData(5, true, empty)
		return 5
	}, "goaway=PROTOCOL_ERROR")
	c.raw("pings_that_measure", func(r *raw) uint32 {
		for range 10 {
			r.result(r.call(service+"EmptyCall", empty), time.Second)
			r.frames.WritePing(false, [8]byte{1})
		}
		return r.call(service+"EmptyCall", empty)
	}, "grpc-status=0")
}

func (c *conf) abuse() {
	c.raw("ping_flood", func(r *raw) uint32 {
		for i := range 5 {
			r.frames.WritePing(false, [8]byte{byte(i)})
			time.Sleep(20 * time.Millisecond)
		}
		return 1
	}, "goaway=ENHANCE_YOUR_CALM(too_many_pings)", "closed")
	c.raw("continuation_flood", func(r *raw) uint32 {
		r.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.encode(request(service+"EmptyCall", "localhost")...)})
		for range 10000 {
			if r.frames.WriteContinuation(1, false, r.encode("x-a", "b")) != nil {
				break
			}
		}
		return 1
	}, "closed")
	c.raw("headers_of_1_mb", func(r *raw) uint32 {
		var extra []string
		for i := range 1000 {
			extra = append(extra, fmt.Sprintf("x-%d", i), strings.Repeat("abc!", 250))
		}
		return r.open(service+"EmptyCall", false, extra...)
	}, "")
	before := c.server.resident()
	c.raw("rapid_reset", func(r *raw) uint32 {
		for range 20000 {
			if r.frames.WriteRSTStream(r.open(service+"FullDuplexCall", false), http2.ErrCodeCancel) != nil {
				break
			}
		}
		return 999999
	}, "goaway=")
	c.call("rapid_reset_costs_no_memory", func() error {
		if grown := c.server.resident() - before; grown > residentLimit {
			return fmt.Errorf("grown by %d KiB", grown)
		}
		return nil
	})
	c.call("200_abrupt_ends", func() error {
		for i := range 200 {
			r, err := dialRaw(c.socket)
			if err != nil {
				return err
			}
			id := r.open(service+"FullDuplexCall", false, "grpc-timeout", "10S")
			r.frames.WriteData(id, false, message(0, []byte{0x12, 0x04, 0x08, 0xa0, 0x8d, 0x06})[:5+i%7])
			r.Close()
		}
		return nil
	})
	c.call("http_1_peer", func() error {
		connection, err := dialSocket(c.socket)
		if err != nil {
			return err
		}
		defer connection.Close()
		connection.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		connection.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err = io.ReadAll(connection)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("left open")
		}
		return nil
	})
}

func (c *conf) alive() {
	c.call("alive_after_all_that", func() error {
		_, err := c.client.EmptyCall(c.ctx, &tp.Empty{})
		return err
	})
	c.call("socket_is_its_owners_alone", func() error {
		info, err := os.Stat(c.socket)
		if err == nil && info.Mode().Perm() != 0600 {
			err = fmt.Errorf("mode %v", info.Mode())
		}
		return err
	})
}

// A running stream goes on through SIGTERM, a new call is refused, and the server ends when the stream does.
func (c *conf) drain() {
	ask := func(stream tp.TestService_FullDuplexCallClient, size int32) error {
		if err := stream.Send(&tp.StreamingOutputCallRequest{ResponseParameters: []*tp.ResponseParameters{{Size: size}}}); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err == nil && len(answer.GetPayload().GetBody()) != int(size) {
			err = errors.New("another size")
		}
		return err
	}
	stream, err := c.client.FullDuplexCall(c.ctx)
	c.call("drain_starts_with_a_stream", func() error {
		if err != nil {
			return err
		}
		return ask(stream, 10)
	})
	c.server.term()
	time.Sleep(300 * time.Millisecond)
	c.call("drain_stream_goes_on", func() error { return ask(stream, 20) })
	c.call("drain_refuses_new_calls", func() error {
		ctx, cancel := context.WithTimeout(c.ctx, 500*time.Millisecond)
		defer cancel()
		_, err := c.client.EmptyCall(ctx, &tp.Empty{})
		if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	stream.CloseSend()
	c.call("drain_stream_ends_well", func() error {
		if _, err := stream.Recv(); err != io.EOF {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	c.check("conformance/drained_server_ends_cleanly", func() error { return c.server.wait(10 * time.Second) })
}
