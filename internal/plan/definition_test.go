package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/store"
)

func TestMayMark(t *testing.T) {
	now := clockTime("00:10:00")
	for name, tt := range map[string]struct {
		record store.Record
		want   bool
	}{
		"overdue":                                 {store.Record{Watermark: clockTime("00:09:30")}, true},
		"nothing is overdue":                      {store.Record{Watermark: now}, false},
		"our mark stands":                         {store.Record{Definition: store.Definition{Mark: store.Mark{Spec: "mine", Since: clockTime("00:01:00")}}}, false},
		"a mark of an older definition":           {store.Record{Definition: store.Definition{Mark: store.Mark{Spec: "older", Since: clockTime("00:04:00")}}}, true},
		"likewise, and nothing is overdue":        {store.Record{Definition: store.Definition{Mark: store.Mark{Spec: "older", Since: clockTime("00:04:00")}}, Watermark: now}, true},
		"one of a younger one, nothing overdue":   {store.Record{Definition: store.Definition{Mark: store.Mark{Spec: "younger", Since: clockTime("00:06:00")}}, Watermark: now}, false},
		"a mark of a younger definition":          {store.Record{Definition: store.Definition{Mark: store.Mark{Spec: "younger", Since: clockTime("00:06:00")}}}, false},
		"the tick in force is near":               {store.Record{Due: clockTime("00:10:19")}, false},
		"the tick in force was just due":          {store.Record{Due: clockTime("00:09:41")}, false},
		"the tick in force is far":                {store.Record{Due: clockTime("00:10:21")}, true},
		"the tick in force is long overdue":       {store.Record{Due: clockTime("00:09:39")}, true},
		"near, by the longer lease of the record": {store.Record{Due: clockTime("00:10:21"), Run: store.Run{Lease: store.Seconds(30 * time.Second)}}, false},
	} {
		p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second}
		if got := p.mayMark(View{Record: &tt.record, Now: now, Since: clockTime("00:05:00")}); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// The replicas of the definition in force are gone, and neither it nor the older one has a tick. A run that was ordered waits for
// them all the same, also when its time is up: its outcome is owed.
func TestOrderedRunUnderAnotherDefinition(t *testing.T) {
	manual, err := schedule.Parse("@manual", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Ticks: manual, Spec: "mine", Lease: 15 * time.Second}
	for name, tt := range map[string]struct {
		now      string
		served   int64
		due      string // a tick that has waited for longer; empty: none has
		marks    bool
		inherits bool
		wanted   string // empty: never
	}{
		"just given":    {"00:10:20", 0, "", false, true, "00:10:50"},
		"waits":         {"00:12:00", 0, "", true, true, "00:13:00"},
		"a tick too":    {"00:12:00", 0, "00:06:00", true, true, "00:13:00"},
		"past its time": {"02:10:00", 0, "", true, true, "03:10:00"},
		"served":        {"00:12:00", 1, "", false, false, ""},
	} {
		v := View{Now: clockTime(tt.now), Since: midnight, State: store.Available,
			Record: &store.Record{Definition: store.Definition{Spec: "young", Since: clockTime("00:05:00")}, Orders: store.Orders{Served: tt.served}}}
		if tt.due != "" {
			v.Record.Due = clockTime(tt.due)
		}
		v.Control.Requests = []store.Request{{Seq: 1, Name: "please", At: clockTime("00:10:00"), Until: clockTime("01:10:00")}}
		for _, pause := range []store.Pause{{}, {At: clockTime("00:09:00")}} { // it begins in a pause too
			v.Control.Pause = pause
			got := ""
			if at := p.Wanted(v); !at.IsZero() {
				got = at.Format(time.TimeOnly)
			}
			if marks := p.mayMark(v); marks != tt.marks || got != tt.wanted {
				t.Errorf("%s: marks %t, wanted at %q", name, marks, got)
			}
		}
		v.Record.Definition.Mark = store.Mark{Spec: "middle", Since: clockTime("00:01:00")} // nor do these replicas answer
		o := Observation{At: v.Now, UnchangedSince: v.Now.Add(-2 * InheritAfter)}
		if _, inherits := p.inherits(v, &o); inherits != tt.inherits {
			t.Errorf("%s: inherits %t", name, inherits)
		}
	}
}

func TestPatience(t *testing.T) {
	p := Policy{Spec: "mine"}
	for mark, want := range map[store.Mark]time.Duration{
		{}: 0,
		{Spec: "mine", Since: clockTime("00:01:00")}:    InheritAfter, // of another replica
		{Spec: "mine", Since: clockTime("00:09:00")}:    InheritAfter,
		{Spec: "other", Since: clockTime("00:06:00")}:   2 * InheritAfter,
		{Spec: "other", Since: clockTime("00:04:00")}:   0, // to be overwritten
		{Spec: "another", Since: clockTime("00:05:00")}: 0, // started at once: the definitions decide
		{Spec: "yet", Since: clockTime("00:05:00")}:     2 * InheritAfter,
	} {
		if got, ok := p.patience(View{Record: &store.Record{Definition: store.Definition{Mark: mark}}, Since: clockTime("00:05:00")}); got != want || ok != (want > 0) {
			t.Errorf("%+v: got %s, %t", mark, got, ok)
		}
	}
}

// What becomes of the ticks of an old schedule, the first of which came due at 00:00:20, if the new one counts from 00:01:05.
func TestTicksOfOldSchedule(t *testing.T) {
	span := func(from, to string) store.Span { return store.Span{From: clockTime(from), To: clockTime(to)} }
	over := func(spans ...store.Span) store.JobControl { return store.JobControl{Pauses: spans} }
	for name, tt := range map[string]struct {
		control store.JobControl
		told    []string
		paused  bool // by its settings
	}{
		"no pause":               {told: []string{"missed 00:00:10-00:01:05 the schedule changed"}},
		"paused by its settings": {told: []string{"skipped 00:00:10-00:01:05 paused"}, paused: true},
		"a pause": {control: over(span("00:00:15", "00:00:35")),
			told: []string{"missed 00:00:35-00:01:05 the schedule changed", "skipped 00:00:10-00:00:35 paused"}},
		"two without a gap": {control: over(span("00:00:15", "00:00:35"), span("00:00:35", "00:00:45")),
			told: []string{"missed 00:00:45-00:01:05 the schedule changed", "skipped 00:00:10-00:00:45 paused"}},
		"a pause that goes on": {control: store.JobControl{Pause: store.Pause{At: clockTime("00:00:15")}},
			told: []string{"skipped 00:00:10-00:01:05 paused"}},
		"a pause after the first": {control: over(span("00:00:25", "00:00:35")), told: []string{"missed 00:00:10-00:01:05 the schedule changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s"), Spec: "new", Paused: tt.paused}
			r := &store.Record{Watermark: clockTime("00:00:10"), Due: clockTime("00:00:20"), Run: store.Run{Status: store.Succeeded}}
			r.Definition.Spec = "old"
			next, _ := p.Claim(View{Record: r, Now: clockTime("00:01:05"), Since: clockTime("00:01:00"), Control: tt.control})
			if got := told(&next.Record); !slices.Equal(got, tt.told) || next.Run {
				t.Errorf("settles %q, want %q", got, tt.told)
			}
		})
	}
}

