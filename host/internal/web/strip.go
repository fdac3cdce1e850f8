package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
)

const (
	mostLanes = 500                 // of one answer
	laneCells = 60                  // of a lane whose cells are one tick each
	laneSlots = 96                  // of a lane of a given time: a quarter of an hour each in a day
	laneNext  = 5                   // ticks to come
	mostSpan  = 31 * 24 * time.Hour // of a given time
)

// A stripAnswer is what became of the last ticks of many jobs, in few bytes.
type stripAnswer struct {
	App      appInfo     `json:"app"`
	Mark     string      `json:"mark"`            // of this answer: the parameter after of the next request
	From     time.Time   `json:"from,omitzero"`   // of a time that was asked for
	To       time.Time   `json:"to,omitzero"`     // its end
	Matched  int         `json:"matched"`         // how many jobs match the query; jobs that each replica runs have no outcomes
	Offset   int         `json:"offset"`          // how many of them come before these
	Shown    int         `json:"shown"`           // how many lanes there are, with those that have not changed
	Ticks    int         `json:"ticks"`           // how many ticks of theirs came due in the last 24 h, as far as is known
	AtLeast  bool        `json:"atLeast"`         // there may be more: not all lanes reach back so far
	Twice    int         `json:"twice"`           // how many ticks have succeeded and were run, or are claimed, once more
	Note     string      `json:"note,omitempty"`  // what is left out
	Unread   int         `json:"unread,omitzero"` // of how many lanes the log is being read
	Replicas []string    `json:"replicas"`        // those of by
	Reasons  []string    `json:"reasons"`         // those of why
	Lanes    []stripLane `json:"lanes"`           // those that have changed since the mark
}

// A stripLane is the cells of one job, the oldest first: each list has a value for each of them.
type stripLane struct {
	Job     string  `json:"job"`
	Trouble bool    `json:"trouble,omitempty"`
	At      []int64 `json:"at"`             // the first is a Unix time, each other one the seconds after the one before
	What    string  `json:"what"`           // a letter each, see letters
	By      []int   `json:"by"`             // which of the replicas ran it, from 1; 0: none, or it is not known
	Why     []int   `json:"why"`            // which of the reasons it has, from 1; 0: none
	Ticks   []int   `json:"ticks"`          // how many ticks it stands for
	Next    []int64 `json:"next,omitempty"` // the ticks to come, as Unix times
	Since   int64   `json:"since,omitzero"` // Unix time: older outcomes are left out, or may be lost; none: there are none
}

// letters are the outcomes in a lane, and the runs under way: of a replica that is there, or of one whose lease has ended.
var letters = map[event.Status]string{
	event.Succeeded: "s", event.Failed: "f", event.Stalled: "h", event.Abandoned: "a",
	event.Skipped: "k", event.Missed: "m", event.Cancelled: "c", event.Running: "r", interrupted: "i",
}

// interrupted is the status of a run whose replica may be gone.
const interrupted event.Status = "interrupted"

// grave is the order of outcomes in a cell of several ticks: it shows the first that it has.
var grave = []event.Status{
	event.Failed, event.Stalled, event.Missed, event.Abandoned, event.Cancelled,
	interrupted, event.Running, event.Succeeded, event.Skipped,
}

// A stripQuery is which lanes are wanted.
type stripQuery struct {
	query
	from, to time.Time // zero: the last cells
	after    string    // the mark of the last answer
}

// strip answers with lanes.
func (p *pages) strip(w http.ResponseWriter, r *http.Request) {
	q, ok := asked(w, r, func(values map[string]string) (stripQuery, error) { return parseStrip(values, p.app.Now()) })
	if !ok {
		return
	}
	n := p.cache.look(r.Context())
	if n.made == nil {
		fail(w, http.StatusServiceUnavailable, notYet)
		return
	}
	rows, _ := n.shown(p.app)
	shown, matched := q.lanes(rows)
	all := make([]*desk.Status, len(shown))
	for i, row := range shown {
		all[i] = &n.all[row]
	}
	lanes, unread, err := p.lanes.Lanes(r.Context(), all)
	a := stripAnswer{App: p.infoFor(r, n), From: format.UTC(q.from), To: format.UTC(q.to), Matched: matched, Offset: q.offset,
		Shown: len(all), Unread: unread, Replicas: []string{}, Reasons: []string{}, Lanes: []stripLane{}}
	f := folding{q: &q, now: p.app.Now(), replicas: index{all: &a.Replicas}, reasons: index{all: &a.Reasons}}
	p.marks.Lock()
	defer p.marks.Unlock()
	for i, st := range all {
		row := &rows[shown[i]]
		a.count(lanes[i], f.now)
		cells, again := withRun(lanes[i].Cells, st, row, f.now)
		a.Twice += lanes[i].Twice + again
		next := p.lanes.Next(st, laneNext)
		key := fmt.Sprint(lanes[i].Version, len(cells), next, row.Trouble, row.Replica, st.Record.Token)
		if p.marks.changed(st.Name, key, q.after) {
			a.Lanes = append(a.Lanes, f.lane(row, lanes[i], cells, next))
		}
	}
	a.Mark, a.Note = p.marks.String(), stripNote(&a, err)
	Reply(w, http.StatusOK, a)
}

