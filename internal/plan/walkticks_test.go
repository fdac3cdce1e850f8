package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// grid is a schedule: each multiple of a period since the day before.
type grid time.Duration

func every(period string) grid {
	d, _ := time.ParseDuration(period)
	return grid(d)
}

func (g grid) Last(at time.Time) time.Time {
	first := midnight.AddDate(0, 0, -1)
	return first.Add(at.Sub(first).Truncate(time.Duration(g)))
}
func (g grid) Next(after time.Time) time.Time { return g.Last(after).Add(time.Duration(g)) }
func (g grid) Count(after, to time.Time, limit int) int {
	return min(limit, max(0, int(g.Last(to).Sub(g.Last(after))/time.Duration(g))))
}

// A prior is a job that this one follows, which does whatever it likes.
type prior struct {
	rec  store.Record
	all  []store.Outcome // oldest first; Start is when it was written
	seen Predecessor     // what is known of it
}

// precede lets the jobs before this one have outcomes.
func (w *world) precede() {
	for _, b := range w.prior {
		for w.calm || w.IntN(3) > 0 {
			tick, through := w.p.Ticks.Next(b.rec.Watermark), w.p.Ticks.Last(w.now)
			if tick.After(w.now) {
				break
			}
			f := store.Outcome{Tick: tick, Status: pick(w, store.Succeeded, store.Succeeded, store.Failed, store.Cancelled), Start: w.now, End: w.now}
			if w.IntN(8) == 0 {
				f.Request, f.Status = "by hand", store.Succeeded
			} else if w.IntN(5) == 0 || w.now.Sub(tick) > time.Hour {
				f = store.Outcome{From: b.rec.Watermark, Tick: through, Count: 2, Status: pick(w, store.Missed, store.Skipped), Start: w.now}
			}
			b.all, b.rec.History = append(b.all, f), append([]store.Outcome{f}, b.rec.History[:min(len(b.rec.History), 19)]...)
			if f.Request == "" {
				b.rec.Watermark = f.Tick
			}
			w.say("%s: %s %s", b.rec.Job, f.Status, f.Tick.Format(time.TimeOnly))
		}
		b.seen = b.seen.Updated(&b.rec, w.now)
	}
}

// ready returns when a tick could be run: when it came due, or when the last of the jobs before this one had its outcome. It is zero
// if it could not; then status and reason say why, unless a job before is not that far.
func (w *world) ready(tick time.Time) (at time.Time, status store.Status, reason string) {
	at = tick
	for _, b := range w.prior {
		i := slices.IndexFunc(b.all, func(f store.Outcome) bool { return f.Request == "" && !f.Tick.Before(tick) })
		switch {
		case i < 0:
			return time.Time{}, "", ""
		case i < len(b.all)-len(b.rec.History):
			return time.Time{}, store.Missed, "the outcome of " + b.rec.Job + " is not known"
		case b.all[i].Status != store.Succeeded && !w.p.AfterAny:
			return time.Time{}, store.Skipped, b.rec.Job + " " + string(b.all[i].Status)
		}
		at = instant.Later(at, b.all[i].Start)
	}
	return at, "", ""
}

// newest returns the newest tick that could be run now, zero if there is none.
func (w *world) newest() (tick time.Time) {
	if !w.p.Follows() {
		return w.p.Ticks.Last(w.now)
	}
	for _, b := range w.prior { // what holds of a tick holds up to the next outcome of some job before
		for _, f := range slices.Backward(b.all) {
			if at, _, _ := w.ready(f.Tick); !at.IsZero() {
				tick = instant.Later(tick, f.Tick)
				break
			}
		}
	}
	return tick
}
