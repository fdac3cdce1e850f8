package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/store"
)

func TestMayMark(t *testing.T) {
	now := clockTime("00:10:00")
	for name, tt := range map[string]struct {
		record record.Record
		want   bool
	}{
		"overdue":                                 {record.Record{Watermark: clockTime("00:09:30")}, true},
		"nothing is overdue":                      {record.Record{Watermark: now}, false},
		"our mark stands":                         {record.Record{Definition: record.Definition{Mark: record.Mark{Spec: "mine", Since: clockTime("00:01:00")}}}, false},
		"a mark of an older definition":           {record.Record{Definition: record.Definition{Mark: record.Mark{Spec: "older", Since: clockTime("00:04:00")}}}, true},
		"likewise, and nothing is overdue":        {record.Record{Definition: record.Definition{Mark: record.Mark{Spec: "older", Since: clockTime("00:04:00")}}, Watermark: now}, true},
		"one of a younger one, nothing overdue":   {record.Record{Definition: record.Definition{Mark: record.Mark{Spec: "younger", Since: clockTime("00:06:00")}}, Watermark: now}, false},
		"a mark of a younger definition":          {record.Record{Definition: record.Definition{Mark: record.Mark{Spec: "younger", Since: clockTime("00:06:00")}}}, false},
		"the tick in force is near":               {record.Record{Due: clockTime("00:10:19")}, false},
		"the tick in force was just due":          {record.Record{Due: clockTime("00:09:41")}, false},
		"the tick in force is far":                {record.Record{Due: clockTime("00:10:21")}, true},
		"the tick in force is long overdue":       {record.Record{Due: clockTime("00:09:39")}, true},
		"near, by the longer lease of the record": {record.Record{Due: clockTime("00:10:21"), Run: record.Run{Lease: record.Seconds(30 * time.Second)}}, false},
	} {
		p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second}
		if got := (&step{decision: &decision{&p, View{Record: &tt.record, Now: now, Since: clockTime("00:05:00")}}}).mayMark(); got != tt.want {
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
			Record: &record.Record{Definition: record.Definition{Spec: "young", Since: clockTime("00:05:00")}, Orders: record.Orders{Served: tt.served}}}
		if tt.due != "" {
			v.Record.Due = clockTime(tt.due)
		}
		v.Control.Requests = []record.Request{{Seq: 1, Name: "please", At: clockTime("00:10:00"), Until: clockTime("01:10:00")}}
		for _, pause := range []record.Pause{{}, {At: clockTime("00:09:00")}} { // it begins in a pause too
			v.Control.Pause = pause
			got := ""
			if at := Wanted(&p, v); !at.IsZero() {
				got = at.Format(time.TimeOnly)
			}
			if marks := (&step{decision: &decision{&p, v}}).mayMark(); marks != tt.marks || got != tt.wanted {
				t.Errorf("%s: marks %t, wanted at %q", name, marks, got)
			}
		}
		v.Record.Definition.Mark = record.Mark{Spec: "middle", Since: clockTime("00:01:00")} // nor do these replicas answer
		o := Observation{At: v.Now, Sighting: Sighting{UnchangedSince: v.Now.Add(-2 * InheritAfter)}}
		if _, inherits := (&step{&decision{&p, v}, &o}).inherits(); inherits != tt.inherits {
			t.Errorf("%s: inherits %t", name, inherits)
		}
	}
}

func TestPatience(t *testing.T) {
	p := Policy{Spec: "mine"}
	for mark, want := range map[record.Mark]time.Duration{
		{}: 0,
		{Spec: "mine", Since: clockTime("00:01:00")}:    InheritAfter, // of another replica
		{Spec: "mine", Since: clockTime("00:09:00")}:    InheritAfter,
		{Spec: "other", Since: clockTime("00:06:00")}:   2 * InheritAfter,
		{Spec: "other", Since: clockTime("00:04:00")}:   0, // to be overwritten
		{Spec: "another", Since: clockTime("00:05:00")}: 0, // started at once: the definitions decide
		{Spec: "yet", Since: clockTime("00:05:00")}:     2 * InheritAfter,
	} {
		v := View{Record: &record.Record{Definition: record.Definition{Mark: mark}}, Since: clockTime("00:05:00")}
		for stood, inherits := range map[time.Duration]bool{want - 1: false, want: want > 0, time.Hour: want > 0} {
			o := Observation{At: looked, Sighting: Sighting{UnchangedSince: looked.Add(-stood)}}
			if _, ok := (&step{&decision{&p, v}, &o}).inherits(); ok != inherits {
				t.Errorf("%+v, after %s: %t", mark, stood, ok)
			}
		}
	}
}

func TestDifference(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{SpecWith("1a", "", ""), SpecWith("1a", "", ""), ""},
		{SpecWith("1a", "2b", "3c"), SpecWith("1a", "2b", "3c"), ""},
		{SpecWith("1a", "2b", "3c"), SpecWith("1d", "2e", "3f"), ""}, // nothing is known of the sums of other texts
		{SpecWith("1a", "2b", "3c"), SpecWith("1a", "2d", "3c"), "the rules of the time zone"},
		{SpecWith("1a", "2b", ""), SpecWith("1a", "", ""), "the rules of the time zone"},
		{SpecWith("1a", "2b", "3c"), SpecWith("1a", "2b", "3d"), "the days of the calendars"},
		{SpecWith("1a", "", "3c"), SpecWith("1a", "", "3d"), "the days of the calendars"},
		{SpecWith("1a", "2b", "3c"), SpecWith("1a", "2d", "3d"), "the rules of the time zone and the days of the calendars"},
	} {
		if got := Difference(tt.a, tt.b); got != tt.want || Difference(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
	if got := SpecWith("1a", "", ""); got != "1a" {
		t.Errorf("without sums: got %q", got)
	}
}

// A run by hand of another definition, which started later, leaves the one in force as it is, and its ticks, also those that come
// due under the run.
func TestRunByHandLeavesDefinitionInForce(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second}
	r := foreign(record.Mark{})
	r.Due = clockTime("00:02:00")
	claim, _ := p.Claim(View{Record: &r, Now: clockTime("00:00:15"), Since: clockTime("00:00:12"), Request: "x"})
	end := Finish(&p, &claim.Record, event.Succeeded, "", clockTime("00:05:00"), clockTime("00:05:00"), record.JobControl{})
	for _, got := range []record.Record{claim.Record, end} {
		if !claim.Run || got.Definition != r.Definition || !got.Watermark.Equal(r.Watermark) || !got.Due.Equal(r.Due) {
			t.Errorf("the record was %+v and is %+v", r, got)
		}
	}
	if got, want := told(&end), []string{"succeeded 00:00:15 "}; !slices.Equal(got, want) {
		t.Errorf("settles %q, want %q", got, want)
	}
}
