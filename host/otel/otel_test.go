package otel_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/otel"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/store"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func nothing(context.Context, *soloist.Run) error { return nil }

// program is a scheduler of two jobs, one of each replica and a singleton, at noon.
func program() *soloist.Scheduler {
	return &soloist.Scheduler{
		App: "demo", Replica: "r1", Store: &local.Memory{}, Now: func() time.Time { return noon },
		Jobs: []soloist.Job{
			{Name: "report", Schedule: "@hourly", Do: nothing},
			{Name: "sweep", Schedule: "@hourly", Do: nothing},
			{Name: "cache", Schedule: "@hourly", Do: nothing, EveryReplica: true},
		},
		Singletons: []soloist.Singleton{{Name: "leader", Do: nothing}},
	}
}

func open(t *testing.T, s *soloist.Scheduler) *telemetry.Telemetry {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return telemetry.Open(s, "v1.2.3", log, otel.Patient(time.Minute)) // a slow machine is no dead collector
}

// busy returns the metrics of a replica on which everything has happened, so that each
// metric is there.
func busy(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	m := open(t, program())
	m.Watch(func(context.Context) []desk.Status {
		return []desk.Status{{Name: "report", Lease: store.Available}}
	})
	for _, kind := range []event.Kind{event.Started, event.Ended, event.Settled, event.Late, event.Renewed, event.Lost, event.TookOver, event.Dropped} {
		m.Event(event.Event{Kind: kind, Job: "report", Run: event.Run{Tick: noon, Try: 1}})
	}
	return m
}

// refusing is a store with the methods that each store has. Its leases answer with these errors, by the call.
type refusing struct {
	store.Store
	errs map[string]error
}

type refusingLease struct{ errs map[string]error }

func (r refusing) Lease(string, string) store.Lease { return refusingLease{r.errs} }

func (l refusingLease) Acquire(context.Context, time.Duration, string) (store.Revision, error) {
	return store.Revision{}, l.errs["acquire"]
}
func (l refusingLease) Renew(context.Context) (store.Revision, error) {
	return store.Revision{}, l.errs["renew"]
}
func (l refusingLease) Write(context.Context, string, []byte) (store.Revision, error) {
	return store.Revision{}, l.errs["write"]
}
func (l refusingLease) Release(context.Context) error { return l.errs["release"] }

// A program with the exporter sends what a command runs.
func TestProgramSends(t *testing.T) {
	r := receive(t)
	for name, value := range map[string]string{"SOLOIST_STORAGE": "dir:" + t.TempDir(), "SOLOIST_APP": "demo"} {
		t.Setenv(name, value)
	}
	p := host.Program{Work: []soloist.Work{soloist.Job{Name: "report", Schedule: "@yearly", Do: nothing}}, Telemetry: otel.Export,
		Args: []string{"run", "report", "--here"}, Stdout: t.Output(), Stderr: t.Output()}
	if code := p.Run(t.Context()); code != 0 {
		t.Fatalf("got code %d", code)
	}
	if r.span(t, "report"); r.metrics["soloist.runs"] == nil {
		t.Errorf("got the metrics %v", r.metrics)
	}
}
