package why

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
)

// A Moment is what somebody asks about: the ticks from one instant on and before another. Zero: nothing in particular.
type Moment struct {
	From, To time.Time
	Last     bool      // the last tick up to From
	Again    time.Time // the clock shows the same once more from then on
	Gap      string    // the clock does not show what was asked for; From is the first instant after that
	Text     string    // as it was given
}

// IsZero reports whether nothing in particular is asked for.
func (m Moment) IsZero() bool { return m.From.IsZero() }

// layouts are those of a local time, and how long what they name lasts.
var layouts = []struct {
	layout string
	dated  bool
	lasts  time.Duration
}{
	{"15:04", false, time.Minute}, {"15:04:05", false, time.Second}, {time.DateOnly, true, 0},
	{"2006-01-02T15:04", true, time.Minute}, {"2006-01-02 15:04", true, time.Minute}, {"2006-01-02T15:04:05", true, time.Second}, {"2006-01-02 15:04:05", true, time.Second},
}

var errMoment = errors.New("want a tick's instant such as 2026-03-29T01:00:00Z, a local time of the job such as 02:30 or 2026-03-29T02:30, a date such as 2026-03-29, or a span ago such as 90m or 7d")

// ReadMoment reads an instant, a time of the zone, a date in it, or a span before now.
func ReadMoment(text string, now time.Time, zone *time.Location) (m Moment, err error) {
	if d, ok := format.ReadSpan(text); ok {
		return Moment{From: now.Add(-d), Last: true, Text: text}, nil
	}
	if at, ok := format.Instant(text); ok {
		m = Moment{From: at.Truncate(time.Second), To: at.Truncate(time.Second).Add(time.Second), Text: text}
		return m, m.check()
	}
	for _, l := range layouts {
		wall, err := time.Parse(l.layout, text)
		if err != nil {
			continue
		}
		switch {
		case l.lasts == 0:
			m = Moment{From: firstOf(wall, zone), To: firstOf(wall.AddDate(0, 0, 1), zone)}
		case l.dated:
			m = shown(wall, l.lasts, zone)
		default:
			m = today(wall, l.lasts, now, zone)
		}
		m.Text = text
		return m, m.check()
	}
	return m, errMoment
}

func (m Moment) check() error {
	if m.From.Year() < 1970 || m.From.Year() > 9000 {
		return errMoment
	}
	return nil
}

// today is the last time up to now that the clock showed a time of day.
func today(wall time.Time, lasts time.Duration, now time.Time, zone *time.Location) Moment {
	y, month, d := now.In(zone).Date()
	m := shown(time.Date(y, month, d, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC), lasts, zone)
	if m.From.After(now) {
		m = shown(time.Date(y, month, d-1, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC), lasts, zone)
	}
	return m
}

// firstOf is the first instant of a date.
func firstOf(date time.Time, zone *time.Location) time.Time {
	return shown(date, time.Second, zone).From
}

const plainTime = "2006-01-02 15:04:05"

// shown returns when the clock of a zone shows a time, whose fields are given in UTC.
func shown(wall time.Time, lasts time.Duration, zone *time.Location) Moment {
	var all []time.Time
	for _, probe := range [...]time.Duration{-24 * time.Hour, 24 * time.Hour} { // a clock changes at most once in that time
		_, offset := wall.Add(probe).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if at.In(zone).Format(plainTime) == wall.Format(plainTime) && (len(all) == 0 || !all[0].Equal(at)) {
			all = append(all, at)
		}
	}
	switch len(all) {
	case 0:
		return gap(wall, lasts, zone)
	case 1:
		return Moment{From: all[0], To: all[0].Add(lasts)}
	}
	return Moment{From: all[0], To: all[0].Add(lasts), Again: all[1]}
}

// gap is the change of the clock that skips a time.
func gap(wall time.Time, lasts time.Duration, zone *time.Location) Moment {
	_, offset := wall.Add(-24 * time.Hour).In(zone).Zone()
	at := wall.Add(-time.Duration(offset) * time.Second).In(zone) // by the clock before the change it is after that
	change, _ := at.ZoneBounds()
	before := change.Add(-time.Second).UTC().Add(time.Duration(offset)*time.Second + time.Second)
	return Moment{From: change, To: change.Add(lasts), Gap: fmt.Sprintf("%s does not exist on %s in %s: clocks go forward from %s to %s",
		wall.Format("15:04"), wall.Format(time.DateOnly), zone, before.Format("15:04"), change.In(zone).Format("15:04"))}
}

// moment answers for the ticks of a moment.
func (a *asking) moment(m Moment) {
	switch {
	case m.Last:
		tick := a.Ticks.Last(m.From)
		if tick.IsZero() {
			a.none(m)
			return
		}
		a.tick(tick)
	case m.To.Sub(m.From) > time.Hour:
		a.day(m)
	default:
		a.one(m)
	}
}

// one answers for the only tick of a moment, or the first of some.
func (a *asking) one(m Moment) {
	tick, ok := a.firstIn(m.From, m.To)
	again := false
	if !m.Again.IsZero() {
		later, twice := a.firstIn(m.Again, m.Again.Add(m.To.Sub(m.From)))
		a.know("clocks go back on that day, so they show %s twice: at %s and at %s", m.Text, format.Stamp(m.From), format.Stamp(m.Again))
		if !ok {
			tick, ok, again = later, twice, twice
		}
	}
	if !ok {
		if o := a.outcomeIn(m); o != nil {
			a.know("by the schedule that this program has there is no tick then")
			a.ended(o, earlier(o.Tick, m.From))
			return
		}
		a.none(m)
		return
	}
	a.tick(tick)
	if m.Gap != "" {
		a.Cause, a.Sentence = NoSuch, format.Line(m.Gap+", where its tick is, "+format.Stamp(tick)+"; as for that, "+a.Sentence)
	} else if again {
		a.know("the tick is that of the second time")
	}
}

