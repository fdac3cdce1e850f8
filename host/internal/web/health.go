package web

import (
	"errors"
	"net/http"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// health is what /healthz answers.
type health struct {
	Status  string            `json:"status"` // ok, degraded, stuck, overrun
	Running []string          `json:"running,omitempty"`
	Stuck   []string          `json:"stuck,omitempty"`
	Overrun map[string]string `json:"overrun,omitempty"` // go on though their context has ended, and why it did
	Broken  map[string]string `json:"broken,omitempty"`
	Storage string            `json:"storage,omitempty"` // why it is out of reach
	Log     string            `json:"log,omitempty"`     // since when it has blocked
	Events  string            `json:"events,omitempty"`  // since when what receives events has blocked
	Skew    float64           `json:"skew"`              // seconds that this machine's clock is ahead, as far as that is proved
}

// healthz answers whether a restart would help. It would not against a broken
// record or an outage of the storage: all replicas would restart in a loop.
func (p *pages) healthz(w http.ResponseWriter, r *http.Request) {
	now, words := p.app.Scheduler.Health(), p.wordsFor(r)
	h := health{Status: p.app.Condition(now), Running: now.Running, Stuck: now.Stuck, Skew: format.SkewSeconds(now.Skew),
		Overrun: each(now.Overrun, words.cause), Broken: each(now.Broken, words.broken), Storage: words.storage(now.Storage),
		Log: format.Error(p.app.LogBlocked(now)), Events: format.Error(now.Events)}
	code := http.StatusOK
	if h.Status == "overrun" || h.Status == "stuck" {
		code = http.StatusServiceUnavailable
	}
	Reply(w, code, h)
}

// readiness is what /readyz answers.
type readiness struct {
	Status  string `json:"status"`            // ready, waiting
	Storage string `json:"storage,omitempty"` // why it is out of reach
	Before  string `json:"before,omitempty"`  // what the jobs wait for, such as "migrate for v2, for 12s"
	Error   string `json:"error,omitempty"`   // why that has failed here
}

// readyz answers whether the replica can do its work.
func (p *pages) readyz(w http.ResponseWriter, r *http.Request) {
	now, words := p.app.Scheduler.Health(), p.wordsFor(r)
	before, failed := p.app.Before.Waiting()
	body := readiness{Status: "waiting", Storage: words.storage(now.Storage), Before: before}
	switch {
	case before != "":
		body.Error = words.broken(failed)
	case now.Storage != nil:
	case now.Reached || p.cache.ready(r.Context()):
		Reply(w, http.StatusOK, readiness{Status: "ready"})
		return
	default:
		body.Storage = "it has not answered yet"
	}
	Reply(w, http.StatusServiceUnavailable, body)
}

// words are how much a probe learns about errors: their texts may name accounts,
// or hold what a job has put there.
type words struct{ storage, broken, cause func(error) string }

func (p *pages) wordsFor(r *http.Request) words {
	if p.guard.mayRead(r) {
		return words{format.Error, format.Error, format.Error}
	}
	always := func(words string) func(error) string {
		return func(err error) string {
			if err == nil {
				return ""
			}
			return words
		}
	}
	return words{always("out of reach"), always("left alone: the log tells why"), sentinel}
}

func each(errs map[string]error, words func(error) string) map[string]string {
	texts := make(map[string]string, len(errs))
	for job, err := range errs {
		texts[job] = words(err)
	}
	return texts
}

// sentinel describes a cause in the words of this module alone.
func sentinel(cause error) string {
	for _, err := range []error{store.ErrLost, soloist.ErrStalled, soloist.ErrTimeout, soloist.ErrStopped} {
		if errors.Is(cause, err) {
			return err.Error()
		}
	}
	return "ended"
}
