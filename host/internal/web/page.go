package web

import (
	"bytes"
	_ "embed"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"stamp": format.Stamp, "relative": format.Relative, "ahead": format.Ahead, "outcome": format.Outcome, "moment": format.Moment, "roughly": format.Roughly, "line": format.Line,
}).Parse(pageText))

// A shown is what the template shows.
type shown struct {
	App, Replica, Store string
	Now                 time.Time
	Old                 string   // how old the news is, if that is worth a word
	Storage             string   // why the store is out of reach
	Stuck, Overrun      []string // what only a restart helps
	Log                 string   // since when it has blocked
	Skew                string   // how far the clock is off, if that is worth a word
	Functions           []string // in Functions: what is deployed and is not what the jobs need
	Jobs                []row
}

type row struct {
	Job  view.Job
	Here bool // it runs on this replica
	Bad  bool // its last outcome is one to look at
}

// page answers with what is known, however the store does.
func (p *pages) page(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, p.show(p.cache.look(r.Context()))); err != nil {
		p.app.Log.Error("the page", "error", err)
		http.Error(w, "the page could not be made: see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Write(body.Bytes())
}

func (p *pages) show(n news) shown {
	h := p.app.Scheduler.Health()
	out := shown{App: p.app.Settings.App, Replica: p.app.Scheduler.Replica, Store: p.app.Place, Now: p.app.Now(), Old: n.old(), Stuck: h.Stuck, Skew: format.SkewNote(h.Skew), Functions: p.functions}
	for _, job := range slices.Sorted(maps.Keys(h.Overrun)) {
		out.Overrun = append(out.Overrun, job+" "+view.Overrun(h.Overrun[job]))
	}
	for _, v := range view.All(p.app, n.all) {
		out.Jobs = append(out.Jobs, row{Job: v, Here: slices.Contains(h.Running, v.Name), Bad: bad(v)})
	}
	if h.Storage != nil {
		out.Storage = format.Line(h.Storage.Error())
	}
	if err := p.app.LogBlocked(h); err != nil {
		out.Log = text(err)
	}
	return out
}

// bad is a last outcome to look at. For a singleton it is no news that its replica
// went.
func bad(v view.Job) bool {
	if v.Last == nil || v.Kind == "singleton" && v.Last.Status == store.Abandoned {
		return false
	}
	return slices.Contains([]store.Status{store.Failed, store.Stalled, store.Abandoned, store.Missed}, v.Last.Status)
}
