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
	c := newCountedStore(s, &recorder{counters: newCounters(noop.Meter{})})
	if !breaks {
		c.breaker = nil
	}
	if !conditional {
		c.conditional = nil
	}
	if !documents {
		c.documenter = nil
	}
	if !lists {
		c.lister = nil
	}
	return c.shown()
}
