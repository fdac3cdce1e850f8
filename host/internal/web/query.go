package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
)

// mostRows is how many jobs one answer has at most.
const mostRows = 100

// asked reads what a request asks for. It returns false if it has answered that the request is wrong.
func asked[Q any](w http.ResponseWriter, r *http.Request, parse func(map[string]string) (Q, error)) (q Q, ok bool) {
	values, err := parameters(r)
	if err == nil {
		q, err = parse(values)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
	}
	return q, err == nil
}

// A query is which jobs a list shows, and in what order.
type query struct {
	text          string    // in lower case; it is in the name, the schedule, the replica or the note
	states        []string  // one of them; empty: any
	trouble       bool      // only jobs to look at
	is            view.Look // only such jobs; empty: any
	of            string    // only the shards of this job; empty: any
	whole         bool      // the shards of a job are one row
	sort          string    // a key of sorts
	reverse       bool
	offset, limit int
}

// sorts are the orders of a list. Jobs that are equal in one are in the order of their names.
var sorts = map[string]func(a, b *view.Job) int{
	"name":     func(a, b *view.Job) int { return 0 },
	"trouble":  func(a, b *view.Job) int { return cmp.Compare(a.Rank(), b.Rank()) },
	"state":    func(a, b *view.Job) int { return cmp.Compare(rank(a), rank(b)) },
	"schedule": func(a, b *view.Job) int { return cmp.Compare(a.Schedule, b.Schedule) },
	"next":     func(a, b *view.Job) int { return compareTimes(a.Next, b.Next) },
	"last":     func(a, b *view.Job) int { return compareTimes(lastMoment(a), lastMoment(b)) },
	"took":     func(a, b *view.Job) int { return cmp.Compare(a.Took(), b.Took()) },
	"failures": func(a, b *view.Job) int { return cmp.Compare(a.Failures, b.Failures) },
}

// parseQuery reads the parameters of a list. An unknown one is an error: without it, a
// mistyped filter would show all jobs.
func parseQuery(values map[string]string) (q query, err error) {
	q = query{sort: "name", limit: mostRows}
	err = readEach(values, "q, state, trouble, is, of, whole, sort, offset or limit", map[string]func(value string) error{
		"q":       func(value string) error { q.text = strings.ToLower(value); return nil },
		"state":   func(value string) error { q.states = strings.Split(value, ","); return nil },
		"trouble": func(value string) (err error) { q.trouble, err = flagOf("trouble", value); return err },
		"is":      func(value string) (err error) { q.is, err = lookOf(value); return err },
		"of":      func(value string) error { q.of = value; return nil }, // a page of shards has them all
		"whole":   func(value string) (err error) { q.whole, err = flagOf("whole", value); return err },
		"sort":    func(value string) (err error) { q.sort, q.reverse, err = sortOf(value); return err },
		"offset":  func(value string) (err error) { q.offset, err = numberOf("offset", value, 0, 1<<31-1); return err },
		"limit":   func(value string) (err error) { q.limit, err = numberOf("limit", value, 1, mostRows); return err },
	})
	if q.of != "" && values["limit"] == "" {
		q.limit = mostShards
	}
	return q, err
}

// mostShards is how many shards a job can have.
const mostShards = 256

// readEach reads the parameters of a request, each as it is known; want names them all.
func readEach(values map[string]string, want string, known map[string]func(value string) error) error {
	for name, value := range values {
		read := known[name]
		if read == nil {
			return fmt.Errorf("unknown parameter %q: want %s", format.Brief(name), want)
		}
		if err := read(value); err != nil {
			return err
		}
	}
	return nil
}

func flagOf(name, value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, fmt.Errorf("%s is %q: want true or false", name, format.Brief(value))
	}
	return value == "true", nil
}

