package schedule_test

import (
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/schedule"
)

var (
	full = flag.Bool("full", false, "compare all zones and 2000 random texts with the oracle, for some minutes")
)

//go:embed zones.txt
var zoneList string

// awkward zones: midnight gaps, 30 minutes, 2 hours, negative DST, Ramadan, a lost date, a change at 00:01 or 24:00.
var awkward = []string{
	"America/New_York", "America/Santiago", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia",
	"Antarctica/Troll", "Africa/Casablanca", "Europe/Dublin", "Asia/Beirut", "America/Sao_Paulo", "America/St_Johns",
	"Asia/Gaza", "Asia/Tehran", "America/Nuuk", "Pacific/Chatham", "Asia/Pyongyang", "America/Caracas",
}

// texts in five fields, each of a different kind.
var texts = strings.Split(`* * * * *
*/5 * * * *
50/1 * * * *
*/35 * * * *
0 * * * *
30 * * * *
15,45 * * * *
0 */2 * * *
30 */3 * * *
0 8/4 * * *
0 0-5/2 * * *
*/20 2 * * *
*/30 0 * * *
* 1 * * *
* 23,0 * * *
10-50/20 0-3 * * *
0 0 * * *
1 0 * * *
30 0 * * *
0 1 * * *
30 1 * * *
59 1 * * *
0 2 * * *
15 2 * * *
30 2 * * *
59 2 * * *
0 3 * * *
30 23 * * *
59 23 * * *
0 0,1,2,3 * * *
0,15,30,45 0-3 * * *
0 0-23 * * *
0,30 0-23 * * *
0 1,13 * * *
30 2 * * 0
30 2 * * 7
0 0 * * 6,0
0 0 1 * *
0 0 30 12 *
30 2 8-14 3 0
ncrontab 30 2 8-14 3 0
ncrontab 0 0 * 3,4,9,10 0
ncrontab */10 0-2 * * 0,6
0 0 */2 * *
0 0 */2 * 1
0 12 31 * *
*/7 */5 */3 */2 */4
59 23 31 12 *
30 2 L * *
0 0 L-3,L-10 * *
30 1 L-1,L-30 3,10 *
0 0 LW * *
30 2 1W,15W,31W * *
*/20 0-3 8W,29W * *
0 1 L-3W,L-6W * *
0 0 1,15,L * *
30 2 * * sunL
*/30 1 * * 0L,6L
0 0 * * sun#1,sun#2
30 2 * * 7#5,fri#4
0 3 * * 1,sat#4,sunL
0 0 L * sun#3
30 2 */2,LW * mon#1
0 2 * * * ; 30 2 * * *
30 2 * * 0 ; 0 3 * * * ; 0 3 L * *
*/30 * * * * ; 15 2 * * * ; @every 7m
0 */2 * * * ; 0 0 LW * * ; 30 1 * * sunL
ncrontab 0 0 8-14 * 0 ; 30 1-3 * 3,10 0`, "\n")

// texts in six fields.
var fine = strings.Split(`* * * * * *
*/10 * * * * *
*/13 */7 * * * *
30 30 2 * * *
1,59 0,59 0-3 * * *
* 30 2 * * *
0 0 0 * * *
59 59 23 * * 0
5-20/5 59 1 * * *
30 30 1-3 L,15W * sun#2
15 30 2 * * * ; 0 */20 * * * * ; @every 90s
ncrontab 15 0 0 * * 6`, "\n")

// tally counts what was compared.
type tally struct{ windows, texts, ticks, probes, wrong, refused atomic.Int64 }

func (c *tally) String() string {
	return fmt.Sprintf("%d stretches, %d texts in them, %d ticks, %d probes between, %d refused texts, %d differences",
		c.windows.Load(), c.texts.Load(), c.ticks.Load(), c.probes.Load(), c.refused.Load(), c.wrong.Load())
}

// compare checks one schedule against the oracle in one stretch: its ticks, then what is asked every step seconds.
func (c *tally) compare(t *testing.T, s *schedule.Schedule, text, zone string, st *stretch, step int64) {
	want := st.ticks(newRules(text))
	end := st.at[len(st.at)-1] * st.unit
	c.texts.Add(1)
	c.ticks.Add(int64(len(want)))
	at := s.Next(time.Unix(st.begin*st.unit-1, 0))
	for i := 0; ; i++ {
		done := at.IsZero() || at.Unix() > end
		if i == len(want) && done {
			break
		}
		if done || i == len(want) || at.Unix() != want[i] {
			missing := "no further tick"
			if i < len(want) {
				missing = time.Unix(want[i], 0).UTC().String()
			}
			c.wrong.Add(1)
			t.Errorf("%q %s: got %v, want %s", text, zone, at, missing)
			return
		}
		at = s.Next(at)
	}
	c.probe(t, s, st, want, step)
}