// lanes returns the places of the rows of one page, those in trouble first, and how many match in all.
func (q *stripQuery) lanes(rows []view.Job) (page []int, matched int) {
	var all []int
	for i := range rows {
		if !rows[i].EveryReplica && q.matches(&rows[i]) {
			all = append(all, i)
		}
	}
	rank := func(i int) int {
		if rows[i].Trouble {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b int) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(rows[a].Name, rows[b].Name))
	})
	return all[min(q.offset, len(all)):min(q.offset+q.limit, len(all))], len(all)
}

// count adds the ticks of a lane of the last 24 h.
func (a *stripAnswer) count(l *past.Lane, now time.Time) {
	begin := now.Add(-24 * time.Hour).Unix()
	a.AtLeast = a.AtLeast || l.Since > begin
	for i := len(l.Cells) - 1; i >= 0 && l.Cells[i].At >= begin; i-- {
		a.Ticks += l.Cells[i].Count
		a.AtLeast = a.AtLeast || l.Cells[i].More
	}
}

// withRun adds the tick that is under way to the cells of a lane. again is 1 if it has succeeded before.
func withRun(cells []past.Cell, st *desk.Status, row *view.Job, now time.Time) (all []past.Cell, again int) {
	run := &st.Record.Run
	if st.Err != nil || !st.Record.MayRun() || run.Request != "" || run.Status == event.Stalled || run.Tick.After(now) {
		return cells, 0
	}
	c := past.Cell{At: run.Tick.Unix(), Status: event.Running, Replica: run.Replica, Attempt: run.Attempt, Count: 1}
	if run.Tick.IsZero() {
		c.At = run.Claimed.Unix()
	}
	if row.Replica == "" {
		c.Status = interrupted
	}
	for i := len(cells) - 1; i >= 0 && cells[i].At >= c.At; i-- {
		if cells[i].At == c.At && cells[i].Status == event.Succeeded && !run.Tick.IsZero() {
			again = 1
		}
	}
	return append(slices.Clip(cells), c), again
}

// stripNote says what an answer leaves out.
func stripNote(a *stripAnswer, err error) string {
	var notes []string
	if left := a.Matched - a.Shown; left > 0 {
		notes = append(notes, fmt.Sprintf("%s left out of %d.", format.Plural(left, "lane"), a.Matched))
	}
	switch {
	case err != nil:
		notes = append(notes, fmt.Sprintf("%s as short as the records: %s.", format.Plural(a.Unread, "lane"), format.Error(err)))
	case a.Unread > 0:
		notes = append(notes, fmt.Sprintf("The logs of %s are being read.", format.Plural(a.Unread, "job")))
	}
	return strings.Join(notes, " ")
}

// A folding makes lanes of one answer.
type folding struct {
	q                 *stripQuery
	now               time.Time
	replicas, reasons index
}

// An index has each text once.
type index struct {
	all    *[]string
	places map[string]int
}

// of returns the place of a text, from 1; 0 for none.
func (x *index) of(text string) int {
	if text == "" {
		return 0
	}
	if x.places == nil {
		x.places = map[string]int{}
	}
	if x.places[text] == 0 {
		*x.all = append(*x.all, text)
		x.places[text] = len(*x.all)
	}
	return x.places[text]
}

