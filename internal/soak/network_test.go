package soak_test

import (
	"context"
	"net"
	"net/http"
	"syscall"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// watch counts what the service was asked for, and tells the ledger of each record
// that it takes, in the order in which it takes them.
func (c *cluster) watch(e *trace.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked[e.Job] == nil {
		c.asked[e.Job] = map[string]int{}
	}
	c.asked[e.Job][e.Op]++
	if e.OK() && e.Record != nil {
		c.ledger.write(e.Record, c.programs[e.Replica][e.Job])
	}
}

// A network takes a request to the service and its answer back, or does something
// else with them.
type network func(context.Context, *sim.RPC) (*http.Response, error)

func (c *cluster) carry(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	c.mu.Lock()
	f := c.networks[p.Replica()]
	if f == nil {
		f = c.networks[""]
	}
	c.mu.Unlock()
	if f == nil {
		return p.Go(ctx)
	}
	return f(ctx, p)
}

// meet sets what becomes of all requests; nil: they are delivered.
func (c *cluster) meet(f network) {
	c.mu.Lock()
	clear(c.networks)
	c.networks[""] = f
	c.mu.Unlock()
	c.look()
}

// cut sets what becomes of the requests of a replica; nil: what becomes of all.
func (c *cluster) cut(replica string, f network) {
	c.mu.Lock()
	c.networks[replica] = f
	c.mu.Unlock()
	c.look()
}

// reaches reports whether requests of a replica are delivered.
func (c *cluster) reaches(replica string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.networks[replica] == nil && c.networks[""] == nil
}

// faults are the ways in which nothing gets through.
var faults = []network{busy, refused, lost, mute}

func busy(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	return p.Refuse(ctx, http.StatusServiceUnavailable, "ServerBusy")
}

func refused(context.Context, *sim.RPC) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func lost(ctx context.Context, _ *sim.RPC) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// mute has the request applied, and says nothing.
func mute(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	if _, err := p.There(ctx); err != nil {
		return nil, err
	}
	return lost(ctx, p)
}
