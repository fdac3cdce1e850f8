package plan

import (
	"cmp"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// The first tick of a job that is created at an instant: it owes none that is older, except that of the wake-up in which it is created.
// A new follower begins with the first tick that each job before it has.
func TestNew(t *testing.T) {
	var o outcomes
	ahead := Policy{ClaimAhead: true, Lease: 15 * time.Second}
	for name, tt := range map[string]struct {
		p          Policy
		date, wake string // date empty: 00:00:15
		before     []Predecessor
		want       string // the first tick
	}{
		"no wake-up":                                      {want: "00:00:20"},
		"the wake-up of a tick":                           {wake: "00:00:10", want: "00:00:10"},
		"of a tick at this very instant":                  {date: "00:00:10", wake: "00:00:10", want: "00:00:10"},
		"of a tick a minute ago":                          {date: "00:01:10", wake: "00:00:10", want: "00:00:10"},
		"of a tick more than a minute ago":                {date: "00:01:11", wake: "00:00:10", want: "00:01:20"},
		"of a tick to come":                               {wake: "00:00:20", want: "00:00:20"},
		"of no tick of this job":                          {wake: "00:00:12", want: "00:00:20"},
		"a holder of a deleted entry may have claimed it": {p: ahead, date: "00:00:09", want: "00:00:20"},
		"and this replica is woken for it":                {p: ahead, date: "00:00:09", wake: "00:00:10", want: "00:00:10"},
		"after: nothing known":                            {before: []Predecessor{{Job: "a"}}, want: "00:00:20"},
		"after: older":                                    {before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:12")}}, want: "00:00:20"},
		"after: newer":                                    {before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:21")}}, want: "00:00:30"},
		"after: one of them newer":                        {before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:21")}, {Job: "b", Watermark: clockTime("00:00:12")}}, want: "00:00:30"},
		"after: newer, woken":                             {before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:11")}}, wake: "00:00:10", want: "00:00:20"},
		"after: it has run":                               {before: []Predecessor{predecessor("a", o.one("00:00:10", won))}, wake: "00:00:10", want: "00:00:10"},
		"after: it was skipped":                           {before: []Predecessor{predecessor("a", o.until("00:00:00", "00:00:10", event.Skipped))}, wake: "00:00:10", want: "00:00:10"},
	} {
		tt.p.Ticks = every("10s")
		wake := time.Time{}
		if tt.wake != "" {
			wake = clockTime(tt.wake)
		}
		r := tt.p.New("app", "job", View{Now: clockTime(cmp.Or(tt.date, "00:00:15")), Before: tt.before}, wake)
		if first := tt.p.Ticks.Next(r.Watermark); !first.Equal(clockTime(tt.want)) || !r.Due.Equal(first) {
			t.Errorf("%s: the first tick is %s, want %s, and %s is due", name, first.Format(time.TimeOnly), tt.want, r.Due.Format(time.TimeOnly))
		}
	}
}

func TestEarly(t *testing.T) {
	for name, tt := range map[string]struct {
		record    record.Record
		state     store.LeaseState
		now, wake string
		want      time.Duration
	}{
		"the tick comes":                      {ended(), store.Available, "00:00:18", "00:00:20", 2 * time.Second},
		"a tick before it comes":              {ended(), store.Available, "00:00:18", "00:00:30", 2 * time.Second},
		"the tick is due":                     {ended(), store.Available, "00:00:20", "00:00:20", 0},
		"an older tick is due":                {record.Record{Watermark: midnight}, store.Available, "00:00:18", "00:00:20", -8 * time.Second},
		"the tick is settled":                 {ended(), store.Available, "00:00:08", "00:00:10", 0},
		"a tick more than a minute away":      {ended(), store.Available, "00:00:18", "00:01:20", 0},
		"a tick a minute away":                {ended(), store.Available, "00:00:18", "00:01:18", 2 * time.Second},
		"another replica runs the job":        {running(), store.Leased, "00:00:18", "00:00:20", 0},
		"running, and the lease is not known": {running(), "", "00:00:18", "00:00:20", 0},
		"running, and the lease has expired":  {running(), store.Expired, "00:00:18", "00:00:20", 2 * time.Second},
		"stalled, and its process is gone": {func() record.Record {
			r := running()
			r.Watermark, r.Run.Status = clockTime("00:00:10"), event.Stalled
			return r
		}(), store.Expired, "00:00:18", "00:00:20", 2 * time.Second},
		"another client has leased a free entry": {ended(), store.Leased, "00:00:18", "00:00:20", 2 * time.Second},
	} {
		p := Policy{Ticks: every("10s")}
		got := p.Early(View{Record: &tt.record, State: tt.state, Now: clockTime(tt.now)}, clockTime(tt.wake))
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestAlmostDue(t *testing.T) {
	p := Policy{Ticks: every("10s")}
	for _, tt := range []struct {
		early time.Duration // of the wake-up
		tick  string
		want  time.Duration
	}{
		{4 * time.Second, "00:00:20", 4 * time.Second},
		{5 * time.Second, "00:00:20", 5 * time.Second},
		{5*time.Second + 1, "00:00:20", 0},
		{0, "00:00:20", 0},
		{-time.Second, "00:00:20", 0},
		{2 * time.Second, "00:00:18", 0}, // no tick of this job
	} {
		if got := AlmostDue(p.Ticks, clockTime(tt.tick).Add(-tt.early), clockTime(tt.tick)); got != tt.want {
			t.Errorf("%s before %s: got %s, want %s", tt.early, tt.tick, got, tt.want)
		}
	}
}
