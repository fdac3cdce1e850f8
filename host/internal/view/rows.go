package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
)

// A Row is a line of a table of jobs: a job or singleton, or all shards of one.
type Row struct {
	Name string
	Jobs []Job // more than one: its shards
}

// Rows are the rows of jobs. Those in trouble come first.
func Rows(a *app.App, views []Job) (rows []Row) {
	for _, v := range views {
		name := a.Whole(v.Name)
		if last := len(rows) - 1; last >= 0 && rows[last].Name == name {
			rows[last].Jobs = append(rows[last].Jobs, v)
		} else {
			rows = append(rows, Row{Name: name, Jobs: []Job{v}})
		}
	}
	for i := range rows {
		if len(rows[i].Jobs) == 1 {
			rows[i].Name = rows[i].Jobs[0].Name
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return before(a.Trouble(), b.Trouble()) })
	return rows
}

// before is negative if the first alone is true, which then comes first, and positive if the second is.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Trouble reports whether an operator should look at it.
func (r Row) Trouble() bool { return slices.ContainsFunc(r.Jobs, Job.Wrong) }

// Wrong reports whether the job is in trouble, or nobody knows.
func (v Job) Wrong() bool { return v.Trouble || v.Error != "" }

// split reports whether these are several shards.
func (r Row) split() bool { return len(r.Jobs) > 1 }

// Tone is the colour of the state.
func (r Row) Tone() format.Tone {
	for _, tone := range []format.Tone{format.Red, format.Yellow} {
		if slices.ContainsFunc(r.Jobs, func(v Job) bool { return v.Tone() == tone }) {
			return tone
		}
	}
	return format.Normal
}

// ScheduleWords are the schedule, and how many shards there are.
func (r Row) ScheduleWords() string {
	v := r.Jobs[0]
	text := v.Schedule
	switch {
	case v.Kind == "singleton":
		text = "(singleton)"
	case slices.ContainsFunc(r.Jobs, func(v Job) bool { return v.Foreign }):
		text = "(differs)"
	}
	switch {
	case r.split():
		text += fmt.Sprintf(", %d shards", len(r.Jobs))
	case v.Shard != nil:
		text += ", " + v.Shard.String()
	}
	return text
}

// fewShards is for how many shards a state has the cells of all in its line.
const fewShards = 16

// StateWords are the state of a job, or the cells and the states of shards. Where there are many, the cells are below.
func (r Row) StateWords(c format.Clock) (text, below string) {
	if !r.split() {
		return r.Jobs[0].StateWords(c), ""
	}
	cells := r.cells()
	if len(r.Jobs) > fewShards {
		return r.tally(c), cells
	}
	return cells + " " + r.tally(c), ""
}

// Legend says what the cells of shards mean.
const Legend = "shards, from 0: . idle, r running, x in trouble, p paused, w waits for a replica, o over, ? not known"

// cells are a character for each shard.
func (r Row) cells() string {
	var b strings.Builder
	for _, v := range r.Jobs {
		b.WriteByte(v.cell())
	}
	return b.String()
}

func (v Job) cell() byte {
	switch v.State {
	case Idle:
		if !v.Wrong() {
			return '.'
		}
	case paused:
		return 'p'
	case over:
		return 'o'
	case armed, running, stopping:
		if !v.Wrong() {
			return 'r'
		}
	case Waiting, interrupted:
		return 'w'
	case unknown, noRecord:
		return '?'
	}
	return 'x'
}

// tally says how many shards are in which state, and names those in trouble.
func (r Row) tally(c format.Clock) string {
	var bad, rest []string
	count := map[State]int{}
	for _, v := range r.Jobs {
		if v.Wrong() {
			bad = append(bad, fmt.Sprintf("%d %s", v.Shard.Index, v.StateWords(c)))
		} else if count[v.State]++; count[v.State] == 1 {
			rest = append(rest, string(v.State))
		}
	}
	for i, state := range rest {
		rest[i] = fmt.Sprintf("%d %s", count[State(state)], state)
	}
	if len(bad) > 0 {
		bad = []string{"shard " + format.Names(bad)}
	}
	return strings.Join(append(bad, rest...), "; ")
}

// LastWords is the last outcome; of shards that of one in trouble, or the newest.
func (r Row) LastWords(c format.Clock) string {
	last := func(v Job) (at time.Time) {
		if v.Last != nil {
			at = format.Moment(v.Last)
		}
		return at
	}
	return slices.MinFunc(r.Jobs, func(a, b Job) int {
		return cmp.Or(before(a.Wrong(), b.Wrong()), last(b).Compare(last(a)))
	}).lastBrief(c)
}

// NextWords is the next tick; of shards the first.
func (r Row) NextWords(c format.Clock) string {
	return slices.MinFunc(r.Jobs, func(a, b Job) int {
		return cmp.Or(before(!a.Next.IsZero(), !b.Next.IsZero()), a.Next.Compare(b.Next))
	}).NextWords(c)
}

// Tally says how often each outcome came.
func (r Row) Tally() string {
	counts := map[event.Status]int64{}
	for _, v := range r.Jobs {
		for status, n := range v.Counts {
			counts[status] += n
		}
	}
	return format.Tally(counts)
}

// Shards reports whether a row has several.
func Shards(rows []Row) bool { return slices.ContainsFunc(rows, Row.split) }

// NotesOf are what there is to say of the jobs beyond their rows.
func NotesOf(rows []Row, c format.Clock) []string {
	var n Notes
	for _, r := range rows {
		for i := range r.Jobs {
			v := &r.Jobs[i]
			if v.Backfill != nil && v.Backfill.State != "cancelled" {
				n.Add(v.Name, v.Backfill.Words(c))
			}
			if v.Error != "" {
				n.Add(v.Name, v.Error)
			}
			for _, text := range v.Differs {
				n.Differ(r.Name, text)
			}
		}
	}
	return n.Lines()
}

// Lines are all words about a job, each with its title.
func (v Job) Lines(c format.Clock) [][2]string {
	var all [][2]string
	add := func(title, text string) {
		if text != "" && text != "-" {
			all = append(all, [2]string{title, text})
		}
	}
	add("state", v.StateWords(c))
	add("schedule", v.Schedule)
	if v.Shard != nil {
		add("shard", v.Shard.String())
	}
	add("last", v.LastWords(c))
	add("next", v.NextWords(c))
	add("counts", format.Tally(v.Counts))
	if v.Backfill != nil {
		add("backfill", v.Backfill.Words(c))
	}
	add("error", v.Error)
	for _, text := range v.Differs {
		add("differs", text)
	}
	return all
}
