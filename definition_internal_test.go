package soloist

import (
	"testing"
	"time"
)

func TestMayMark(t *testing.T) {
	now := clockTime("00:10:00")
	for name, tt := range map[string]struct {
		record Record
		want   bool
	}{
		"overdue":                                 {Record{Through: clockTime("00:09:30")}, true},
		"nothing is overdue":                      {Record{Through: now}, false},
		"our mark stands":                         {Record{Mark: Mark{"mine", clockTime("00:01:00")}}, false},
		"a mark of an older definition":           {Record{Mark: Mark{"older", clockTime("00:04:00")}}, true},
		"likewise, and nothing is overdue":        {Record{Mark: Mark{"older", clockTime("00:04:00")}, Through: now}, true},
		"one of a younger one, nothing overdue":   {Record{Mark: Mark{"younger", clockTime("00:06:00")}, Through: now}, false},
		"a mark of a younger definition":          {Record{Mark: Mark{"younger", clockTime("00:06:00")}}, false},
		"the tick in force is near":               {Record{Due: clockTime("00:10:19")}, false},
		"the tick in force was just due":          {Record{Due: clockTime("00:09:41")}, false},
		"the tick in force is far":                {Record{Due: clockTime("00:10:21")}, true},
		"the tick in force is long overdue":       {Record{Due: clockTime("00:09:39")}, true},
		"near, by the longer lease of the record": {Record{Due: clockTime("00:10:21"), Lease: Seconds(30 * time.Second)}, false},
	} {
		p := planner{ticks: every10s(t), spec: "mine", since: clockTime("00:05:00")}
		if got := p.mayMark(&tt.record, now, 15*time.Second); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestPatience(t *testing.T) {
	p := planner{spec: "mine", since: clockTime("00:05:00")}
	for mark, want := range map[Mark]time.Duration{
		{}:                                 0,
		{"mine", clockTime("00:01:00")}:    inheritAfter, // of another replica
		{"mine", clockTime("00:09:00")}:    inheritAfter,
		{"other", clockTime("00:06:00")}:   2 * inheritAfter,
		{"other", clockTime("00:04:00")}:   0, // to be overwritten
		{"another", clockTime("00:05:00")}: 0, // started at once: the definitions decide
		{"yet", clockTime("00:05:00")}:     2 * inheritAfter,
	} {
		if got, ok := p.patience(&Record{Mark: mark}); got != want || ok != (want > 0) {
			t.Errorf("%+v: got %s, %t", mark, got, ok)
		}
	}
}

func TestWriterInForceClearsMark(t *testing.T) {
	p := planner{ticks: every10s(t), spec: "mine", since: clockTime("00:05:00")}
	r := &Record{Through: clockTime("00:04:50"), Spec: "mine", Since: clockTime("00:05:00"), Status: Idle, Mark: Mark{"older", midnight}}
	if next, todo := p.plan(r, clockTime("00:05:03")); !todo || next.record.Mark != (Mark{}) {
		t.Errorf("got %+v", next.record.Mark)
	}
}
