package host

import "net/http"

// health is what /healthz answers.
type health struct {
	Status  string            `json:"status"` // ok, degraded, stuck, overrun
	Running []string          `json:"running,omitempty"`
	Stuck   []string          `json:"stuck,omitempty"`
	Overrun map[string]string `json:"overrun,omitempty"` // go on though their context has ended, and why it did
	Broken  map[string]string `json:"broken,omitempty"`
	Storage string            `json:"storage,omitempty"` // why it is out of reach
	Log     string            `json:"log,omitempty"`     // since when it has blocked
	Skew    float64           `json:"skew"`              // seconds that this machine's clock is ahead, as far as that is proved
}

// healthz answers whether a restart would help. It would not against a broken
// record or an outage of the storage: all replicas would restart in a loop.
func (a *app) healthz(w http.ResponseWriter, r *http.Request) {
	now, words := a.sched.Health(), a.wordsFor(r)
	h := health{Status: "ok", Running: now.Running, Stuck: now.Stuck, Skew: skewSeconds(now.Skew),
		Overrun: each(now.Overrun, words.cause), Broken: each(now.Broken, words.broken)}
	if now.Storage != nil {
		h.Storage = words.storage(now.Storage)
	}
	if err := a.logBlocked(now); err != nil {
		h.Log = text(err)
	}
	code := http.StatusOK
	switch {
	case len(h.Overrun) > 0:
		h.Status, code = "overrun", http.StatusServiceUnavailable
	case len(h.Stuck) > 0 || h.Log != "":
		h.Status, code = "stuck", http.StatusServiceUnavailable
	case len(h.Broken) > 0 || h.Storage != "":
		h.Status = "degraded"
	}
	reply(w, code, h)
}

// readiness is what /readyz answers.
type readiness struct {
	Status  string `json:"status"`            // ready, waiting
	Storage string `json:"storage,omitempty"` // why it is out of reach
}

// readyz answers whether the replica can do its work.
func (a *app) readyz(b *board) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := a.sched.Health()
		switch {
		case now.Storage != nil:
			reply(w, http.StatusServiceUnavailable, readiness{Status: "waiting", Storage: a.wordsFor(r).storage(now.Storage)})
		case !now.Reached && !b.ready(r.Context()):
			reply(w, http.StatusServiceUnavailable, readiness{Status: "waiting", Storage: "it has not answered yet"})
		default:
			reply(w, http.StatusOK, readiness{Status: "ready"})
		}
	}
}

// words are how much a probe is told of errors: their texts may name accounts,
// or hold what a job has put there.
type words struct{ storage, broken, cause func(error) string }

func (a *app) wordsFor(r *http.Request) words {
	if a.ReadToken == "" || a.reader().check(r) == http.StatusOK {
		return words{text, text, text}
	}
	always := func(words string) func(error) string { return func(error) string { return words } }
	return words{always("out of reach"), always("left alone: the log tells why"), sentinel}
}

func text(err error) string { return line(err.Error()) }

func each(errs map[string]error, words func(error) string) map[string]string {
	texts := make(map[string]string, len(errs))
	for job, err := range errs {
		texts[job] = words(err)
	}
	return texts
}
