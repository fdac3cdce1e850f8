package otel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// runOnce does what a scheduler does for one run of report: it acquires a lease, calls the
// function, and tells the end.
func runOnce(t *testing.T, s *soloist.Scheduler, m *telemetry.Telemetry, failure error) {
	t.Helper()
	l := s.Store.Lease("demo/report", "11111111-1111-4111-8111-111111111111")
	l.Acquire(t.Context(), time.Minute, "1")
	l.Write(t.Context(), "1", []byte(`{"run":{"status":"running"}}`))
	s.Jobs[0].Do(t.Context(), &soloist.Run{Job: "report", Tick: noon, Attempt: 1, Try: 1, Token: 7})
	l.Renew(t.Context())
	l.Write(t.Context(), "1", []byte(`{"run":{"status":"succeeded"}}`))
	status := event.Succeeded
	if failure != nil {
		status = event.Failed
	}
	m.Event(event.Event{Kind: event.Ended, Job: "report", Run: event.Run{Tick: noon, Token: 7}, Outcome: event.Outcome{Status: status}, Err: failure})
	l.Release(t.Context())
}

// traced returns the traces of what a function does with a program.
func traced(t *testing.T, s *soloist.Scheduler, do func(m *telemetry.Telemetry)) *receiver {
	t.Helper()
	r := receive(t)
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	m := open(t, s)
	do(m)
	m.Close()
	return r
}

// attributesOf are the attributes of a span as text.
func attributesOf(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[a.Key] = strings.Trim(strings.SplitN(a.Value.String(), ":", 2)[1], `"`)
	}
	return all
}

// isError reports whether a span says that something failed.
func isError(s *tracepb.Span) bool { return s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR }

// slow is a store whose leases take a second to acquire.
type slow struct{ store.Store }

type slowLease struct{ store.Lease }

func (s slow) Lease(name, id string) store.Lease { return slowLease{s.Store.Lease(name, id)} }

func (l slowLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	time.Sleep(time.Second)
	return l.Lease.Acquire(ctx, d, etag)
}

// A run that a scheduler does is one trace: the calls to the store and the tries are below
// the run, and the context of the job is in it.
func TestRunIsOneTrace(t *testing.T) {
	r := receive(t)
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	var seen []string
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s := &soloist.Scheduler{App: "demo", Replica: "r1", Store: slow{&local.Memory{}}, Logger: slog.New(slog.DiscardHandler),
			Jobs: []soloist.Job{{Name: "report", Schedule: "* * * * *", Retry: soloist.Retry{MaxTries: 2},
				Do: func(ctx context.Context, run *soloist.Run) error {
					seen = append(seen, trace.SpanContextFromContext(ctx).TraceID().String())
					_, mine := trace.SpanFromContext(ctx).TracerProvider().Tracer("mine").Start(ctx, "query")
					mine.End()
					if tries++; tries == 1 {
						return errors.New("password is hunter2")
					}
					return nil
				}}}}
		m := open(t, s)
		s.RunDue(t.Context(), soloist.Wake{}) // makes the entry
		time.Sleep(2 * time.Minute)
		if _, err := s.RunDue(t.Context(), soloist.Wake{}); err != nil {
			t.Fatal(err)
		}
		m.Close()
	})
	root := r.span(t, "report")
	got := attributesOf(root)
	for name, want := range map[string]string{"faas.trigger": "timer", "faas.cron": "* * * * *", "faas.time": "2000-01-01T00:02:00Z", "soloist.tick": "2000-01-01T00:02:00Z",
		"soloist.attempt": "1", "soloist.job": "report", "soloist.outcome": "succeeded", "faas.invocation_id": "report@2000-01-01T00:02:00Z"} {
		if got[name] != want {
			t.Errorf("got %s %q, want %q", name, got[name], want)
		}
	}
	if got["soloist.token"] == "" || !strings.Contains(got["code.function.name"], "TestRunIsOneTrace") || len(root.ParentSpanId) > 0 || isError(root) {
		t.Errorf("got %v", root)
	}
	for _, name := range []string{"acquire", "claim", "try", "outcome", "release"} {
		all := r.named(name)
		if len(all) == 0 {
			t.Errorf("got no span %s in %v", name, r.spans)
		}
		for _, s := range all {
			if string(s.TraceId) != string(root.TraceId) || string(s.ParentSpanId) != string(root.SpanId) || s.StartTimeUnixNano < root.StartTimeUnixNano {
				t.Errorf("%s is not below the run: %v", name, s)
			}
		}
	}
	tries := r.named("try")
	if len(tries) != 2 || !isError(tries[0]) || attributesOf(tries[0])["error.type"] != "error" || isError(tries[1]) {
		t.Errorf("got the tries %v", tries)
	}
	if want := slices.Repeat([]string{fmt.Sprintf("%x", root.TraceId)}, 2); !slices.Equal(seen, want) {
		t.Errorf("the contexts of the job have the traces %s, want %s", seen, want)
	}
	if own := r.named("query"); len(own) != 2 || string(own[0].TraceId) != string(root.TraceId) {
		t.Errorf("got the job's own spans %v", own)
	}
	if end := r.span(t, "outcome").EndTimeUnixNano; root.EndTimeUnixNano < end {
		t.Errorf("the run ends before its outcome is written")
	}
	if strings.Contains(string(r.raw), "hunter2") {
		t.Error("the traces tell the text of an error")
	}
}

