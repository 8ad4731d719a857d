package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// answer is what a raw server does with the one request it got, on stream `id`.
type answer func(r *raw, id uint32)

// serveOnce takes one connection, reads up to the end of the first request, and answers.
func serveOnce(listener net.Listener, do answer) {
	connection, err := listener.Accept()
	if err != nil {
		return
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(20 * time.Second))
	r := newRaw(connection)
	io.ReadFull(connection, make([]byte, len(http2.ClientPreface)))
	r.frames.WriteSettings()
	for {
		frame, err := r.frames.ReadFrame()
		if err != nil {
			return
		}
		if f, ok := frame.(*http2.SettingsFrame); ok && !f.IsAck() {
			r.frames.WriteSettingsAck()
		}
		if f, ok := frame.(*http2.DataFrame); ok && f.StreamEnded() {
			do(r, f.StreamID)
			break
		}
	}
	for { // until the client has had enough
		if _, err := r.frames.ReadFrame(); err != nil {
			return
		}
	}
}

func (r *raw) headers(id uint32, end bool, pairs ...string) {
	r.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.encode(pairs...), EndHeaders: true, EndStream: end})
}

func reset(code http2.ErrCode) answer {
	return func(r *raw, id uint32) { r.frames.WriteRSTStream(id, code) }
}

func trailersOnly(pairs ...string) answer {
	return func(r *raw, id uint32) { r.headers(id, true, pairs...) }
}

// Our client calls EmptyCall; the server misbehaves; this is what the call comes to.
var mappings = []struct {
	name string
	do   answer
	says string // "" means: the call succeeds
}{
	{"good", func(r *raw, id uint32) {
		r.headers(id, false, ":status", "200", "content-type", "application/grpc")
		r.frames.WriteData(id, false, message(0, nil))
		r.headers(id, true, "grpc-status", "0")
	}, ""},
	{"interim_headers_first", func(r *raw, id uint32) {
		r.headers(id, false, ":status", "103", "link", "x")
		r.headers(id, false, ":status", "200", "content-type", "application/grpc")
		r.frames.WriteData(id, false, message(0, nil))
		r.headers(id, true, "grpc-status", "0")
	}, ""},
	{"reset_refused", reset(http2.ErrCodeRefusedStream), "UNAVAILABLE"},
	{"reset_cancel", reset(http2.ErrCodeCancel), "CANCELLED"},
	{"reset_calm", reset(http2.ErrCodeEnhanceYourCalm), "RESOURCE_EXHAUSTED"},
	{"reset_security", reset(http2.ErrCodeInadequateSecurity), "PERMISSION_DENIED"},
	{"reset_internal", reset(http2.ErrCodeInternal), "INTERNAL"},
	{"reset_no_error", reset(http2.ErrCodeNo), "INTERNAL"},
	{"http_400", trailersOnly(":status", "400"), "INTERNAL"},
	{"http_401", trailersOnly(":status", "401"), "UNAUTHENTICATED"},
	{"http_403", trailersOnly(":status", "403"), "PERMISSION_DENIED"},
	{"http_404", trailersOnly(":status", "404"), "UNIMPLEMENTED"},
	{"http_503", trailersOnly(":status", "503"), "UNAVAILABLE 'the server answered with HTTP status 503'"},
	{"http_418", trailersOnly(":status", "418"), "UNKNOWN"},
	{"not_grpc", trailersOnly(":status", "200", "content-type", "text/html"), "UNKNOWN"},
	{"trailers_only_message", trailersOnly(":status", "200", "content-type", "application/grpc", "grpc-status", "5",
		"grpc-message", "no%20such%20%E2%98%83%zz"), "NOT_FOUND 'no such ☃%zz'"},
	{"strange_status", trailersOnly(":status", "200", "content-type", "application/grpc", "grpc-status", "77"), "UNKNOWN"},
	{"no_status", func(r *raw, id uint32) {
		r.headers(id, false, ":status", "200", "content-type", "application/grpc")
		r.frames.WriteData(id, true, message(0, nil))
	}, "INTERNAL"},
	{"message_cut_short", func(r *raw, id uint32) {
		r.headers(id, false, ":status", "200", "content-type", "application/grpc")
		r.frames.WriteData(id, false, message(0, []byte("abc"))[:6])
		r.headers(id, true, "grpc-status", "0")
	}, "INTERNAL"},
	{"compressed_unasked", func(r *raw, id uint32) {
		r.headers(id, false, ":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip")
		r.frames.WriteData(id, false, message(1, []byte("abc")))
	}, "INTERNAL"},
	{"message_too_large", func(r *raw, id uint32) {
		r.headers(id, false, ":status", "200", "content-type", "application/grpc")
		r.frames.WriteData(id, false, []byte{0, 255, 255, 255, 255})
	}, "RESOURCE_EXHAUSTED"},
	{"headers_too_large", trailersOnly(":status", "200", "x", strings.Repeat("abc!", 4096)), "RESOURCE_EXHAUSTED"},
	{"goaway", func(r *raw, id uint32) { r.frames.WriteGoAway(0, http2.ErrCodeNo, nil) }, "UNAVAILABLE"},
	{"goaway_with_reason", func(r *raw, id uint32) {
		r.frames.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
	}, "too_many_pings"},
	{"broken_frames", func(r *raw, id uint32) { r.frames.WriteData(99, true, []byte("x")) }, "UNAVAILABLE"},
	{"closed", func(r *raw, id uint32) { r.Close() }, "UNAVAILABLE"},
	{"http_1_server", func(r *raw, id uint32) { r.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")) }, "UNAVAILABLE"},
}

func mapping(b *bench) {
	for i, m := range mappings {
		b.check("mapping/"+m.name, func() error {
			socket := b.path(fmt.Sprintf("mapping-%d.sock", i))
			listener, err := net.Listen("unix", socket)
			if err != nil {
				return err
			}
			defer listener.Close()
			go serveOnce(listener, m.do)
			said, err := command(caseLimit, ours("interop_client"), "unix:"+socket, "empty_unary")
			if m.says == "" {
				return err
			}
			if err == nil || !strings.Contains(said, m.says) {
				return fmt.Errorf("%v; %q lacks %q", err, said, m.says)
			}
			return nil
		})
	}
}
