package otel

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/record"
)

// A do is the function of a job or singleton.
type do = func(context.Context, *soloist.Run) error

// wrap makes each job carry its span in the context of its tries.
func (t *traces) wrap(s *soloist.Scheduler) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		text := j.Schedule
		if len(j.After.Jobs) > 0 {
			text = "after " + strings.Join(j.After.Jobs, ", ")
		}
		j.Do = t.traced(text, j.Do)
	}
	for i := range s.Singletons {
		g := &s.Singletons[i]
		g.Do = t.traced("", g.Do)
	}
}

// traced returns f with a span around each call.
func (t *traces) traced(schedule string, f do) do {
	if f == nil {
		return nil // which the scheduler refuses
	}
	code := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return func(ctx context.Context, r *soloist.Run) error {
		span := t.begin(r.Job, idOf(r.Token, r.Tick, requestOf(r)), attributes(r, schedule, code))
		ctx, try := t.tracer.Start(trace.ContextWithSpan(ctx, span.span), "try", trace.WithAttributes(attribute.Int("soloist.try", r.Try)))
		word := "panic" // unless f returns
		defer func() {
			if word != "" {
				try.SetStatus(codes.Error, word)
				try.SetAttributes(attribute.String("error.type", word))
			}
			try.End()
			t.ended(span)
		}()
		err := f(ctx, r)
		word = failure(ctx, err)
		return err
	}
}

// attributes say what a run is about, with the names of
// https://opentelemetry.io/docs/specs/semconv/faas/faas-spans/ where there is one.
func attributes(r *soloist.Run, schedule, code string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("soloist.job", r.Job), attribute.Int("soloist.attempt", r.Attempt),
		attribute.String("faas.invocation_id", r.ID()), attribute.String("code.function.name", code)}
	if r.Token != 0 {
		all = append(all, attribute.Int64("soloist.token", r.Token))
	}
	if request := requestOf(r); request != "" {
		all = append(all, attribute.String("soloist.request", request))
	}
	if r.Tick.IsZero() || requestOf(r) != "" {
		return append(all, attribute.String("faas.trigger", "other"))
	}
	tick := r.Tick.UTC().Format(time.RFC3339)
	return append(all, attribute.String("soloist.tick", tick), attribute.String("faas.trigger", "timer"),
		attribute.String("faas.cron", schedule), attribute.String("faas.time", tick))
}

// requestOf returns the request of a run as the events of the run have it.
func requestOf(r *soloist.Run) string {
	if r.Backfill != 0 {
		return record.BackfillRequest(r.Backfill)
	}
	return r.Request
}

// failure is why a try failed, in one word: the text of its error may have anything in
// it. Empty: it did not fail.
func failure(ctx context.Context, err error) string {
	if err == nil || errors.As(err, reflect.New(skipType).Interface()) {
		return ""
	}
	if ctx.Err() == nil {
		return "error"
	}
	for _, known := range causes {
		if errors.Is(context.Cause(ctx), known.err) {
			return known.word
		}
	}
	return "error"
}

// skipType is the type of what [soloist.Skip] returns, which is no failure.
var skipType = reflect.TypeOf(soloist.Skip(""))

// causes are the words for why a context ended.
var causes = []struct {
	err  error
	word string
}{
	{soloist.ErrLost, "lost"},
	{soloist.ErrStalled, "stalled"},
	{soloist.ErrTimeout, "timeout"},
	{soloist.ErrStopped, "stopped"},
	{soloist.ErrCancelled, "cancelled"},
	{soloist.ErrReplaced, "replaced"},
}