// probe asks for the ticks around instants that are none: within gaps and second passes too.
func (c *tally) probe(t *testing.T, s *schedule.Schedule, st *stretch, want []int64, step int64) {
	end, i := st.at[len(st.at)-1]*st.unit, 0
	for x := st.begin * st.unit; x <= end; x += step {
		for i < len(want) && want[i] <= x {
			i++
		}
		c.probes.Add(1)
		next, last := s.Next(time.Unix(x, 999)).Unix(), s.Last(time.Unix(x, 999)).Unix()
		switch {
		case i < len(want) && next != want[i], i == len(want) && next > 0 && next <= end,
			i > 0 && last != want[i-1], i == 0 && last >= st.begin*st.unit:
			c.wrong.Add(1)
			t.Errorf("%s around %d: got %d, %d, want those of %d", s, x, last, next, want[max(0, i-1):min(i+1, len(want))])
			return
		}
	}
}

// parse gives the schedules of many texts; nil where a text never fires in this zone.
func (c *tally) parse(t *testing.T, list []string, zone string) []*schedule.Schedule {
	all := make([]*schedule.Schedule, len(list))
	for i, text := range list {
		s, err := schedule.Parse(text, zone, "job")
		if err != nil {
			c.refused.Add(1)
			if !strings.Contains(err.Error(), "never fires") {
				t.Errorf("%q %s: %v", text, zone, err)
			}
		}
		all[i] = s
	}
	return all
}

// changes returns the instants at which a zone's offset changed, and a key each: equal keys, equal readings around.
func changes(loc *time.Location, from, to time.Time) (at []time.Time, keys []string) {
	offset := func(t time.Time) int { _, off := t.In(loc).Zone(); return off }
	const step = 6 * time.Hour
	for t := from; t.Before(to); t = t.Add(step) {
		lo, hi := t, t.Add(step)
		if offset(lo) == offset(hi) {
			continue
		}
		for hi.Sub(lo) > time.Second {
			if mid := lo.Add(hi.Sub(lo) / 2).Truncate(time.Second); offset(mid) == offset(lo) {
				lo = mid
			} else {
				hi = mid
			}
		}
		var key strings.Builder
		key.WriteString(hi.String())
		for d := -5 * 24 * time.Hour; d <= 5*24*time.Hour; d += step {
			key.WriteString(fmt.Sprint(" ", offset(hi.Add(d))))
		}
		at, keys = append(at, hi), append(keys, key.String())
	}
	return at, keys
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

// sweep compares around each change of the zones.
func sweep(t *testing.T, c *tally, zones []string, from, to time.Time, minutes, seconds, random []string) {
	var seen sync.Map
	for _, zone := range zones {
		t.Run(strings.ReplaceAll(zone, "/", "-"), func(t *testing.T) {
			t.Parallel()
			loc, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			byMinute, bySecond, byChance := c.parse(t, minutes, zone), c.parse(t, seconds, zone), c.parse(t, random, zone)
			at, keys := changes(loc, from, to)
			for i, change := range at {
				if _, old := seen.LoadOrStore(keys[i], zone); old {
					continue
				}
				c.windows.Add(1)
				st := newStretch(loc, change.Add(-72*time.Hour), change.Add(72*time.Hour), time.Minute)
				c.all(t, byMinute, minutes, zone, st, 1013)
				c.all(t, byChance, random, zone, st, 3001)
				if len(seconds) > 0 && (i%8 == 0 || !*full) {
					st = newStretch(loc, change.Add(-4*time.Hour), change.Add(4*time.Hour), time.Second)
					c.all(t, bySecond, seconds, zone, st, 199)
				}
			}
		})
	}
}

func (c *tally) all(t *testing.T, list []*schedule.Schedule, texts []string, zone string, st *stretch, step int64) {
	for i, s := range list {
		if s != nil {
			c.compare(t, s, texts[i], zone, st, step)
		}
	}
}

// randomTexts makes texts of five fields, most of them with a time near a change of clocks. One in four is a union.
func randomTexts(n int, rnd *rand.Rand) []string {
	list := make([]string, n)
	for i := range list {
		dialect := []string{"", "", "ncrontab "}[rnd.IntN(3)]
		list[i] = randomText(rnd, dialect == "")
		for range max(0, rnd.IntN(8)-5) {
			if next := randomText(rnd, dialect == ""); !strings.Contains(list[i], next) {
				list[i] += []string{";", " ; ", "; "}[rnd.IntN(3)] + next
			}
		}
		list[i] = dialect + list[i]
	}
	return list
}

func randomText(rnd *rand.Rand, special bool) string {
	words := []string{
		randomField(rnd, 0, 59, 3), randomField(rnd, 0, []int{3, 23}[rnd.IntN(2)], 23), "*", "*", "*",
	}
	for f, ends := range [][2]int{{1, 31}, {1, 12}, {0, 6}} {
		if rnd.IntN(3) == 0 {
			words[2+f] = randomField(rnd, ends[0], ends[1], ends[1]-ends[0])
		}
		if special && f != 1 && rnd.IntN(4) == 0 {
			words[2+f] = randomSpecial(rnd, words[2+f], f == 0)
		}
	}
	return strings.Join(words, " ")
}

// randomSpecial returns items such as L, 15W or fri#3, often beside others.
func randomSpecial(rnd *rand.Rand, word string, month bool) string {
	var items []string
	if word != "*" {
		items = append(items, word)
	}
	for range 1 + rnd.IntN(3) {
		day, n := []string{"sun", "1", "tue", "3", "thu", "5", "sat", "7"}[rnd.IntN(8)], rnd.IntN(31)
		if month {
			items = append(items, []string{"L", "LW", fmt.Sprintf("L-%d", max(1, n)), fmt.Sprintf("L-%dW", max(1, n/4)), fmt.Sprintf("%dW", n+1)}[rnd.IntN(5)])
		} else {
			items = append(items, []string{day + "L", fmt.Sprintf("%s#%d", day, 1+n%5)}[rnd.IntN(2)])
		}
	}
	return strings.Join(items, ",")
}

func randomField(rnd *rand.Rand, lo, hi, step int) string {
	a, b := lo+rnd.IntN(hi-lo+1), lo+rnd.IntN(hi-lo+1)
	n := 2 + rnd.IntN(max(1, min(step, hi-lo)-1))
	switch rnd.IntN(7) {
	case 0:
		return "*"
	case 1:
		return fmt.Sprintf("*/%d", n)
	case 2:
		return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
	case 3:
		return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), n)
	case 4:
		return fmt.Sprintf("%d,%d", a, b)
	}
	return fmt.Sprint(a)
}