func (f *folding) lane(row *view.Job, l *past.Lane, cells []past.Cell, next []int64) stripLane {
	if f.q.from.IsZero() {
		cells = cells[max(0, len(cells)-laneCells):]
	} else {
		cells = slots(cells, f.q.from.Unix(), f.q.to.Unix())
	}
	lane := stripLane{Job: row.Name, Trouble: row.Trouble, Next: next, Since: l.Since,
		At: []int64{}, By: []int{}, Why: []int{}, Ticks: []int{}}
	last, what := int64(0), ""
	for i := range cells {
		c := &cells[i]
		lane.At, last = append(lane.At, c.At-last), c.At
		what += letters[c.Status]
		lane.By, lane.Ticks = append(lane.By, f.replicas.of(c.Replica)), append(lane.Ticks, c.Count)
		lane.Why = append(lane.Why, f.reasons.of(reasonOf(c)))
	}
	lane.What = what
	return lane
}

// reasonOf says why a cell is as it is, and if it took more than one attempt.
func reasonOf(c *past.Cell) string {
	if c.Attempt < 2 {
		return c.Reason
	}
	attempt := "attempt " + strconv.Itoa(c.Attempt)
	if c.Reason == "" {
		return attempt
	}
	return attempt + ", " + c.Reason
}

// slots returns the cells of a time, as many as there is room for: those of one part of it are one cell, which shows the gravest
// of their outcomes, and the last replica.
func slots(cells []past.Cell, from, to int64) (all []past.Cell) {
	last, width := int64(-1), (to-from+laneSlots-1)/laneSlots // parts begin where they do at any time that is asked for
	for _, c := range cells {
		if c.At < from || c.At >= to {
			continue
		}
		slot := c.At / width
		if slot != last {
			all, last = append(all, c), slot
			continue
		}
		sum := &all[len(all)-1]
		count, more, replica := sum.Count+c.Count, sum.More || c.More, cmp.Or(c.Replica, sum.Replica)
		if slices.Index(grave, c.Status) <= slices.Index(grave, sum.Status) {
			*sum = c
		}
		sum.Count, sum.More, sum.Replica = count, more, replica
	}
	return all
}

// parseStrip reads the parameters of a strip.
func parseStrip(values map[string]string, now time.Time) (q stripQuery, err error) {
	q.limit = mostLanes
	err = readEach(values, "q, from, to, after, offset or limit", map[string]func(value string) error{
		"q":      func(value string) error { q.text = strings.ToLower(value); return nil },
		"from":   func(value string) (err error) { q.from, err = agoOf("from", value, now); return err },
		"to":     func(value string) (err error) { q.to, err = agoOf("to", value, now); return err },
		"after":  func(value string) error { q.after = value; return nil },
		"offset": func(value string) (err error) { q.offset, err = numberOf("offset", value, 0, 1<<31-1); return err },
		"limit":  func(value string) (err error) { q.limit, err = numberOf("limit", value, 1, mostLanes); return err },
	})
	if err != nil || q.from.IsZero() && q.to.IsZero() {
		return q, err
	}
	if q.to.IsZero() {
		q.to = now
	}
	if q.from.IsZero() {
		q.from = q.to.Add(-24 * time.Hour)
	}
	if span := q.to.Sub(q.from); span < laneSlots*time.Second || span > mostSpan {
		return q, fmt.Errorf("from and to are %s apart: want from %s to %s", span, laneSlots*time.Second, mostSpan)
	}
	return q, nil
}

func agoOf(name, value string, now time.Time) (time.Time, error) {
	at, err := (format.Clock{Now: now}).Ago(value)
	if err != nil {
		err = fmt.Errorf("%s is %q: %w", name, format.Brief(value), err)
	}
	return at, err
}

// stripMarks knows when lanes last changed. A mark of another process is of no use: all lanes have changed since. It is locked
// for a whole answer: the mark of that stands for no change that is not in it.
type stripMarks struct {
	sync.Mutex
	process string
	count   int64
	all     map[string]stripMark
}

// A stripMark is what a lane was made of, and the number of the change that made it so.
type stripMark struct {
	key   string
	since int64
}

func newStripMarks(now time.Time) *stripMarks {
	return &stripMarks{process: strconv.FormatInt(now.UnixNano(), 36), all: map[string]stripMark{}}
}

// changed reports whether a lane has changed since a mark.
func (m *stripMarks) changed(job, key, mark string) bool {
	is := m.all[job]
	if is.key != key {
		m.count++
		is = stripMark{key, m.count}
		m.all[job] = is
	}
	process, count, _ := strings.Cut(mark, ".")
	seen, err := strconv.ParseInt(count, 10, 64)
	return err != nil || process != m.process || is.since > seen
}

func (m *stripMarks) String() string { return m.process + "." + strconv.FormatInt(m.count, 10) }
