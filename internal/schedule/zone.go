package schedule

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a container from scratch has no zones of its own
)

// A Wall is what the clock on the wall shows in a zone: its offsets in order. A reading is what the clock shows, in seconds, as
// if the zone were UTC; a day is a number of days since 1970-01-01.
type Wall []span

// span says: from this instant on, the zone's clock shows UTC plus off seconds. The first one has no beginning, the last one has
// no end.
type span struct{ from, off int64 }

// drift bounds how far two offsets of one zone lie apart, so also how far a fold or a gap reaches.
const drift = 2 * day

var (
	firstRule = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastRule  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// index returns the span that an instant belongs to.
func (w Wall) index(t int64) int {
	lo, hi := 0, len(w)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; w[mid].from <= t {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// end returns the first instant after span i.
func (w Wall) end(i int) int64 {
	if i+1 < len(w) {
		return w[i+1].from
	}
	return math.MaxInt64
}

// Day returns the day that is shown at an instant.
func (w Wall) Day(t int64) int64 { return floor(t+w[w.index(t)].off, day) }

// Peak returns the furthest reading that was shown up to an instant: the reading at that instant, unless clocks went back.
func (w Wall) Peak(t int64) int64 {
	i := w.index(t)
	far := t + w[i].off
	for ; i > 0 && w[i].from > t-drift; i-- {
		far = max(far, w[i].from-1+w[i-1].off)
	}
	return far
}

// Reach returns the first instant that shows a reading or a later one.
func (w Wall) Reach(reading int64) int64 {
	for i := w.index(reading - drift); ; i++ {
		if t := max(w[i].from, reading-w[i].off); t < w.end(i) {
			return t
		}
	}
}

// newWall reads a zone's offsets out of package time.
func newWall(loc *time.Location) Wall {
	w := make(Wall, 0, 2*230)
	for t := firstRule; t < lastRule; {
		at := time.Unix(t, 0).In(loc)
		if _, off := at.Zone(); len(w) == 0 || w[len(w)-1].off != int64(off) {
			w = append(w, span{t, int64(off)})
		}
		_, end := at.ZoneBounds()
		if end.IsZero() {
			break
		}
		if t++; end.Unix() > t {
			t = end.Unix()
		} else {
			// On 31 December of a leap year ZoneBounds ends before it begins: package time counts 365 days.
			t = (floor(t, day) + 1) * day
		}
	}
	w[0].from = math.MinInt64
	return slices.Clone(w)
}

// A Piece is a stretch of time in which one day is shown, at one offset: instants from From on, and before To.
type Piece struct{ From, To, Off int64 }

// Pieces returns the pieces of a day in the order of time: one, more if clocks change on it, and none if the zone leaves it out.
func (w Wall) Pieces(d int64) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		for i := w.index(d*day - drift); i < len(w) && (i == 0 || w[i].from < (d+1)*day+drift); i++ {
			p := Piece{max(d*day-w[i].off, w[i].from), min((d+1)*day-w[i].off, w.end(i)), w[i].off}
			if p.From < p.To && !yield(p) {
				return
			}
		}
	}
}

// Rules calls f for the offset at an instant, and for each later one before another instant, with the instant from which on
// it counts.
func (w Wall) Rules(from, to int64, f func(at, off int64)) {
	for i := w.index(from); i < len(w) && w[i].from < to; i++ {
		f(max(w[i].from, from), w[i].off)
	}
}

// Missing calls f for each day that the zone leaves out: its clock has gone over all of it.
func (w Wall) Missing(f func(d int64)) {
	for i := 1; i < len(w); i++ {
		before, after := w[i].from+w[i-1].off, w[i].from+w[i].off
		for d := floor(before+day-1, day); (d+1)*day <= after; d++ {
			f(d)
		}
	}
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/"

// A zone is what is known of an IANA zone. It takes up to 30 kB, and thousands of jobs may have the same.
type zone struct {
	loc  *time.Location
	wall Wall
}

func (z *zone) name() string { return z.loc.String() }

var zones sync.Map // of *zone, by name

// LoadZone finds an IANA zone. It refuses what differs between machines: the local zone, and names that only some systems
// have. The error completes a sentence that begins with the name.
func LoadZone(name string) (*time.Location, error) {
	z, err := openZone(name)
	if err != nil {
		return nil, err
	}
	return z.loc, nil
}

// openZone is LoadZone with the offsets of the zone. Each zone is read once.
func openZone(name string) (*zone, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	switch {
	case name == "":
		return nil, errors.New("is empty; want an IANA name such as Europe/Berlin, or UTC")
	case strings.EqualFold(name, "Local"), strings.EqualFold(name, "localtime"), name == "posixrules":
		return nil, errors.New("differs between machines; want an IANA name such as Europe/Berlin, or UTC")
	case strings.HasPrefix(name, "posix/"), strings.HasPrefix(name, "right/"):
		return nil, errors.New("is not known everywhere; leave out what stands before the first /")
	case len(name) > 64, strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(letters, r) }):
		return nil, errors.New("is not an IANA name such as Europe/Berlin" + meantZone(name[:min(len(name), 64)]))
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("is unknown" + cmp.Or(meantZone(name), "; want an IANA name such as Europe/Berlin, or UTC"))
	}
	z, _ := zones.LoadOrStore(name, &zone{loc, newWall(loc)})
	return z.(*zone), nil
}
