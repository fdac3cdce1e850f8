//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
)

// What the work of a program does. It is a singleton, or a job under Rerun, and
// called "work".
const (
	leads   = "leads"   // goes on until it has to end
	fenced  = "fenced"  // the same, with effects that carry its token
	obeys   = "obeys"   // blocks until its context ends
	ignores = "ignores" // blocks for ever
)

// main runs the order's program as its user would. It does not return.
func (p *printer) main(o order) error {
	for name, value := range map[string]string{
		"SOLOIST_STORAGE": o.Storage, "SOLOIST_CONTAINER": o.Container, "SOLOIST_APP": "e2e", "SOLOIST_ADDR": "127.0.0.1:0",
		"SOLOIST_LEASE": lease.String(), "SOLOIST_GRACE": o.Grace.String(),
		"CONTAINER_APP_REPLICA_NAME": o.Name,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	p.print(event{What: "ready"})
	do := map[string]func(context.Context, *soloist.Run) error{
		leads: p.lead, obeys: p.obey, ignores: p.ignore,
		fenced: func(_ context.Context, run *soloist.Run) error { return p.fenced(run, o.Sink) },
	}[o.Program]
	if o.Rerun {
		host.Main(soloist.Job{Name: "work", Schedule: "@every 1s", Interrupted: soloist.Rerun, HeartbeatTimeout: o.HeartbeatTimeout, Do: do})
	}
	host.Main(soloist.Singleton{Name: "work", HeartbeatTimeout: o.HeartbeatTimeout, Do: do})
	return nil
}

// windUp is what work needs to stop. Nobody may begin before that is over.
const windUp = 300 * time.Millisecond

// lead beats until it has to end.
func (p *printer) lead(ctx context.Context, run *soloist.Run) error {
	p.print(of("start", run))
	beat := time.NewTicker(500 * time.Millisecond)
	defer beat.Stop()
	for ctx.Err() == nil {
		run.Heartbeat("leading")
		select {
		case <-beat.C:
		case <-ctx.Done():
		}
	}
	time.Sleep(windUp)
	p.end(run, context.Cause(ctx))
	return ctx.Err()
}

// beats beats for a while; the last one is told.
func (p *printer) beats(run *soloist.Run) {
	p.print(of("start", run))
	for range 4 {
		time.Sleep(500 * time.Millisecond)
		run.Heartbeat("before it blocks")
	}
	p.print(of("beat", run))
}

func (p *printer) obey(ctx context.Context, run *soloist.Run) error {
	p.beats(run)
	<-ctx.Done()
	time.Sleep(windUp)
	p.end(run, context.Cause(ctx))
	return ctx.Err()
}

func (p *printer) ignore(_ context.Context, run *soloist.Run) error {
	p.beats(run)
	select {}
}

// fenced has an effect after each heartbeat. Its context is not asked: the
// heartbeats alone keep it from going on.
func (p *printer) fenced(run *soloist.Run, sink string) error {
	p.print(of("start", run))
	for {
		called := time.Now()
		if err := run.Heartbeat("working"); err != nil {
			p.end(run, err)
			return err
		}
		resp, err := http.Post(fmt.Sprintf("%s/?token=%d&beat=%d", sink, run.Token, called.UnixNano()), "", nil)
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
}