func lookOf(value string) (view.Look, error) {
	if !slices.Contains(view.Looks, view.Look(value)) {
		return "", fmt.Errorf("is is %q: want failing, running, late, paused or due", format.Brief(value))
	}
	return view.Look(value), nil
}

func sortOf(value string) (key string, reverse bool, err error) {
	key, reverse = strings.CutPrefix(value, "-")
	if sorts[key] == nil {
		return "", false, fmt.Errorf("sort is %q: want name, trouble, state, schedule, next, last, took or failures, or one of them after a hyphen for the reverse order", format.Brief(value))
	}
	return key, reverse, nil
}

func numberOf(name, value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q: want a number from %d to %d", name, format.Brief(value), least, most)
	}
	return n, nil
}

// page returns the rows of one page, and how many match in all.
func (q query) page(rows []view.Job, now time.Time) (page []view.Job, matched int) {
	var all []*view.Job // a row is large, and there may be thousands
	for i := range rows {
		if q.matches(&rows[i]) && (q.is == "" || rows[i].Is(q.is, now)) {
			all = append(all, &rows[i])
		}
	}
	var parts map[string]map[view.State]int
	if q.whole {
		all, parts = wholes(all)
	}
	slices.SortFunc(all, q.compare)
	page = []view.Job{}
	for _, row := range all[min(q.offset, len(all)):min(q.offset+q.limit, len(all))] {
		whole := row.Whole()
		if row.Shard != nil {
			whole.Parts = parts[row.Shard.Whole]
		}
		page = append(page, whole)
	}
	return page, len(all)
}

// wholes leaves of the shards of each job the one that an operator should look at first, and counts in which states they are.
func wholes(all []*view.Job) (few []*view.Job, parts map[string]map[view.State]int) {
	parts = map[string]map[view.State]int{}
	place := map[string]int{}
	for _, row := range all {
		if row.Shard == nil {
			few = append(few, row)
			continue
		}
		name := row.Shard.Whole
		i, known := place[name]
		switch {
		case !known:
			parts[name], place[name] = map[view.State]int{}, len(few)
			few = append(few, row)
		case rank(row) < rank(few[i]):
			few[i] = row
		}
		parts[name][row.State]++
	}
	return few, parts
}

func (q query) matches(row *view.Job) bool {
	switch {
	case q.trouble && !row.Trouble, q.of != "" && (row.Shard == nil || row.Shard.Whole != q.of):
		return false
	case q.states != nil && !slices.Contains(q.states, string(row.State)):
		return false
	case q.text == "":
		return true
	}
	text := row.Name + "\n" + row.Schedule + "\n" + row.Replica
	if row.Progress != nil {
		text += "\n" + row.Progress.Note
	}
	return strings.Contains(strings.ToLower(text), q.text)
}

func (q query) compare(a, b *view.Job) int {
	order := cmp.Or(sorts[q.sort](a, b), strings.Compare(a.Name, b.Name))
	if q.reverse {
		return -order
	}
	return order
}

// rank puts first what an operator should look at, then what runs.
func rank(row *view.Job) int {
	switch {
	case row.Trouble:
		return 0
	case row.Tone() == format.Yellow:
		return 1
	case row.State != view.Idle:
		return 2
	}
	return 3
}

// compareTimes puts a time that is not known last.
func compareTimes(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return a.Compare(b)
	case a.IsZero():
		return 1
	}
	return -1
}

func lastMoment(row *view.Job) time.Time {
	if row.Last == nil {
		return time.Time{}
	}
	return format.Moment(row.Last)
}

// parameters returns the parameters of a request, each of which may be there once. What cannot be parsed is an
// error: if it were ignored, the answer would show everything instead of what was asked for.
func parameters(r *http.Request) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	once := map[string]string{}
	for name, all := range values {
		if len(all) > 1 {
			return nil, fmt.Errorf("the parameter %s is there %d times: want it once", format.Brief(name), len(all))
		}
		once[name] = all[0]
	}
	return once, nil
}
