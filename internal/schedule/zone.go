package schedule

import (
	"errors"
	"math"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a container from scratch has no zones of its own
)

// span says: from this instant on, the zone's clock shows UTC plus off seconds.
type span struct{ from, off int64 }

// spans is a zone: its offsets in order. The first one has no beginning, the last one has no end.
type spans []span

// drift bounds how far two offsets of one zone lie apart, so also how far a fold or a gap reaches.
const drift = 2 * day

var (
	firstRule = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastRule  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// index returns the span that an instant belongs to.
func (z spans) index(t int64) int {
	lo, hi := 0, len(z)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; z[mid].from <= t {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// end returns the first instant after span i.
func (z spans) end(i int) int64 {
	if i+1 < len(z) {
		return z[i+1].from
	}
	return math.MaxInt64
}

// peak returns the furthest wall reading shown up to an instant of span i: the reading at that instant, unless clocks
// went back.
func (z spans) peak(t int64, i int) int64 {
	w := t + z[i].off
	for ; i > 0 && z[i].from > t-drift; i-- {
		w = max(w, z[i].from-1+z[i-1].off)
	}
	return w
}

// reach returns the first instant that shows a wall reading or a later one.
func (z spans) reach(w int64) int64 {
	for i := z.index(w - drift); ; i++ {
		if t := max(z[i].from, w-z[i].off); t < z.end(i) {
			return t
		}
	}
}

// newSpans reads a zone's offsets out of package time.
func newSpans(loc *time.Location) spans {
	z := make(spans, 0, 2*230)
	for t := firstRule; t < lastRule; {
		at := time.Unix(t, 0).In(loc)
		if _, off := at.Zone(); len(z) == 0 || z[len(z)-1].off != int64(off) {
			z = append(z, span{t, int64(off)})
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
	z[0].from = math.MinInt64
	return append(spans(nil), z...)
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/"

// A zone is what is known of an IANA zone. It takes up to 30 kB, and thousands of jobs may have the same.
type zone struct {
	loc   *time.Location
	spans spans
}

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
		if meant := meantZone(name); meant != "" {
			return nil, errors.New("is unknown" + meant)
		}
		return nil, errors.New("is unknown; want an IANA name such as Europe/Berlin, or UTC")
	}
	z, _ := zones.LoadOrStore(name, &zone{loc, newSpans(loc)})
	return z.(*zone), nil
}
