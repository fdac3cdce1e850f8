//go:build unix

// Package processes runs replicas as real processes over Azurite: this test binary,
// started again. Beside them the suite of stores waits for leases in real time, so that
// all of that waits at once.
package processes

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// lease is the shortest that Azure gives.
const lease = 15 * time.Second

type event = proctest.Event

// An order says what a replica is to do.
type order struct {
	Name string

	// Jobs is how many there are, "work" and "work-1" and so on, on one schedule.
	Jobs      int
	Schedule  string
	Zone      string // of the schedule
	Missed    soloist.MissedPolicy
	Overlap   soloist.OverlapPolicy
	Takes     time.Duration // of a run that is not told to end
	Skew      time.Duration // of its wall clock
	Unwritten bool          // its store confirms each claim, and writes none
	Shards    int           // of a singleton, in place of jobs; see hold
	Log       string        // where holders note what they hold, or do

	// Program, when set, is what the replica does instead, as a program of a
	// user: under host.Main. The rest is for those.
	Program          string
	Job              bool // it is a job, not a singleton
	Rerun            bool // likewise
	HeartbeatTimeout time.Duration
	Grace            time.Duration
	Sink             string // where effects go

	// What counters and versions share, and what they are.
	File       string
	Increments int
	Unlocked   bool // a counter increments without the lock
	Version    string
}

// What the work of a program does. It is a singleton, or a job, and
// called "work".
const (
	leads   = "leads"   // goes on until it has to end
	fenced  = "fenced"  // the same, with effects that carry its token
	noted   = "noted"   // the same, with effects that are lines of a log
	obeys   = "obeys"   // blocks until its context ends
	ignores = "ignores" // blocks for ever

	counts  = "counts"  // increments a number in a file
	deploys = "deploys" // is prepared once for each version, and then runs ticks
	serves  = "serves"  // runs ticks under alarms: the command serve
	passes  = "passes"  // likewise: the command tick
)

var each = flag.Bool("each", false, "run each case of a test, not the first one: they wait for leases to run out")

// furtherCase skips a case of a test that has an earlier one.
func furtherCase(t *testing.T) {
	t.Helper()
	if !*each {
		t.Skip("a further case of this test: run it with -each")
	}
}

func TestMain(m *testing.M) {
	if text, ok := proctest.Order(); ok {
		if err := replica(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	proctest.Main(m, 64)
}

// replica is the whole life of a process that was started as one.
func replica(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	switch o.Program {
	case "":
	case counts:
		return o.count()
	case deploys:
		return o.deploy()
	case serves, passes:
		o.alarmed()
	default:
		o.main()
	}
	backend, err := o.storage()
	if err != nil {
		return err
	}
	var entries store.Store = backend
	if o.Unwritten {
		entries = unwritten{entries}
	}
	s := &soloist.Scheduler{
		Store: entries, Replica: o.Name, App: os.Getenv("SOLOIST_APP"),
		Logger: slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		Now:    func() time.Time { return time.Now().Add(o.Skew) },
	}
	if o.Shards > 0 {
		s.Grace, s.Singletons = o.Grace, []soloist.Singleton{{Name: "feed", Shards: o.Shards, Lease: lease, Do: o.hold}}
	} else {
		s.Jobs = o.jobs()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	proctest.Tell(event{What: "ready"})
	return s.Run(ctx)
}

// storage opens the storage of the fleet.
func (order) storage() (*azure.Store, error) {
	return azure.Open(azure.Config{ConnectionString: os.Getenv("SOLOIST_STORAGE"), Container: os.Getenv("SOLOIST_CONTAINER")})
}

// unwritten confirms each write of a record and makes none: a replica has its lease and nothing else.
type unwritten struct{ store.Store }

func (s unwritten) Lease(name, id string) store.Lease { return leaseAlone{s.Store.Lease(name, id)} }

type leaseAlone struct{ store.Lease }

func (leaseAlone) Write(_ context.Context, etag string, _ []byte) (store.Revision, error) {
	return store.Revision{ETag: etag, Date: time.Now()}, nil
}

// jobs are those of a replica that runs no program.
func (o order) jobs() (jobs []soloist.Job) {
	interrupted := soloist.Abandon
	if o.Rerun {
		interrupted = soloist.Rerun
	}
	do := o.run
	if o.Log != "" {
		do = o.noteRun
	}
	for i := range max(o.Jobs, 1) {
		jobs = append(jobs, soloist.Job{Name: jobName(i), Schedule: o.Schedule, TimeZone: o.Zone, Missed: o.Missed, Overlap: o.Overlap,
			Interrupted: interrupted, Lease: lease, Do: do})
	}
	return jobs
}

func jobName(i int) string {
	if i == 0 {
		return "work"
	}
	return fmt.Sprintf("work-%d", i)
}

// main runs the order's program as its user would. It does not return.
func (o order) main() {
	proctest.Tell(event{What: "ready"})
	do := map[string]func(context.Context, *soloist.Run) error{
		leads: proctest.Lead(windUp), obeys: obey, ignores: ignore, fenced: o.fenced, noted: o.noted,
	}[o.Program]
	job := soloist.Job{Name: "work", Schedule: "@every 1s", HeartbeatTimeout: o.HeartbeatTimeout, Do: do}
	if o.Rerun {
		job.Interrupted = soloist.Rerun
	}
	if o.Rerun || o.Job {
		host.Main(job)
	}
	host.Main(soloist.Singleton{Name: "work", HeartbeatTimeout: o.HeartbeatTimeout, Do: do})
}

// windUp is what work needs to stop. No other run may begin before that is over.
const windUp = time.Second

func (o order) run(ctx context.Context, run *soloist.Run) error {
	proctest.Tell(proctest.Of("start", run))
	proctest.Pause(ctx, o.Takes)
	proctest.TellEnd(run, context.Cause(ctx))
	return ctx.Err()
}

// beats beats for a while, and tells of its last beat right before it.
func beats(run *soloist.Run) {
	proctest.Tell(proctest.Of("start", run))
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		run.Heartbeat("before it blocks")
	}
	time.Sleep(500 * time.Millisecond)
	proctest.Tell(proctest.Of("beat", run))
	run.Heartbeat("before it blocks")
}

func obey(ctx context.Context, run *soloist.Run) error {
	beats(run)
	<-ctx.Done()
	time.Sleep(windUp)
	proctest.TellEnd(run, context.Cause(ctx))
	return ctx.Err()
}

func ignore(_ context.Context, run *soloist.Run) error {
	beats(run)
	select {}
}

// fenced has an effect after each heartbeat. It does not look at its context: the
// heartbeats alone keep it from going on.
func (o order) fenced(ctx context.Context, run *soloist.Run) error {
	proctest.Tell(proctest.Of("start", run))
	for {
		called := time.Now()
		if err := run.Heartbeat("working"); err != nil {
			e := proctest.Of("refused", run)
			e.Cause = err.Error()
			proctest.Tell(e)
			<-ctx.Done()
			proctest.TellEnd(run, context.Cause(ctx))
			return err
		}
		proctest.Send(o.Sink, effect{Token: run.Token, Beat: called}) // whatever the sink says
		time.Sleep(5 * time.Millisecond)
	}
}
