// Package scenarios_test tells what may happen to replicas, one thing at a time, in
// virtual time on the cluster of the simulation, with the real store and client
// library; each log is judged.
//
// A [story] is an interleaving of replicas, service and operator that is known by
// name: who does what when. A [world] is a story of replicas that meet the faults
// of a network and of a service.
package scenarios_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// D is the lease where a story names none; third is a third of it, at which
// renewals come, and try how long a call may take.
const (
	D     = 15 * time.Second
	third = D / 3
	try   = D / 6
)

// A story is one interleaving while it is told. It begins at midnight.
type story struct {
	*testing.T
	script   *sim.Script
	midnight time.Time
	replicas map[string]*sim.Replica
	late     sync.WaitGroup      // requests in flight
	azure    func() azure.Config // of each replica; nil: that of the script
	logs     map[string]*book    // by replica

	mu       sync.Mutex
	inflight []*inflight
	networks map[string]network // by replica
}

// runScenario plays a story and has it judged.
func runScenario(t *testing.T, f func(s *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &story{T: t, script: sim.NewScript(), midnight: time.Now(), replicas: map[string]*sim.Replica{}, logs: map[string]*book{}, networks: map[string]network{}}
		s.script.Direct = s.carry
		defer s.end()
		f(s)
	})
}

// runCase is runScenario in a subtest.
func runCase(t *testing.T, name string, f func(s *story)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { runScenario(t, f) })
}

// end lets all requests go, and the cluster settle.
func (s *story) end() {
	s.Helper()
	s.mu.Lock()
	for _, l := range s.inflight {
		if !l.caught {
			s.Errorf("there was nothing like %s", l.what)
		}
		l.settle(false)
	}
	s.networks = map[string]network{}
	s.inflight = nil
	s.mu.Unlock()
	log := s.script.End()
	s.late.Wait()
	time.Sleep(time.Minute) // a fetch of a token may outlive its replica
	for i, v := range judge.Judge(log) {
		if i == 10 {
			s.Error("...")
			break
		}
		s.Error(v)
	}
	for _, b := range s.logs {
		s.tells(b.String())
	}
	if s.Failed() {
		var b strings.Builder
		log.Write(&b)
		s.Logf("the end of the log:\n%s", b.String()[max(0, b.Len()-20_000):])
	}
}

// hourly is the job of most stories, which is due at 01:00:00. Rerun gives a
// tick whose runner died to another.
func hourly(act func(context.Context, *sim.RunContext) error) sim.Work {
	return sim.Work{Definition: trace.Definition{Every: time.Hour, Job: soloist.Job{Name: "job", Schedule: "@hourly", Lease: D}}, Act: act}
}

func rerun(act func(context.Context, *sim.RunContext) error) sim.Work {
	d := hourly(act)
	d.Interrupted = soloist.Rerun
	return d
}

// takes is a run of so long that ends with its context. At its start and its
// end it writes to a resource that fences.
func takes(d time.Duration) func(context.Context, *sim.RunContext) error {
	return func(ctx context.Context, s *sim.RunContext) error {
		s.Effect()
		if err := s.Sleep(ctx, d); err != nil {
			return err
		}
		s.Effect()
		return nil
	}
}

// deaf is a run of so long, whatever becomes of its context.
func deaf(d time.Duration) func(context.Context, *sim.RunContext) error {
	act := takes(d)
	return func(ctx context.Context, s *sim.RunContext) error { return act(context.WithoutCancel(ctx), s) }
}

// start has replicas with that job begin, of which the first is returned.
func (s *story) start(job sim.Work, names ...string) *sim.Replica {
	for _, name := range names {
		s.play(sim.Part{Name: name, Work: []sim.Work{job}, Grace: 5 * time.Second})
	}
	return s.replicas[names[0]]
}

