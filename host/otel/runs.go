package otel

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// traces makes one trace of each run: a span for the run, and below it one for each try
// and for each call to the store that belongs to it.
//
// A run has three sources, which come at their own times: calls to the store, the first
// of which come before it is known whether anything runs; tries, which need the span in
// their context; and events, which are delivered later. They meet by job and token.
type traces struct {
	tracer trace.Tracer

	mu       sync.Mutex
	sessions map[string]*session // of each job, the lease that was acquired last
	open     map[string][]*run   // of each job, the runs without an end, oldest first
}

func newTraces(p trace.TracerProvider) *traces {
	return &traces{tracer: p.Tracer(scope), sessions: map[string]*session{}, open: map[string][]*run{}}
}

// A run is one span under way.
type run struct {
	id   runID
	span trace.Span
	last time.Time // the latest end of what belongs to it: that is its end
}

// A runID identifies a run of a job.
type runID struct {
	token   int64 // zero: EveryReplica
	tick    int64
	request string
}

func idOf(token int64, tick time.Time, request string) runID {
	return runID{token, tick.UnixNano(), request}
}

// A session is what was done under one lease.
type session struct {
	job   string
	run   *run   // nil: nothing runs yet
	calls []call // before that
}

// A call is one call to the store.
type call struct {
	telemetry.Call
	name string // of its span
}

// maxCalls bounds the calls that are kept for a run that may come: a hold-off renews
// for long.
const maxCalls = 32

// Called makes the span of a call to the store without a lease. It belongs to the span
// of its context, if there is one: calls of a waiting replica would be traces of
// nothing.
func (t *traces) Called(ctx context.Context, c telemetry.Call) {
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		t.tell(parent, call{c, c.Op})
	}
}

// Lease returns what takes the calls under a lease of a job.
func (t *traces) Lease(job string) func(context.Context, telemetry.Call) {
	s := &session{job: job}
	return func(_ context.Context, c telemetry.Call) { t.called(s, call{c, nameOf(c)}) }
}

// called keeps a call under a lease or makes its span.
func (t *traces) called(s *session, c call) {
	c.Record = nil // it may be kept for long
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case s.run != nil:
		if c.name == "claim" {
			c.name = "progress" // the run has begun
		}
		t.tell(s.run.span, c)
		if c.Op != "release" { // the run has ended
			s.run.last = c.End
		}
	case len(s.calls) < maxCalls:
		s.calls = append(s.calls, c)
	}
	if strings.HasPrefix(c.Op, "acquire") && c.Result == "ok" {
		t.sessions[s.job] = s
	}
}

// nameOf is the name of the span of a call: it says what a write is for.
func nameOf(c telemetry.Call) string {
	if c.Op != "write" {
		return c.Op
	}
	var r struct{ Run struct{ Status event.Status } }
	if json.Unmarshal(c.Record, &r) == nil && r.Run.Status != event.Running {
		return "outcome"
	}
	return "claim"
}

// tell makes the span of a call.
func (t *traces) tell(parent trace.Span, c call) {
	_, span := t.tracer.Start(trace.ContextWithSpan(context.Background(), parent), c.name, trace.WithTimestamp(c.Start),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("soloist.result", c.Result)))
	if isTrouble(c.Result) {
		span.SetStatus(codes.Error, c.Result)
		span.SetAttributes(attribute.String("error.type", c.Result))
	}
	span.End(trace.WithTimestamp(c.End))
}

// begin returns the span of a run. The first try of the run starts it.
func (t *traces) begin(job string, id runID, attributes []attribute.KeyValue) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.open[job] {
		if r.id == id {
			return r
		}
	}
	s, start := t.sessions[job], time.Now()
	if id.token == 0 {
		s = nil // no lease
	}
	if s != nil && len(s.calls) > 0 {
		start = s.calls[0].Start
	}
	_, span := t.tracer.Start(context.Background(), job, trace.WithNewRoot(), trace.WithTimestamp(start), trace.WithAttributes(attributes...))
	r := &run{id: id, span: span, last: time.Now()}
	if s != nil {
		for _, c := range s.calls {
			t.tell(span, c)
		}
		s.run, s.calls = r, nil
	}
	t.keep(job, r)
	return r
}

// keep adds a run to those without an end. The event that ends a run may come after the
// next run has begun, but not much later: an older one was dropped.
func (t *traces) keep(job string, r *run) {
	t.open[job] = append(t.open[job], r)
	if len(t.open[job]) > 2 {
		t.open[job][0].end("")
		t.open[job] = t.open[job][1:]
	}
}

// ended says that a try of the run has returned.
func (t *traces) ended(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.last = time.Now()
}

// Event notes an event of a run, and ends it with the last one.
func (t *traces) Event(e event.Event) {
	if e.Job == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range t.open[e.Job] {
		if r.id != idOf(e.Run.Token, e.Run.Tick, e.Run.Request) {
			continue
		}
		switch e.Kind {
		case event.TookOver, event.Unhealthy, event.NoProgress, event.Lost, event.Overrun, event.HandingOver:
			r.span.AddEvent("run." + string(e.Kind)) // as in the log
		case event.Ended:
			r.end(e.Outcome.Status)
		case event.Unrecorded:
			r.end("unrecorded")
		default:
			return
		}
		if e.Kind == event.Ended || e.Kind == event.Unrecorded {
			t.open[e.Job] = append(t.open[e.Job][:i:i], t.open[e.Job][i+1:]...)
		}
		return
	}
}

// end ends the span of a run. Empty: its outcome is not known.
func (r *run) end(outcome event.Status) {
	if outcome != "" {
		r.span.SetAttributes(attribute.String("soloist.outcome", string(outcome)))
	}
	switch outcome {
	case event.Succeeded, event.Skipped, event.Cancelled, "": // as wanted, or not known
	default:
		r.span.SetStatus(codes.Error, string(outcome))
		r.span.SetAttributes(attribute.String("error.type", string(outcome)))
	}
	r.span.End(trace.WithTimestamp(r.last))
}

// endAll ends the spans of runs whose last event has not come.
func (t *traces) endAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for job, runs := range t.open {
		for _, r := range runs {
			r.end("")
		}
		delete(t.open, job)
	}
}

// isTrouble reports whether a result is an error. The answers that the protocol is built
// on are none: another replica was faster, or there is nothing new. Nor is a call that
// its caller gave up.
func isTrouble(result string) bool {
	return slices.Contains([]string{"too-large", "denied", "timeout", "error"}, result)
}