func TestBruteForce(t *testing.T) {
	var c tally
	rnd := rand.New(rand.NewPCG(20, 26))
	t.Cleanup(func() { t.Log(c.String()) })
	switch {
	case *full:
		sweep(t, &c, strings.Fields(zoneList), year(2000), year(2038), texts, fine, randomTexts(2000, rnd))
	case !nightly.Runs():
		t.Log("6 zones of one year: SOLOIST_NIGHTLY=1 takes 18, of two")
		sweep(t, &c, awkward[:6], year(2025), year(2026), texts, fine[2:5], randomTexts(10, rnd))
	default:
		sweep(t, &c, awkward, year(2025), year(2027), texts, fine[2:5], randomTexts(50, rnd))
		sweep(t, &c, []string{"Pacific/Apia", "Asia/Pyongyang", "America/Sao_Paulo"}, year(2011), year(2019), texts, nil, nil)
	}
}

// TestBruteForceDays has each item for ends of months and weekdays, alone, and random lists of them: all days in UTC.
func TestBruteForceDays(t *testing.T) {
	var list []string
	for n := range 31 {
		list = append(list, fmt.Sprintf("0 0 %dW * *", n+1), fmt.Sprintf("0 0 L-%d * *", max(1, n)), fmt.Sprintf("0 0 L-%dW * *", max(1, n)))
	}
	for n := range 35 {
		list = append(list, fmt.Sprintf("0 0 * * %d#%d", n%7, n/7+1), fmt.Sprintf("0 0 * * %dL", n%8))
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		list = append(list, fmt.Sprintf("0 0 %s * %s", randomSpecial(rnd, "*", true), randomSpecial(rnd, "*", false)))
	}
	from, to := 2023, 2029
	if *full {
		from, to = 2000, 2400 // the calendar repeats
	}
	list = append(list, "0 0 L * *", "0 0 LW * *")
	var c tally
	c.windows.Add(1)
	c.all(t, c.parse(t, list, "UTC"), list, "UTC", newStretch(time.UTC, year(from), year(to).Add(-day), day), 259201)
	t.Log(c.String())
}
