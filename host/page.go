package host

import (
	"bytes"
	_ "embed"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"stamp": stamp, "relative": relative, "ahead": ahead, "outcome": outcome, "moment": moment, "roughly": roughly, "line": line,
}).Parse(pageText))

// A page is what the template shows.
type page struct {
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
	view
	Here bool // it runs on this replica
	Bad  bool // its last outcome is one to look at
}

// page answers with what is known, however the store does.
func (a *app) page(b *board) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if err := pageTemplate.Execute(&body, a.show(b.look(r.Context()))); err != nil {
			a.log.Error("the page", "error", err)
			http.Error(w, "the page could not be made: see the log", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Write(body.Bytes())
	}
}

func (a *app) show(n news) page {
	h := a.sched.Health()
	p := page{App: a.App, Replica: a.sched.Replica, Store: a.store, Now: a.Now(), Old: n.old(), Stuck: h.Stuck, Skew: skewNote(h.Skew), Functions: a.drifted}
	for _, job := range slices.Sorted(maps.Keys(h.Overrun)) {
		p.Overrun = append(p.Overrun, job+" "+goesOn(h.Overrun[job]))
	}
	for _, v := range a.views(n.all) {
		p.Jobs = append(p.Jobs, row{view: v, Here: slices.Contains(h.Running, v.Name), Bad: bad(v)})
	}
	if h.Storage != nil {
		p.Storage = line(h.Storage.Error())
	}
	if err := a.logBlocked(h); err != nil {
		p.Log = text(err)
	}
	return p
}

// bad is a last outcome to look at. For a singleton it is no news that its replica
// went.
func bad(v view) bool {
	if v.Last == nil || v.Kind == "singleton" && v.Last.Status == store.Abandoned {
		return false
	}
	return slices.Contains([]store.Status{store.Failed, store.Stalled, store.Abandoned, store.Missed}, v.Last.Status)
}
