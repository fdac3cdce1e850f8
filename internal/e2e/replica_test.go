//go:build unix

// Package e2e runs replicas as real processes over Azurite: this test binary,
// started again.
package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/store"
)

// lease is the shortest that Azure gives.
const lease = 15 * time.Second

// replicaEnv carries the order of a process that is to be a replica.
const replicaEnv = "SOLOIST_E2E_REPLICA"

// An order says what a replica is to do.
type order struct {
	Name      string
	Storage   string
	Container string
	Schedule  string
	Missed    soloist.MissedPolicy
	Takes     time.Duration // of a run that is not told to end
	Skew      time.Duration // of its wall clock

	// Program, when set, is what the replica does instead, as a program of a
	// user: under host.Main. The rest is for those.
	Program          string
	Rerun            bool // it is a job
	HeartbeatTimeout time.Duration
	Grace            time.Duration
	Sink             string // where effects go
}

// An event is a line that a replica prints.
type event struct {
	Replica string
	What    string // "ready", "start", "beat", "end", or "log"
	Tick    time.Time
	Attempt int
	Token   int64
	Cause   string // of the end of the run's context
	Text    string // of a log
	At      time.Time
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(replicaEnv); ok {
		if err := replica(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	flag.Set("test.parallel", "16") // the replicas sleep nearly all the time
	os.Exit(m.Run())
}

// replica is the whole life of a process that was started as one.
func replica(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	p := &printer{name: o.Name}
	if o.Program != "" {
		return p.main(o)
	}
	backend, err := azure.Open(azure.Config{ConnectionString: o.Storage, Container: o.Container})
	if err != nil {
		return err
	}
	s := &soloist.Scheduler{
		Store: backend, Replica: o.Name, App: "e2e",
		Logger: slog.New(slog.NewTextHandler(p, nil)),
		Now:    func() time.Time { return time.Now().Add(o.Skew) },
		Jobs: []soloist.Job{{Name: "work", Schedule: o.Schedule, Missed: o.Missed, Lease: lease,
			Do: func(ctx context.Context, run *soloist.Run) error { return p.run(ctx, run, o.Takes) }}},
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	p.print(event{What: "ready"})
	return s.Run(ctx)
}

// A printer prints events, one line each.
type printer struct {
	name string
	mu   sync.Mutex
}

func (p *printer) print(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Replica, e.At = p.name, time.Now()
	b, _ := json.Marshal(e)
	os.Stdout.Write(append(b, '\n'))
}

func (p *printer) Write(b []byte) (int, error) {
	p.print(event{What: "log", Text: string(b)})
	return len(b), nil
}

func (p *printer) run(ctx context.Context, run *soloist.Run, takes time.Duration) error {
	p.print(of("start", run))
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	p.end(run, context.Cause(ctx))
	return ctx.Err()
}

func (p *printer) end(run *soloist.Run, cause error) {
	e := of("end", run)
	if cause != nil {
		e.Cause = cause.Error()
	}
	p.print(e)
}

func of(what string, run *soloist.Run) event {
	return event{What: what, Tick: run.Tick, Attempt: run.Attempt, Token: run.Token}
}

// emulator is the Azurite of all tests: to start one takes longer than it is
// busy with them. It ends with this process.
var emulator = sync.OnceValues(func() (*azurite.Server, error) { return azurite.Launch(context.Background()) })

// fleets numbers the containers.
var fleets atomic.Int64

// A fleet is the replicas of one test over a container of their own.
type fleet struct {
	t       *testing.T
	order   order  // of all; Name and Skew are each one's own
	program string // this test binary unless a test says otherwise
	store   *azure.Store
	procs   map[string]*proc
	events  chan event
	seen    []event
}

func newFleet(t *testing.T, o order) *fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("starts replicas as processes over Azurite: run it without -short")
	}
	server, err := emulator()
	if errors.Is(err, azurite.ErrNoNode) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Storage, o.Container = server.ConnectionString(), fmt.Sprintf("fleet-%d", fleets.Add(1))
	backend, err := azure.Open(azure.Config{ConnectionString: o.Storage, Container: o.Container})
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{t: t, order: o, program: program, store: backend, procs: map[string]*proc{}, events: make(chan event, 10_000)}
}

// start starts a replica; it is killed at the end of the test.
func (f *fleet) start(name string, skew time.Duration) {
	f.t.Helper()
	o := f.order
	o.Name, o.Skew = name, skew
	text, _ := json.Marshal(o)
	cmd := exec.Command(f.program)
	cmd.Env = append(os.Environ(), replicaEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	p := &proc{cmd, make(chan struct{})}
	go func() {
		defer close(p.read)
		lines := bufio.NewScanner(out)
		for lines.Buffer(nil, 1<<20); lines.Scan(); { // a log may have all goroutines
			var e event
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				continue
			}
			if e.What == "" { // not of ours: host.Main logs there too
				e = event{Replica: name, What: "log", Text: lines.Text(), At: time.Now()}
			}
			f.events <- e
		}
	}()
	f.procs[name] = p
	f.t.Cleanup(func() { cmd.Process.Kill(); p.wait() })
}

// A proc is a replica's process.
type proc struct {
	*exec.Cmd
	read chan struct{} // closed when all of its output is read
}

func (p *proc) wait() error {
	<-p.read
	return p.Wait()
}

func (f *fleet) signal(name string, s os.Signal) {
	f.t.Helper()
	if err := f.procs[name].Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// await returns the first event from now on that ok accepts.
func (f *fleet) await(what string, patience time.Duration, ok func(event) bool) event {
	f.t.Helper()
	late := time.After(patience)
	for {
		select {
		case e := <-f.events:
			f.seen = append(f.seen, e)
			if ok(e) {
				return e
			}
		case <-late:
			f.t.Fatalf("%s did not come within %s", what, patience)
		}
	}
}

// have is await that takes an event of before, too: those of two replicas may
// arrive in either order.
func (f *fleet) have(what string, patience time.Duration, ok func(event) bool) event {
	f.t.Helper()
	if i := slices.IndexFunc(f.seen, ok); i >= 0 {
		return f.seen[i]
	}
	return f.await(what, patience, ok)
}

// drain takes in what has arrived.
func (f *fleet) drain() {
	for len(f.events) > 0 {
		f.seen = append(f.seen, <-f.events)
	}
}

// exit waits for the end of a process, and returns when that was.
func (f *fleet) exit(name string, patience time.Duration) (at time.Time, code int) {
	f.t.Helper()
	p := f.procs[name]
	select {
	case <-p.read:
	case <-time.After(patience):
		f.t.Fatalf("%s did not exit within %s", name, patience)
	}
	at = time.Now()
	p.wait()
	f.drain()
	return at, p.ProcessState.ExitCode()
}

func ended(by string) func(event) bool {
	return func(e event) bool { return e.What == "end" && e.Replica == by }
}

func started(by string) func(event) bool {
	return func(e event) bool { return e.What == "start" && (by == "" || e.Replica == by) }
}

// ticks returns how often each tick was started.
func (f *fleet) ticks() map[time.Time]int {
	n := map[time.Time]int{}
	for _, e := range f.seen {
		if e.What == "start" {
			n[e.Tick]++
		}
	}
	return n
}

// record returns the job's record.
func (f *fleet) record() store.Record {
	f.t.Helper()
	e, err := f.store.Read(f.t.Context(), "e2e/work")
	if err != nil {
		f.t.Fatal(err)
	}
	var r store.Record
	if err := json.Unmarshal(e.Record, &r); err != nil {
		f.t.Fatal(err)
	}
	return r
}
