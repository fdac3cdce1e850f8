package web

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/VictoriaMetrics/metrics"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/view"
)

// metrics answers with the health as Prometheus reads it, and with what the
// records told last. Each answer has a set of its own: it is one look, and has
// no other program's metrics in it.
func (p *pages) metrics(w http.ResponseWriter, r *http.Request) {
	set := p.healthSet()
	for _, v := range view.All(p.app, p.cache.look(r.Context()).all) {
		if v.Recorded() {
			set.NewGauge(fmt.Sprintf("soloist_job_failures{job=%q}", v.Name), nil).Set(float64(v.Failures))
		}
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	set.WritePrometheus(w)
}

func (p *pages) healthSet() *metrics.Set {
	now, set := p.app.Scheduler.Health(), metrics.NewSet()
	gauge := func(name string, value float64) { set.NewGauge(name, nil).Set(value) }
	gauge("soloist_clock_skew_seconds", now.Skew.Seconds())
	gauge("soloist_storage_up", one(now.Storage == nil && (now.Reached || !p.asksStore())))
	for _, job := range p.app.Names() {
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
func (p *pages) asksStore() bool {
	return len(p.app.Scheduler.Singletons) > 0 || slices.ContainsFunc(p.app.Scheduler.Jobs, func(j soloist.Job) bool { return !j.EveryReplica })
}