// An answer that the protocol is built on is no error, and trouble is told in one word.
func TestExpectedRefusalIsNoError(t *testing.T) {
	s := program()
	s.Store = refusing{&local.Memory{}, map[string]error{
		"renew":   fmt.Errorf("412: %w", store.ErrLost),
		"release": errors.New("Put https://account.blob.core.windows.net/c/b?sig=secret: EOF")}}
	r := traced(t, s, func(m *telemetry.Telemetry) { runOnce(t, s, m, errors.New("secret")) })
	if got := r.span(t, "renew"); isError(got) || attributesOf(got)["soloist.result"] != "refused" {
		t.Errorf("got %v, want no error", got)
	}
	if got := r.span(t, "release"); !isError(got) || got.Status.Message != "error" || attributesOf(got)["error.type"] != "error" {
		t.Errorf("got %v, want an error", got)
	}
	if got := r.span(t, "report"); !isError(got) || attributesOf(got)["soloist.outcome"] != "failed" || attributesOf(got)["error.type"] != "failed" {
		t.Errorf("got %v, want failed", got)
	}
	if strings.Contains(string(r.raw), "secret") || strings.Contains(string(r.raw), "account") {
		t.Error("the traces tell the text of an error")
	}
}

// A replica that waits makes no traces: one that was not faster, or that looks whether
// something is due.
func TestNoTraceWithoutARun(t *testing.T) {
	s := program()
	s.Store = refusing{&local.Memory{}, map[string]error{"acquire": store.ErrHeld}}
	r := traced(t, s, func(*telemetry.Telemetry) {
		s.Store.Read(t.Context(), "demo/report")
		s.Store.Lease("demo/report", "id").Acquire(t.Context(), time.Minute, "1")
	})
	if len(r.requests) > 0 {
		t.Errorf("got the spans %v", r.spans)
	}
}

// The events of a run come late, perhaps when the next run has begun.
func TestEventsMayComeLate(t *testing.T) {
	s := program()
	r := traced(t, s, func(m *telemetry.Telemetry) {
		for token := range int64(5) {
			s.Jobs[0].Do(t.Context(), &soloist.Run{Job: "report", Tick: noon, Token: token + 1, Try: 1})
		}
		for _, token := range []int64{5, 4, 1} { // those of 3 and 2 were dropped
			for _, kind := range []event.Kind{event.NoProgress, event.Ended, event.Ended} {
				m.Event(event.Event{Kind: kind, Job: "report", Run: event.Run{Tick: noon, Token: token}, Outcome: event.Outcome{Status: event.Stalled}})
			}
		}
	})
	var outcomes []string
	for _, span := range r.named("report") {
		outcomes = append(outcomes, attributesOf(span)["soloist.token"]+attributesOf(span)["soloist.outcome"]+fmt.Sprint(len(span.Events)))
		if len(span.Events) > 0 && span.Events[0].Name != "run.stalled" {
			t.Errorf("got the event %s", span.Events[0].Name)
		}
	}
	slices.Sort(outcomes)
	if want := []string{"10", "20", "30", "4stalled1", "5stalled1"}; !slices.Equal(outcomes, want) {
		t.Errorf("got %q, want %q", outcomes, want)
	}
}

// A panic goes on, and its try and its run are told. Without a lease there is no token. A try that skips its work is no error.
func TestEndsOfTries(t *testing.T) {
	s := program()
	s.Jobs[0].Do = func(context.Context, *soloist.Run) error {
		return fmt.Errorf("today: %w", soloist.Skip("nothing to do"))
	}
	s.Jobs[2].Do = func(context.Context, *soloist.Run) error { panic("secret") }
	r := traced(t, s, func(*telemetry.Telemetry) {
		func() {
			defer func() {
				if recover() != "secret" {
					t.Error("the panic was swallowed")
				}
			}()
			s.Jobs[2].Do(t.Context(), &soloist.Run{Job: "cache", Tick: noon, Try: 1})
		}()
		s.Jobs[0].Do(t.Context(), &soloist.Run{Job: "report", Request: "by-hand", Tick: noon, Token: 1, Try: 1})
	})
	if got := r.named("try"); len(got) != 2 || attributesOf(got[0])["error.type"] != "panic" || isError(got[1]) {
		t.Errorf("got %v", got)
	}
	if got := attributesOf(r.span(t, "cache")); got["soloist.token"] != "" || got["faas.trigger"] != "timer" {
		t.Errorf("got %v", got)
	}
	if got := attributesOf(r.span(t, "report")); got["faas.trigger"] != "other" || got["faas.cron"] != "" || got["soloist.request"] != "by-hand" {
		t.Errorf("got %v", got)
	}
}

// Without a collector in the environment nothing is wrapped around the jobs.
func TestNoTracesUnlessAskedFor(t *testing.T) {
	s := program()
	valid := true
	s.Jobs[0].Do = func(ctx context.Context, _ *soloist.Run) error {
		valid = trace.SpanContextFromContext(ctx).IsValid()
		return nil
	}
	open(t, s)
	s.Jobs[0].Do(t.Context(), &soloist.Run{})
	if valid {
		t.Error("the context of the job has a span")
	}
}
