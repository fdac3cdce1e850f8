package soloist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// records are what may stand in an entry; in each of them JSON is what a program
// of another version, a person or chance has made of a record.
var records = []string{
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","spec":"x","since":"2000-01-01T00:00:00Z","token":7,"writer":"w","watermark":"2000-01-01T00:00:00Z","status":"succeeded"}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","spec":"x","since":"2000-01-01T00:00:00Z","token":7,"writer":"w","watermark":"2000-01-01T00:00:00Z","tick":"2000-01-01T00:01:00Z","attempt":2,"status":"running","replica":"b","lease":15,"claimed":"2000-01-01T00:01:00Z","counts":{"failed":3},"history":[{"tick":"2000-01-01T00:00:00Z","status":"failed","token":6}],"later":{"a":[1,2.50]}}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":9223372036854775807,"watermark":"2000-01-01T00:00:00Z","status":"idle"}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":7,"watermark":"9999-12-31T23:59:59.999999999Z","tick":"0001-01-01T00:00:00Z","status":"stalled","lease":1000000}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":7,"watermark":"0001-01-01T00:00:01Z","due":"2000-01-01T00:00:30Z","status":"abandoned","tick":"2000-01-01T00:01:00Z","request":"by hand"}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00+14:00","token":7,"watermark":"2000-01-01T00:00:00-12:00","\u017ftatus":"failed","status":"idle","EPOCH":3,"Token":8}`,
	`{"schema":2,"app":"soloist","job":"work","token":7,"watermark":"2000-01-01T00:00:00Z","created":"2000-01-01T00:00:00Z","status":"idle"}`,
	`{"schema":1,"app":"other","job":"work","token":7,"watermark":"2000-01-01T00:00:00Z","created":"2000-01-01T00:00:00Z","status":"idle"}`,
	`null`, `{}`, `[]`, `7`, `"`, `<html>`, `{"schema":1}`, strings.Repeat(`[`, 8000),
}

// Whatever record a replica finds: it is refused, visibly, and stays as it is
// byte for byte while nothing runs; or its job runs, the token goes up, the
// watermark and the time do not go back, and what this program does not know of
// the record is kept.
func FuzzForeignRecord(f *testing.F) {
	for i, record := range records {
		f.Add([]byte(record), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, record []byte, rerun bool) {
		synctest.Test(t, func(t *testing.T) { findRecord(t, record, rerun) })
	})
}

// findRecord has a replica find a record and wake up over it some times.
func findRecord(t *testing.T, record []byte, rerun bool) {
	c := &cluster{t: t, store: &local.Memory{}}
	if _, err := c.store.Create(t.Context(), "soloist/work", record); err != nil {
		return // no store has that
	}
	job := work("* * * * *", time.Second)
	if rerun {
		job.Interrupted = soloist.Rerun
	}
	a := c.replica("a", job)
	time.Sleep(2 * time.Minute)
	for range 3 {
		c.wakeOver(a)
		time.Sleep(time.Minute)
	}
}