// The tick of 01:00:00 came due while a schedule was edited. If it is also the newest of the new schedule, it is owed as after
// a restart; else the new schedule counts from the moment of the change, and RunAll runs no tick from before it.
func TestTickThatBothSchedulesName(t *testing.T) {
	for name, tt := range map[string]struct {
		last  store.Status // of the run of 00:50:00; empty: the job is new
		every string       // empty: a singleton
		p     Policy
		now   string
		owed  string
		told  []string
	}{
		"both name it": {store.Succeeded, "20m", Policy{}, "01:00:05", "01:00:00",
			[]string{"missed 00:50:00-00:59:59 the schedule changed"}},
		"a new job":    {"", "5m", Policy{}, "00:50:05", "00:50:00", []string{"missed 00:40:05-00:49:59 the schedule changed"}},
		"a singleton":  {store.Succeeded, "", Policy{}, "01:00:05", "", []string{"missed 00:40:05-01:00:05 the schedule changed"}},
		"another tick": {store.Succeeded, "11m", Policy{}, "01:00:05", "", []string{"missed 00:50:00-01:00:05 the schedule changed"}},
		"not due yet":  {store.Succeeded, "20m", Policy{}, "00:53:00", "", []string{"missed 00:50:00-00:53:00 the schedule changed"}},
		"several due":  {store.Succeeded, "20m", Policy{}, "01:20:50", "", []string{"missed 00:50:00-01:20:50 the schedule changed"}},
		"all": {store.Succeeded, "1m", Policy{Missed: RunAll}, "03:00:05", "",
			[]string{"missed 00:50:00-03:00:05 the schedule changed"}},
		"past its deadline": {store.Succeeded, "20m", Policy{StartingDeadline: 5 * time.Minute}, "01:08:00", "",
			[]string{"missed 01:00:00 past the starting deadline", "missed 00:50:00-00:59:59 the schedule changed"}},
		"after a death": {store.Running, "20m", Policy{}, "01:00:05", "01:00:00",
			[]string{"missed 00:50:00-00:59:59 the schedule changed", "abandoned 00:50:00 its runner died"}},
		"after a stop": {store.Abandoned, "20m", Policy{Interrupted: Rerun}, "01:00:05", "01:00:00",
			[]string{"missed 00:50:00-00:59:59 the schedule changed", "abandoned 00:50:00 not run again"}},
	} {
		t.Run(name, func(t *testing.T) {
			old := Policy{Ticks: every("10m"), Spec: "old", Interrupted: tt.p.Interrupted}
			p := tt.p
			p.Ticks, p.Spec = every("20m"), "new"
			if tt.every == "" {
				old.Ticks = nil
			} else {
				p.Ticks = every(tt.every)
			}
			r := old.New("app", "job", View{Now: clockTime("00:40:05"), Since: midnight}, time.Time{})
			if tt.last != "" {
				next, _ := old.Claim(View{Record: &r, Now: clockTime("00:50:00"), Since: midnight})
				if r = next.Record; tt.last != store.Running {
					r = old.Finish(&r, tt.last, Stopped, clockTime("00:50:09"), clockTime("00:50:09"), store.JobControl{})
				}
			}
			known := len(r.History)
			next, _ := p.Claim(View{Record: &r, Now: clockTime(tt.now), Since: clockTime("00:55:00")})
			got := told(&next.Record)
			if got = got[:len(got)-known]; !slices.Equal(got, tt.told) {
				t.Errorf("settles %q, want %q", got, tt.told)
			}
			if next.Run != (tt.owed != "") || next.Run && !next.Record.Run.Tick.Equal(clockTime(tt.owed)) {
				t.Errorf("claims %t, %s", next.Run, next.Record.Run.Tick)
			}
		})
	}
}

