//go:build unix

package ingest

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// Mistakes that somebody could have made in the job.
var (
	savesFirst = []proctest.Edit{{File: "jobs/ingest.go",
		Old: `
		if err := in.put(ctx, at.Next, page); err != nil {
			return err
		}
		at.Next++
		if err := in.save(ctx, at); err != nil {
			return fmt.Errorf("save the position: %w", err)
		}
`,
		New: `
		at.Next++
		if err := in.save(ctx, at); err != nil {
			return err
		}
		if err := in.put(ctx, at.Next-1, page); err != nil {
			return err
		}
`}}
	neverLoads = []proctest.Edit{{File: "jobs/ingest.go", Old: `run.Load(ctx, &at)`, New: `ctx.Err()`}}
)

// names are those of the replicas.
var names = []string{"a", "b"}

// A fleet is the replicas of one world.
type fleet struct {
	proctest.Fleet
	t *testing.T
}

// newFleet starts n replicas of the program of jobs, whose ingest runs each second.
func newFleet(t *testing.T, program string, n int, l *ledger, storage proctest.Storage) *fleet {
	t.Helper()
	f := &fleet{t: t}
	f.Program = program
	f.Env = append(storage.Env(), "SOLOIST_APP=proof", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_LOG_FORMAT=json",
		"SOLOIST_JOB_INGEST_SCHEDULE=@every 1s", "HEARTBEAT_URL=",
		"INGEST_SOURCE="+l.source.URL, "INGEST_SINK="+l.target.URL)
	t.Cleanup(func() { f.End(t) })
	for _, name := range names[:n] {
		f.start(name)
	}
	return f
}

func (f *fleet) start(name string) {
	f.t.Helper()
	if err := f.Start(name); err != nil {
		f.t.Fatal(err)
	}
}

// ran reports whether e says that a run of the job has started.
func ran(e proctest.Event) bool { return e.Msg == "run started" && e.Job == "ingest" }

// runner is the replica that runs, or ran, under the token, if it still lives.
func (f *fleet) runner(token int64) (name string, alive bool) {
	for _, e := range f.Events() {
		switch {
		case ran(e) && e.Token == token:
			name, alive = e.Replica, true
		case e.What == proctest.Begins && e.Replica == name:
			alive = false // it is another process now
		}
	}
	return name, alive
}

// listening reports whether all replicas listen. One that was just started would be killed by the
// signal that it does not take yet.
func (f *fleet) listening() bool {
	up := map[string]bool{}
	for _, e := range f.Events() {
		switch {
		case e.What == proctest.Begins:
			up[e.Replica] = false
		case e.URL != "":
			up[e.Replica] = true
		}
	}
	for _, yes := range up {
		if !yes {
			return false
		}
	}
	return true
}

// stop ends all replicas as a deployment does.
func (f *fleet) stop() {
	f.t.Helper()
	proctest.Poll(f.t, "all replicas to listen", time.Minute, f.listening)
	if err := f.Stop(time.Minute); err != nil {
		f.t.Error(err)
	}
}
