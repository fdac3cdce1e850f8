package scenarios_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A network takes a request to the service and its answer back, or does something
// else with them.
type network func(context.Context, *sim.RPC) (*http.Response, error)

func deliver(ctx context.Context, p *sim.RPC) (*http.Response, error) { return p.Go(ctx) }

// meet sets the network of some replicas, or of all if none is named. Nil delivers.
func (s *story) meet(n network, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(names) == 0 {
		clear(s.networks)
		names = []string{""}
	}
	for _, name := range names {
		s.networks[name] = n
	}
}

func (s *story) mend(names ...string) { s.meet(nil, names...) }

// cut has nothing of these replicas get through, until mend.
func (s *story) cut(names ...string) { s.meet(hang, names...) }

// only has a fault strike requests of some kinds, or all if none is named.
func only(f network, ops ...string) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		if len(ops) > 0 && !slices.Contains(ops, p.Op()) {
			return p.Go(ctx)
		}
		return f(ctx, p)
	}
}

// first has a fault strike the first n requests of a kind, of whichever replica.
func first(n int, op string, f network) network {
	var left atomic.Int64
	left.Store(int64(n))
	return only(func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		if left.Add(-1) >= 0 {
			return f(ctx, p)
		}
		return p.Go(ctx)
	}, op)
}

// noted has the log name the fault that a request meets.
func noted(fault string, f network) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		p.Meets(fault)
		return f(ctx, p)
	}
}

// refuse answers in the service's place, or in that of a proxy if code is empty.
func refuse(status int, code string, headers ...string) network {
	return noted(fmt.Sprint(status), func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		resp, err := p.Refuse(ctx, status, code)
		if err != nil {
			return nil, err
		}
		if code == "" {
			for _, name := range []string{"x-ms-error-code", "x-ms-request-id", "Content-Length"} {
				resp.Header.Del(name)
			}
			resp.Header.Set("Content-Type", "text/html")
			resp.Body = io.NopCloser(strings.NewReader("<html>" + http.StatusText(status) + "</html>"))
			resp.ContentLength = -1
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			resp.Header.Set(name, value)
		}
		return resp, nil
	})
}

// Failures of a connection, before the request has got anywhere.
var (
	refused = fail(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	reset   = fail(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	noName  = fail(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "sim.blob.core.windows.net", IsNotFound: true}})
)

func fail(err error) network {
	return noted(err.Error(), func(context.Context, *sim.RPC) (*http.Response, error) { return nil, err })
}

// hang is a connection whose other end is gone.
func hang(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	p.Meets(string(trace.Drop))
	<-ctx.Done()
	return nil, ctx.Err()
}

// mute applies the request and says nothing.
func mute(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	if _, err := p.There(ctx); err != nil {
		return nil, err
	}
	return hang(ctx, p)
}

// dropped applies the request and closes the connection instead of the reply.
func dropped(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	if _, err := p.Go(ctx); err != nil {
		return nil, err
	}
	return reset(ctx, p)
}

// late lets the caller give up and applies the request d after it was sent.
func late(d time.Duration) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		p.ApplyAfter(d)
		return hang(ctx, p)
	}
}

// garble damages the body of a reply that has one: one to HEAD has none.
func garble(f network, body func(context.Context) io.Reader) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		resp, err := f(ctx, p)
		if err == nil && p.HTTP().Method != http.MethodHead {
			resp = p.Garble(resp, 100, body(ctx))
		}
		return resp, err
	}
}

func endless(ctx context.Context) io.Reader { return &drip{ctx, time.Hour} }
func trickle(ctx context.Context) io.Reader { return &drip{ctx, time.Second} }
func cutOff(context.Context) io.Reader {
	return io.MultiReader(strings.NewReader("<"), tooShort{})
}

type tooShort struct{}

func (tooShort) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A drip is a body of which a byte comes now and then. As one of net/http, it
// ends with the context of its request.
type drip struct {
	ctx   context.Context
	every time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	t := time.NewTimer(d.every)
	defer t.Stop()
	select {
	case <-t.C:
		return copy(p, " "), nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}
