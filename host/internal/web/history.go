package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/why"
	"github.com/soloist-go/soloist/internal/desk"
)

// A historyAnswer is one page of the outcomes of a job.
type historyAnswer struct {
	App      appInfo    `json:"app"`
	Job      string     `json:"job"`
	Source   source     `json:"source"`
	Note     string     `json:"note,omitempty"` // why older outcomes may be missing
	Matched  int        `json:"matched"`        // how many outcomes match the query, of those that were read
	Offset   int        `json:"offset"`         // how many of them come before these
	Outcomes []past.Run `json:"outcomes"`       // newest first
}

// A source is where outcomes come from.
type source string

const (
	fromLog    source = "log"    // and what only the record has yet
	fromRecord source = "record" // which has the last twenty
)

// A pastQuery is which outcomes of a job are wanted.
type pastQuery struct {
	past.Filter
	offset, limit int
}

// history answers with one page of the outcomes of a job.
func (p *pages) history(w http.ResponseWriter, r *http.Request) {
	name, ok := p.named(w, r)
	if !ok {
		return
	}
	q, ok := asked(w, r, func(values map[string]string) (pastQuery, error) { return parsePast(values, p.app.Now()) })
	if !ok {
		return
	}
	n := p.cache.look(r.Context())
	i := n.index(name)
	if i < 0 {
		fail(w, http.StatusServiceUnavailable, notYet)
		return
	}
	answer := historyAnswer{App: p.infoFor(r, n), Job: name, Offset: q.offset}
	var lines past.Lines
	lines, answer.Source, answer.Note = p.pastOf(r, &n.all[i], q.Filter)
	q.Run = strings.TrimPrefix(q.Run, name+"@")
	answer.Outcomes, answer.Matched = q.Select(name, lines, q.offset, q.limit)
	if q.Run != "" && p.past.On() {
		if err := p.past.AddDetails(r.Context(), &n.all[i], q.Run, answer.Outcomes); err != nil {
			answer.Note = format.Error(err)
		}
	}
	Reply(w, http.StatusOK, answer)
}

// pastOf returns outcomes of a job, and where they come from.
func (p *pages) pastOf(r *http.Request, st *desk.Status, f past.Filter) (lines past.Lines, from source, note string) {
	switch {
	case st.EveryReplica:
		return nil, fromRecord, "Each replica runs the job, so there is no record of its runs."
	case !p.past.On():
		return past.OfRecord(st), fromRecord, "These are the last outcomes, which the record has: SOLOIST_HISTORY is 0, or the store keeps no logs."
	}
	lines, whole, err := p.past.Of(r.Context(), st, f)
	if err != nil {
		return lines, fromRecord, format.Error(err)
	}
	if !whole && len(lines) > 0 {
		note = fmt.Sprintf("There may be more outcomes before %s. The command history reads them all.", format.Stamp(lines[len(lines)-1].At()))
	}
	return lines, fromLog, note
}

// parsePast reads the parameters of a history.
func parsePast(values map[string]string, now time.Time) (q pastQuery, err error) {
	q.limit = mostRows
	err = readEach(values, "since, outcome, run, offset or limit", map[string]func(value string) error{
		"since":   func(value string) (err error) { q.Since, err = agoOf("since", value, now); return err },
		"outcome": func(value string) error { return q.Want(strings.Split(value, ",")...) },
		"run":     func(value string) error { q.Run = value; return nil },
		"offset":  func(value string) (err error) { q.offset, err = numberOf("offset", value, 0, 1<<31-1); return err },
		"limit":   func(value string) (err error) { q.limit, err = numberOf("limit", value, 1, mostRows); return err },
	})
	return q, err
}

// A whyAnswer says why a tick of a job did not run, or what became of it.
type whyAnswer struct {
	App appInfo `json:"app"`
	Job string  `json:"job"`
	why.Answer
}

// why answers for one tick, by the last reading of the records and by what this replica has met.
func (p *pages) why(w http.ResponseWriter, r *http.Request) {
	name, ok := p.named(w, r)
	if !ok {
		return
	}
	m, ok := asked(w, r, func(values map[string]string) (why.Moment, error) {
		return parseWhy(values, p.app.Now(), app.ZoneOf(p.app, name))
	})
	if !ok {
		return
	}
	n := p.cache.look(r.Context())
	if n.index(name) < 0 {
		fail(w, http.StatusServiceUnavailable, notYet)
		return
	}
	known := why.Facts{Control: n.orders, Replicas: n.fleet.Reading, Here: p.witness.Here()}
	if n.deaf != nil {
		known.LeftOut = append(known.LeftOut, "what operators have ordered since: "+format.Error(n.deaf))
	}
	if old := n.old(); old != "" {
		known.LeftOut = append(known.LeftOut, "what is new since: "+old)
	}
	source := why.Source{App: p.app, Status: n.status, Known: known}
	if p.past.On() {
		source.Logs = p.past
	}
	Reply(w, http.StatusOK, whyAnswer{p.infoFor(r, n), name, source.Facts(r.Context(), name, m).Of(m)})
}

// status returns what the reading has of a job.
func (n news) status(_ context.Context, job string) (desk.Status, error) {
	if i := n.index(job); i >= 0 {
		return n.all[i], nil
	}
	return desk.Status{}, fmt.Errorf("the store has told nothing of %s", job)
}

// parseWhy reads which tick is asked about; the zero Moment: the newest that did not succeed.
func parseWhy(values map[string]string, now time.Time, zone *time.Location) (m why.Moment, err error) {
	err = readEach(values, "at", map[string]func(value string) error{
		"at": func(value string) (err error) {
			if m, err = why.ReadMoment(value, now, zone); err != nil {
				return fmt.Errorf("at is %q: %w", format.Brief(value), err)
			}
			return nil
		},
	})
	return m, err
}