// firstIn returns the first tick of a span of time.
func (f *Facts) firstIn(from, to time.Time) (tick time.Time, ok bool) {
	tick = f.Ticks.Next(from.Add(-1))
	return tick, !tick.IsZero() && tick.Before(to)
}

// outcomeIn returns an outcome of a moment for which the schedule names no tick, such as a manual run, or a tick of another schedule.
func (f *Facts) outcomeIn(m Moment) *event.Outcome {
	for i := range f.Lines {
		o := &f.Lines[i].Outcome
		exact := o.From.IsZero() && !o.Tick.Before(m.From) && o.Tick.Before(m.To)
		if exact || o.Reason == scheduleChanged && m.From.After(o.From) && !m.From.After(o.Tick) {
			return o
		}
	}
	return nil
}

// day answers for the ticks of a day: the newest that did not succeed, else all of them.
func (a *asking) day(m Moment) {
	last := a.Ticks.Last(m.To.Add(-1))
	if last.Before(m.From) {
		a.none(m)
		return
	}
	n := a.Ticks.Count(m.From.Add(-1), last, mostCounted)
	first, _ := a.firstIn(m.From, m.To)
	if n > 1 {
		a.know("the day has %s, from %s to %s", atMost(n), format.Stamp(first), format.Stamp(last))
	}
	r := &a.Status.Record
	for i := range a.Lines {
		o := &a.Lines[i].Outcome
		from := o.Tick
		if !o.From.IsZero() {
			from = o.From.Add(1)
		}
		if o.Request == "" && o.Status != event.Succeeded && !o.Tick.Before(first) && !from.After(last) {
			a.tick(a.Ticks.Last(earlier(o.Tick, last)))
			return
		}
	}
	if owed := a.Ticks.Last(earlier(last, a.Now)); n == 1 || first.After(a.Now) {
		a.tick(first)
	} else if !owed.Before(first) && owed.After(r.Watermark) && !a.runs(owed) {
		a.tick(owed)
	} else if oldest, _ := a.outcomeOf(first); oldest == nil {
		a.tick(first)
	} else {
		a.say(Succeeded, "its ticks of that day up to %s have succeeded", format.Stamp(earlier(r.Watermark, last)))
	}
}

// mostCounted is how many ticks of a day are counted.
const mostCounted = 1000

func atMost(n int) string {
	if n == mostCounted {
		return "at least " + format.Plural(n, "tick")
	}
	return format.Plural(n, "tick")
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ahead answers for a tick to come.
func (a *asking) ahead(tick time.Time) {
	a.say(NotDue, "it is not due: it comes due %s", format.Relative(tick, a.Now))
	if p := a.pauseNow(); p != nil {
		a.know("the job is paused %s", p.words)
	}
}

// none says why the schedule names no tick at a moment.
func (a *asking) none(m Moment) {
	j := &a.First.Days
	switch left, moved := a.left(m); {
	case !j.From.IsZero() && !m.To.After(j.From) && !m.Last, m.Last && a.Ticks.Last(m.From).IsZero() && !j.From.IsZero():
		a.say(Bounds, "that is before From, %s, when the ticks of the job begin", format.Stamp(j.From))
	case !j.Until.IsZero() && !m.From.Before(j.Until):
		a.say(Bounds, "that is after the last tick: the job has no ticks from Until, %s, on", format.Stamp(j.Until))
	case left != "" && moved != "":
		a.say(LeftDay, "%s: its ticks of that day move to %s", left, moved)
	case left != "":
		a.say(LeftDay, "%s", left)
	case m.Gap != "":
		a.say(NoSuch, "%s", m.Gap)
	default:
		a.say(NoTick, "the schedule, %s, has no tick then", a.Ticks.Words())
	}
	if last := a.Ticks.Last(m.From); !last.IsZero() {
		a.know("the tick before is %s", format.Stamp(last))
	}
	if next := a.Ticks.Next(m.From); !next.IsZero() {
		a.know("the next tick is %s", format.Stamp(next))
	}
	if a.Status.Foreign {
		a.open("which ticks the definition in force has: it is another one than that of this program")
	}
}

// left says which calendars leave out the day of a moment for which the schedule itself has a tick, and where that moves to; empty: none
// does, or it is removed.
func (f *Facts) left(m Moment) (words, moved string) {
	if plain := f.Ticks.Schedule.Next(m.From.Add(-1)); m.Last || plain.IsZero() || !plain.Before(m.To) {
		return "", ""
	}
	for _, l := range f.Ticks.LeftOut(m.From.Add(-1), m.To, 1) {
		if l.Day != calendar.DayOf(m.From.In(f.Ticks.Location())) {
			continue
		}
		if l.To != (calendar.Day{}) {
			moved = l.To.String()
		}
		names := strings.Join(l.By, ", ")
		if l.Only {
			return fmt.Sprintf("the calendars leave that day out: %s is no day of %s", l.Day, names), moved
		}
		return fmt.Sprintf("a calendar leaves that day out: %s is a day of %s", l.Day, names), moved
	}
	return "", ""
}