func TestWriterInForceClearsMark(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "mine"}
	r := &store.Record{Watermark: clockTime("00:04:50"), Definition: store.Definition{Spec: "mine", Since: clockTime("00:05:00"), Mark: store.Mark{Spec: "older", Since: midnight}}, Run: store.Run{Status: store.Idle}}
	if next, todo := p.Claim(View{Record: r, Now: clockTime("00:05:03"), Since: clockTime("00:05:00")}); !todo || next.Record.Definition.Mark != (store.Mark{}) {
		t.Errorf("got %+v", next.Record.Definition.Mark)
	}
}

// A run by hand of another definition, which started later, leaves the one in force as it is, and its ticks, also those that come
// due under the run.
func TestRunByHandLeavesDefinitionInForce(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second}
	r := foreign(store.Mark{})
	r.Due = clockTime("00:02:00")
	claim, _ := p.Claim(View{Record: &r, Now: clockTime("00:00:15"), Since: clockTime("00:00:12"), Request: "x"})
	end := p.Finish(&claim.Record, store.Succeeded, "", clockTime("00:05:00"), clockTime("00:05:00"), store.JobControl{})
	for _, got := range []store.Record{claim.Record, end} {
		if !claim.Run || got.Definition != r.Definition || !got.Watermark.Equal(r.Watermark) || !got.Due.Equal(r.Due) {
			t.Errorf("the record was %+v and is %+v", r, got)
		}
	}
	if got, want := told(&end), []string{"succeeded 00:00:15 "}; !slices.Equal(got, want) {
		t.Errorf("settles %q, want %q", got, want)
	}
}
