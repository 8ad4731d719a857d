package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const service = "/grpc.testing.TestService/"

// raw is a peer that speaks HTTP/2 frame by frame, rightly or wrongly.
type raw struct {
	net.Conn
	frames *http2.Framer
	block  bytes.Buffer
	fields *hpack.Encoder
	next   uint32
}

func dialSocket(socket string) (net.Conn, error) {
	var c net.Conn
	var err error
	for range 200 { // a full backlog says EAGAIN
		if c, err = net.Dial("unix", socket); err == nil {
			return c, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, err
}

func newRaw(c net.Conn) *raw {
	r := &raw{Conn: c, frames: http2.NewFramer(c, c), next: 1}
	r.fields = hpack.NewEncoder(&r.block)
	r.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.frames.AllowIllegalWrites = true
	return r
}

func dialRaw(socket string, settings ...http2.Setting) (*raw, error) {
	c, err := dialSocket(socket)
	if err != nil {
		return nil, err
	}
	r := newRaw(c)
	c.Write([]byte(http2.ClientPreface))
	return r, r.frames.WriteSettings(settings...)
}

// encode gives a header block of name, value pairs.
func (r *raw) encode(pairs ...string) []byte {
	r.block.Reset()
	for i := 0; i+1 < len(pairs); i += 2 {
		r.fields.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(r.block.Bytes())
}

func request(path, authority string, extra ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", authority,
		"content-type", "application/grpc", "te", "trailers"}, extra...)
}

// send writes a header block as HEADERS and as many CONTINUATION frames as it needs.
func (r *raw) send(end bool, block []byte) uint32 {
	id := r.next
	r.next += 2
	n := min(len(block), 16000)
	r.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndStream: end, EndHeaders: n == len(block)})
	for block = block[n:]; len(block) > 0; block = block[n:] {
		n = min(len(block), 16000)
		r.frames.WriteContinuation(id, n == len(block), block[:n])
	}
	return id
}

func (r *raw) open(path string, end bool, extra ...string) uint32 {
	return r.send(end, r.encode(request(path, "localhost", extra...)...))
}

// call opens a stream with these DATA bytes and ends it.
func (r *raw) call(path string, data []byte, extra ...string) uint32 {
	id := r.open(path, false, extra...)
	r.frames.WriteData(id, true, data)
	return id
}

func message(flag byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(body))), body...)
}

func headersText(f *http2.MetaHeadersFrame) string {
	text := ""
	for _, h := range f.Fields {
		if h.Name == ":status" && h.Value == "200" || h.Name == "content-type" {
			continue
		}
		text += h.Name + "=" + h.Value + " "
	}
	return text
}

// result reads until the stream or the connection ends, and says in words what came.
func (r *raw) result(id uint32, limit time.Duration) string {
	r.SetReadDeadline(time.Now().Add(limit))
	text, data := "", 0
	for {
		frame, err := r.frames.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return text + "timeout"
		} else if err != nil {
			return text + "closed"
		}
		ended := false
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if f.StreamID == id {
				text += headersText(f)
				ended = f.StreamEnded()
			}
		case *http2.DataFrame:
			if f.StreamID == id {
				data += len(f.Data())
				ended = f.StreamEnded()
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return text + "rst=" + f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			text += fmt.Sprintf("goaway=%v(%s) ", f.ErrCode, f.DebugData())
		case *http2.SettingsFrame:
			if !f.IsAck() {
				r.frames.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				r.frames.WritePing(true, f.Data)
			}
		}
		if ended {
			return text + fmt.Sprintf("data=%d", data)
		}
	}
}

// want opens a raw connection, lets `do` misuse it, and wants `texts` in what the stream came to.
func want(socket string, do func(r *raw) uint32, texts ...string) error {
	r, err := dialRaw(socket)
	if err != nil {
		return err
	}
	defer r.Close()
	r.SetWriteDeadline(time.Now().Add(10 * time.Second))
	said := r.result(do(r), 5*time.Second)
	for _, text := range texts {
		if !strings.Contains(said, text) {
			return fmt.Errorf("%q lacks %q", said, text)
		}
	}
	return nil
}
