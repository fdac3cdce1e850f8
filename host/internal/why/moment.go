package why

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/instant"
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

// layouts are those of a date and of local times. The first are of a time of day.
var layouts = []string{"15:04", time.TimeOnly, time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05"}

var errMoment = errors.New("want a tick's instant such as 2026-03-29T01:00:00Z, a local time of the job such as 02:30 or " +
	"2026-03-29T02:30, a date such as 2026-03-29, or a span ago such as 90m or 7d")

// ReadMoment reads an instant, a time of the zone, a date in it, or a span before now.
func ReadMoment(text string, now time.Time, zone *time.Location) (Moment, error) {
	if d, ok := format.ReadSpan(text); ok {
		return Moment{From: now.Add(-d), Last: true, Text: text}, nil
	}
	m := readLocal(text, now, zone)
	if at, ok := format.Instant(text); ok {
		at = at.Truncate(time.Second)
		m = Moment{From: at, To: at.Add(time.Second)}
	}
	if m.From.Year() < 1970 || m.From.Year() > 9000 {
		return m, errMoment
	}
	m.Text = text
	return m, nil
}

// readLocal reads a date or a local time; the zero Moment: it is none.
func readLocal(text string, now time.Time, zone *time.Location) Moment {
	for i, layout := range layouts {
		wall, err := time.Parse(layout, strings.Replace(text, " ", "T", 1))
		lasts := time.Minute
		if strings.HasSuffix(layout, ":05") {
			lasts = time.Second
		}
		switch {
		case err != nil:
		case layout == time.DateOnly:
			return Moment{From: format.Midnight(wall, zone), To: format.Midnight(wall.AddDate(0, 0, 1), zone)}
		case i > 1:
			return shown(wall, lasts, zone)
		default: // the last time up to now that the clock showed it
			y, month, d := now.In(zone).Date()
			wall = time.Date(y, month, d, wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC)
			if m := shown(wall, lasts, zone); !m.From.After(now) {
				return m
			}
			return shown(wall.AddDate(0, 0, -1), lasts, zone)
		}
	}
	return Moment{}
}

// shown returns when the clock of a zone shows a time, whose fields are given in UTC.
func shown(wall time.Time, lasts time.Duration, zone *time.Location) Moment {
	at, again, skips := format.Shown(wall, zone)
	m := Moment{From: at, To: at.Add(lasts), Again: again}
	if skips {
		_, offset := at.Add(-1).In(zone).Zone()
		before, after := at.In(time.FixedZone("", offset)), at.In(zone)
		m.Gap = fmt.Sprintf("%s does not exist on %s in %s: clocks go forward from %s to %s", wall.Format("15:04"),
			wall.Format(time.DateOnly), zone, before.Format("15:04"), after.Format("15:04"))
	}
	return m
}

// moment answers for the ticks of a moment.
func (a *asking) moment(m Moment) {
	switch {
	case m.Last:
		if tick := a.Ticks.Last(m.From); tick.IsZero() {
			a.none(m)
		} else {
			a.tick(tick)
		}
	case m.To.Sub(m.From) > time.Hour:
		a.day(m)
	default:
		a.one(m)
	}
}

// one answers for the only tick of a moment, or the first of some.
func (a *asking) one(m Moment) {
	tick := a.firstIn(m.From, m.To)
	again := false
	if !m.Again.IsZero() {
		a.know("clocks go back on that day, so they show %s twice: at %s and at %s", m.Text, format.Stamp(m.From), format.Stamp(m.Again))
		if tick.IsZero() {
			tick = a.firstIn(m.Again, m.Again.Add(m.To.Sub(m.From)))
			again = !tick.IsZero()
		}
	}
	if tick.IsZero() {
		if o := a.outcomeIn(m); o != nil {
			a.know("by the schedule that this program has there is no tick then")
			a.ended(o, instant.Earlier(o.Tick, m.From))
			return
		}
		a.none(m)
		return
	}
	a.tick(tick)
	if m.Gap != "" {
		a.say(NoSuch, "%s, where its tick is, %s; as for that, %s", m.Gap, format.Stamp(tick), a.Sentence)
	} else if again {
		a.know("the tick is that of the second time")
	}
}

// firstIn returns the first tick of a span of time; zero: there is none.
func (f *Facts) firstIn(from, to time.Time) time.Time {
	if tick := f.Ticks.Next(from.Add(-1)); tick.Before(to) {
		return tick
	}
	return time.Time{}
}

// outcomeIn returns an outcome of a moment for which the schedule names no tick, such as a manual run, or a tick of another schedule.
func (f *Facts) outcomeIn(m Moment) *event.Outcome {
	for _, o := range f.Lines {
		exact := o.From.IsZero() && !o.Tick.Before(m.From) && o.Tick.Before(m.To)
		if exact || o.Reason == scheduleChanged && isOf(&o.Outcome, m.From) {
			return &o.Outcome
		}
	}
	return nil
}

// day answers for the ticks of a day: the newest that did not succeed, else all of them.
func (a *asking) day(m Moment) {
	first, last := a.firstIn(m.From, m.To), a.Ticks.Last(m.To.Add(-1))
	if first.IsZero() {
		a.none(m)
		return
	}
	n := a.Ticks.Count(m.From.Add(-1), last, mostCounted)
	if n > 1 {
		many := ""
		if n == mostCounted {
			many = "at least "
		}
		a.know("the day has %s%s, from %s to %s", many, format.Plural(n, "tick"), format.Stamp(first), format.Stamp(last))
	}
	for _, o := range a.Lines {
		if o.Request == "" && o.Status != event.Succeeded && !o.Tick.Before(first) && (isOf(&o.Outcome, last) || !o.Tick.After(last)) {
			a.tick(a.Ticks.Last(instant.Earlier(o.Tick, last)))
			return
		}
	}
	watermark, owed := a.Status.Record.Watermark, a.Ticks.Last(instant.Earlier(last, a.Now))
	isFirst := func(l line) bool { return l.Request == "" && isOf(&l.Outcome, first) }
	if n > 1 && !owed.Before(first) && owed.After(watermark) && !a.isRunning(owed) {
		a.tick(owed)
	} else if n == 1 || first.After(a.Now) || !slices.ContainsFunc(a.Lines, isFirst) {
		a.tick(first)
	} else {
		a.say(Succeeded, "its ticks of that day up to %s have succeeded", format.Stamp(instant.Earlier(watermark, last)))
	}
}

// mostCounted is how many ticks of a day are counted.
const mostCounted = 1000

// ahead answers for a tick to come.
func (a *asking) ahead(tick time.Time) {
	a.say(NotDue, "it is not due: it comes due %s", format.Relative(tick, a.Now))
	if cause, words := a.pauseAt(a.Now); cause != "" {
		a.know("the job is paused %s", words)
	}
}

// none says why the schedule names no tick at a moment.
func (a *asking) none(m Moment) {
	j := &a.First.Days
	last, next := a.Ticks.Last(m.From), a.Ticks.Next(m.From)
	left := a.left(m)
	switch {
	case !j.From.IsZero() && (m.Last && last.IsZero() || !m.Last && !m.To.After(j.From)):
		a.say(Bounds, "that is before From, %s, when the ticks of the job begin", format.Stamp(j.From))
	case !j.Until.IsZero() && !m.From.Before(j.Until):
		a.say(Bounds, "that is after the last tick: the job has no ticks from Until, %s, on", format.Stamp(j.Until))
	case left != "":
		a.say(LeftDay, "%s", left)
	case m.Gap != "":
		a.say(NoSuch, "%s", m.Gap)
	default:
		a.say(NoTick, "the schedule, %s, has no tick then", a.Ticks.Words())
	}
	if !last.IsZero() {
		a.know("the tick before is %s", format.Stamp(last))
	}
	if !next.IsZero() {
		a.know("the next tick is %s", format.Stamp(next))
	}
	if since := a.Status.Record.Definition.Since; since.After(m.From) {
		a.open("which ticks the definition before had: the one in force is of a replica that started at %s", format.Stamp(since))
	}
	if a.Status.Foreign {
		a.open("which ticks the definition in force has: it is another one than that of this program")
	}
}

// left says which calendars leave out the day of a moment for which the schedule itself has a tick, and where that moves to.
// Empty: none does.
func (f *Facts) left(m Moment) string {
	if plain := f.Ticks.Schedule.Next(m.From.Add(-1)); m.Last || plain.IsZero() || !plain.Before(m.To) {
		return ""
	}
	for _, l := range f.Ticks.LeftOut(m.From.Add(-1), m.To, 1) {
		if l.Day != calendar.DayOf(m.From.In(f.Ticks.Location())) {
			continue
		}
		words := "a calendar leaves that day out: %s is a day of %s"
		if l.Only {
			words = "the calendars leave that day out: %s is no day of %s"
		}
		words = fmt.Sprintf(words, l.Day, strings.Join(l.By, ", "))
		if l.To != (calendar.Day{}) {
			words += ": its ticks of that day move to " + l.To.String()
		}
		return words
	}
	return ""
}
