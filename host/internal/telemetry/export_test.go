package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/soloist-go/soloist/store"
)

// Hurry sets how long Close waits for a collector.
func (t *Telemetry) Hurry(d time.Duration) { t.patience = d }

// An Able store has all optional interfaces.
type Able interface {
	store.Store
	store.Appender
	store.ConditionalBreaker
	store.Documenter
	store.LeaseBreaker
	store.Lister
}

// WithSome returns s with those of its optional interfaces that are asked for, and no others.
func WithSome(s Able, breaks, conditional, documents, lists bool) store.Store {
	counters, _ := newCounters(noop.Meter{})
	to := &recorder{counters: counters}
	c, o, b := &countedStore{s, to}, optionsOf(s, to), countedBreaker{s, to}
	o.documents, o.lists = documents, lists
	switch {
	case conditional:
		return c.withConditional(countedConditional{b, s}, o)
	case breaks:
		return c.withBreaker(b, o)
	}
	return c.withOptions(o)
}
