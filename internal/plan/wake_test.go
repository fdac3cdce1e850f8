package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

func TestFirstWatermark(t *testing.T) {
	for name, tt := range map[string]struct {
		date, wake string
		owed       bool // the tick of the wake-up
	}{
		"no wake-up":                       {"00:00:15", "", false},
		"the wake-up of a tick":            {"00:00:15", "00:00:10", true},
		"of a tick at this very instant":   {"00:00:10", "00:00:10", true},
		"of a tick a minute ago":           {"00:01:10", "00:00:10", true},
		"of a tick more than a minute ago": {"00:01:11", "00:00:10", false},
		"of a tick to come":                {"00:00:15", "00:00:20", false},
		"of no tick of this job":           {"00:00:15", "00:00:12", false},
	} {
		p := Policy{Ticks: every("10s")}
		date, wake := clockTime(tt.date), time.Time{}
		if tt.wake != "" {
			wake = clockTime(tt.wake)
		}
		want := date
		if tt.owed {
			want = wake.Add(-1)
		}
		got := p.FirstWatermark(View{Now: date}, wake)
		if !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if next := p.Ticks.Next(got); tt.owed && !next.Equal(wake) {
			t.Errorf("%s: the first tick is %s, want that of the wake-up", name, next)
		}
	}
}

// A job with ClaimAhead that has no entry yet runs the tick that it is woken for, also a moment early: the tick would else be one
// that a holder of a deleted entry may have claimed.
func TestFirstWatermarkAhead(t *testing.T) {
	p := Policy{Ticks: every("10s"), ClaimAhead: true, Lease: 15 * time.Second}
	date, wake := clockTime("00:00:09"), clockTime("00:00:10")
	if got := p.FirstWatermark(View{Now: date}, wake); !p.Ticks.Next(got).Equal(wake) {
		t.Errorf("the first tick is %s, want that of the wake-up", p.Ticks.Next(got))
	}
	if got := p.FirstWatermark(View{Now: date}, time.Time{}); p.Ticks.Next(got).Equal(wake) {
		t.Errorf("without a wake-up the first tick is %s, which may be claimed", p.Ticks.Next(got))
	}
}

// A new follower begins with the first tick that each job before it has.
func TestFirstWatermarkOfFollower(t *testing.T) {
	var o outcomes
	for name, tt := range map[string]struct {
		before []Predecessor
		wake   string
		want   string // the first tick
	}{
		"nothing known":     {[]Predecessor{{Job: "a"}}, "", "00:00:20"},
		"older":             {[]Predecessor{{Job: "a", Watermark: clockTime("00:00:12")}}, "", "00:00:20"},
		"newer":             {[]Predecessor{{Job: "a", Watermark: clockTime("00:00:21")}}, "", "00:00:30"},
		"one of them newer": {[]Predecessor{{Job: "a", Watermark: clockTime("00:00:21")}, {Job: "b", Watermark: clockTime("00:00:12")}}, "", "00:00:30"},
		"newer, woken":      {[]Predecessor{{Job: "a", Watermark: clockTime("00:00:11")}}, "00:00:10", "00:00:20"},
		"it has run":        {[]Predecessor{predecessor("a", o.one("00:00:10", won))}, "00:00:10", "00:00:10"},
		"it was skipped":    {[]Predecessor{predecessor("a", o.until("00:00:00", "00:00:10", store.Skipped))}, "00:00:10", "00:00:10"},
	} {
		p, wake := Policy{Ticks: every("10s"), After: []string{"a"}}, time.Time{}
		if tt.wake != "" {
			wake = clockTime(tt.wake)
		}
		got := p.FirstWatermark(View{Now: clockTime("00:00:15"), Before: tt.before}, wake)
		if first := p.Ticks.Next(got); !first.Equal(clockTime(tt.want)) {
			t.Errorf("%s: the first tick is %s, want %s", name, first.Format(time.TimeOnly), tt.want)
		}
	}
}

func TestEarly(t *testing.T) {
	for name, tt := range map[string]struct {
		record    store.Record
		state     store.LeaseState
		now, wake string
		want      time.Duration
	}{
		"the tick comes":                      {ended(), store.Available, "00:00:18", "00:00:20", 2 * time.Second},
		"a tick before it comes":              {ended(), store.Available, "00:00:18", "00:00:30", 2 * time.Second},
		"the tick is due":                     {ended(), store.Available, "00:00:20", "00:00:20", 0},
		"an older tick is due":                {func() store.Record { r := ended(); r.Watermark = midnight; r.Run.Tick = midnight; return r }(), store.Available, "00:00:18", "00:00:20", -8 * time.Second},
		"the tick is settled":                 {ended(), store.Available, "00:00:08", "00:00:10", 0},
		"a tick more than a minute away":      {ended(), store.Available, "00:00:18", "00:01:20", 0},
		"a tick a minute away":                {ended(), store.Available, "00:00:18", "00:01:18", 2 * time.Second},
		"another replica runs the job":        {running(), store.Leased, "00:00:18", "00:00:20", 0},
		"running, and the lease is not known": {running(), "", "00:00:18", "00:00:20", 0},
		"running, and the lease has expired":  {running(), store.Expired, "00:00:18", "00:00:20", 2 * time.Second},
		"stalled, and its process is gone": {func() store.Record {
			r := running()
			r.Watermark, r.Run.Status = clockTime("00:00:10"), store.Stalled
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
	for name, tt := range map[string]struct {
		now  time.Time
		wake string
		want time.Duration
	}{
		"a moment early":          {clockTime("00:00:16"), "00:00:20", 4 * time.Second},
		"just a moment early":     {clockTime("00:00:15"), "00:00:20", 5 * time.Second},
		"more than a moment":      {clockTime("00:00:15").Add(-1), "00:00:20", 0},
		"on time":                 {clockTime("00:00:20"), "00:00:20", 0},
		"late":                    {clockTime("00:00:21"), "00:00:20", 0},
		"for no tick of this job": {clockTime("00:00:16"), "00:00:18", 0},
	} {
		p := Policy{Ticks: every("10s")}
		if got := p.AlmostDue(View{Now: tt.now}, clockTime(tt.wake)); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestNewJobOwesNothing(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second}
	r := p.New("app", "job", View{Now: clockTime("00:00:15"), Since: midnight}, time.Time{})
	if _, todo := p.Claim(View{Record: &r, Now: clockTime("00:00:19")}); todo || !r.Due.Equal(clockTime("00:00:20")) {
		t.Errorf("the new record owes a tick, or names the wrong one: %+v", r)
	}
	if next, _ := p.Claim(View{Record: &r, Now: clockTime("00:00:20")}); !next.Run || next.Record.Token <= r.Token {
		t.Errorf("its first tick is not claimed: %+v", next)
	}
}
