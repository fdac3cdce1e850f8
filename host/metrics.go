package host

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/VictoriaMetrics/metrics"

	"github.com/soloist-go/soloist"
)

// metrics answers with the health as Prometheus reads it, and with what the
// records told last. Each answer has a set of its own: it is one look, and has
// no other program's metrics in it.
func (a *app) metrics(b *board) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		set := a.healthSet()
		for _, v := range a.views(b.look(r.Context()).all) {
			if v.recorded() {
				set.NewGauge(fmt.Sprintf("soloist_job_failures{job=%q}", v.Name), nil).Set(float64(v.Failures))
			}
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		set.WritePrometheus(w)
	}
}

// recorded reports whether the failures of the job are known.
func (v *view) recorded() bool { return !v.EveryReplica && v.State != broken && v.State != unknownNow }

func (a *app) healthSet() *metrics.Set {
	now, set := a.sched.Health(), metrics.NewSet()
	gauge := func(name string, value float64) { set.NewGauge(name, nil).Set(value) }
	gauge("soloist_clock_skew_seconds", now.Skew.Seconds())
	gauge("soloist_storage_up", one(now.Storage == nil && (now.Reached || !a.asksStore())))
	for _, job := range a.all() {
		gauge(fmt.Sprintf("soloist_running{job=%q}", job), one(slices.Contains(now.Running, job)))
		gauge(fmt.Sprintf("soloist_overrun{job=%q}", job), one(now.Overrun[job] != nil))
		gauge(fmt.Sprintf("soloist_job_broken{job=%q}", job), one(now.Broken[job] != nil))
	}
	return set
}

// one is how a metric tells yes and no.
func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// asksStore reports whether anything needs the store.
func (a *app) asksStore() bool {
	return len(a.sched.Singletons) > 0 || slices.ContainsFunc(a.sched.Jobs, func(j soloist.Job) bool { return !j.EveryReplica })
}