func (s *story) play(p sim.Part) *sim.Replica {
	s.logs[p.Name] = &book{}
	if p.Logs = slog.NewTextHandler(s.logs[p.Name], &slog.HandlerOptions{Level: slog.LevelDebug}); s.azure != nil {
		p.Azure = s.azure()
	}
	s.replicas[p.Name] = s.script.Start(p)
	return s.replicas[p.Name]
}

// until waits for a time of the day, or of another one.
func (s *story) until(clock string) {
	s.Helper()
	at, err := time.Parse(time.DateTime, clock)
	if err != nil {
		at, err = time.Parse(time.DateTime, s.midnight.UTC().Format(time.DateOnly)+" "+clock)
	}
	if err != nil {
		s.Fatal(err)
	}
	time.Sleep(time.Until(at))
}

// ran demands that these are all runs so far: replica, tick, "/attempt" if it
// is not the first, and why the context ended if it did.
func (s *story) ran(want ...string) {
	s.Helper()
	var got []string
	for _, e := range s.events(trace.Ran, "") {
		run := e.Replica + " " + e.Tick.UTC().Format(time.TimeOnly)
		if e.Attempt > 1 {
			run += fmt.Sprintf("/%d", e.Attempt)
		}
		got = append(got, strings.TrimSpace(run+" "+cause(e)))
	}
	s.same("runs", got, want)
}

// cause is a word for why the context of a run ended, or for what it has returned, if that was no success.
func cause(e trace.Event) string {
	if e.Why == "" && e.Result != trace.Well {
		return string(e.Result)
	}
	return string(e.Why)
}

// outcomes demands that these are all outcomes in the record, oldest first.
func (s *story) outcomes(want ...string) {
	s.Helper()
	var got []string
	for _, f := range slices.Backward(s.record().History) {
		outcome := string(f.Status) + " "
		if !f.From.IsZero() {
			outcome += f.From.UTC().Format(time.TimeOnly) + "-"
		}
		outcome += f.Tick.UTC().Format(time.TimeOnly)
		if f.Reason != "" {
			outcome += " " + f.Reason
		}
		got = append(got, outcome)
	}
	s.same("outcomes", got, want)
}

// record is what the service has.
func (s *story) record() (r record.Record) {
	for _, e := range s.script.Events() {
		if e.OK() && e.Record != nil {
			r = *e.Record
		}
	}
	return r
}

// answers demands that the service answered a replica's requests of a kind so,
// in its order; "-" is one that it never got.
func (s *story) answers(of string, want ...string) {
	s.Helper()
	replica, op, _ := strings.Cut(of, "'s ")
	var got []string
	for _, e := range s.events(trace.Request, replica) {
		switch {
		case e.Op != op:
		case e.Status == 0:
			got = append(got, "-")
		default:
			got = append(got, strings.TrimSpace(fmt.Sprint(e.Status, " ", e.Code)))
		}
	}
	s.same("answers to "+of, got, want)
}

// effects demands that the resource answered so to what was written to it.
func (s *story) effects(want ...string) {
	s.Helper()
	var got []string
	for _, e := range s.events(trace.Effect, "") {
		got = append(got, e.Replica+" "+string(e.Result))
	}
	s.same("effects", got, want)
}

// says demands that a replica logged a line that begins so, once.
func (s *story) says(replica, line string) {
	s.Helper()
	n := 0
	for _, e := range s.events(trace.Said, replica) {
		if strings.HasPrefix(e.Note, line) {
			n++
		}
	}
	if n != 1 {
		s.Errorf("%s says %q %d times", replica, line, n)
	}
}

// events are those of one kind, and of one replica if it is named.
func (s *story) events(what trace.What, replica string) []trace.Event {
	return slices.DeleteFunc(s.script.Events(), func(e trace.Event) bool {
		return e.What != what || replica != "" && e.Replica != replica
	})
}

func (s *story) same(what string, got, want []string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// A book keeps what a replica logs.
type book struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *book) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *book) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