// FuzzOddRecord is FuzzForeignRecord with records that can be read, in whatever
// state they tell of.
func FuzzOddRecord(f *testing.F) {
	f.Add(int64(7), int64(0), int64(0), int64(0), 0, byte(0), int64(15), "", byte(0))
	f.Add(int64(7), int64(0), int64(60), int64(120), 2, byte(1), int64(15), "", byte(0b1))
	f.Add(int64(7), int64(0), int64(120), int64(0), -1, byte(4), int64(1e6), "by hand", byte(0b1111))
	f.Add(int64(1)<<62, int64(-60), int64(1e9), int64(1e9), 1<<40, byte(5), int64(0), "", byte(0b10))
	f.Add(int64(1), int64(-1e9), int64(60), int64(30), 1, byte(1), int64(60), "", byte(0b1001))
	states := []store.Status{store.Idle, store.Running, store.Succeeded, store.Failed, store.Stalled, store.Abandoned, store.Skipped, store.Missed}
	f.Fuzz(func(t *testing.T, token, through, tick, due int64, attempt int, status byte, lease int64, request string, flags byte) {
		synctest.Test(t, func(t *testing.T) {
			at := func(sec int64) time.Time { return time.Now().Add(time.Duration(sec%1e9) * time.Second) }
			r := store.Record{Schema: 1, App: "soloist", Job: "work", Created: at(-60), Since: at(-60), Token: token, Writer: "w", Watermark: at(through),
				Tick: at(tick), Attempt: attempt, Status: states[int(status)%len(states)], Replica: "b", Lease: store.Seconds(lease % 1e6 * 1e9), Request: request}
			if flags&1 != 0 {
				r.Claimed = at(tick)
			}
			if flags&2 != 0 {
				r.Finished = at(tick + 1)
			}
			if flags&4 != 0 {
				r.Due = at(due)
			}
			r.Stopping = flags&8 != 0
			b, err := json.Marshal(r)
			if err != nil {
				return // there are no such dates
			}
			findRecord(t, b, flags&16 != 0)
		})
	})
}

// wakeOver has a replica do what is due under the record that there is.
func (c *cluster) wakeOver(a *replica) {
	c.t.Helper()
	before, runs := c.raw("work"), len(c.all())
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
	defer cancel()
	report, err := a.RunDue(ctx, soloist.Wake{})
	after := c.raw("work")
	var old, rec store.Record
	ours := json.Unmarshal(before, &old) == nil && old.Schema == 1 && old.App == "soloist" && old.Job == "work" && old.Token > 0
	if bytes.Equal(before, after) {
		if len(c.all()) > runs || !ours && err == nil {
			c.t.Errorf("%s: %d runs without a claim, %v", before, len(c.all())-runs, err)
		}
		return
	}
	if !ours {
		c.t.Errorf("%s\nis none of this program's and became\n%s", before, after)
	}
	if json.Unmarshal(after, &rec) != nil || rec.Token < old.Token || rec.Watermark.Before(old.Watermark) || !rec.Created.Equal(old.Created) {
		c.t.Errorf("%s\nbecame\n%s (%+v, %v)", before, after, report, err)
	}
	for _, r := range c.all()[runs:] {
		if r.Token <= old.Token || r.Token > rec.Token || r.Tick.After(r.start) {
			c.t.Errorf("%s\nran tick %s at %s with token %d and became\n%s", before, r.Tick, r.start, r.Token, after)
		}
	}
	c.checkUnknown(before, after)
}

// checkUnknown checks that what a record has beyond this program's fields is
// there still.
func (c *cluster) checkUnknown(before, after []byte) {
	c.t.Helper()
	var old, now, known map[string]json.RawMessage
	json.Unmarshal(before, &old)
	json.Unmarshal(after, &now)
	sample, _ := json.Marshal(store.Record{Due: time.Now(), Tick: time.Now(), Request: "x", Attempt: 1, Deaths: 1, Failures: 1, Mark: store.Mark{Spec: "x"}, Replica: "x", Lease: 1, Claimed: time.Now(),
		Finished: time.Now(), Stopping: true, Progress: store.Progress{Note: "x"}, Error: "x", Counts: map[store.Status]int64{"": 1}, History: []store.Outcome{{}}})
	json.Unmarshal(sample, &known)
	for name, value := range old {
		isKnown := false
		for k := range known {
			isKnown = isKnown || strings.EqualFold(k, name)
		}
		if !isKnown && !sameJSON(value, now[name]) {
			c.t.Errorf("%s\nbecame\n%s: %q was %s", before, after, name, value)
		}
	}
}

// sameJSON reports whether two values differ in blanks and escapes at most.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	left, right := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	left.UseNumber()
	right.UseNumber()
	if left.Decode(&x) != nil || right.Decode(&y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}
