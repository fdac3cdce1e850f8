package soloist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

func TestUnusableRecordIsLeftAlone(t *testing.T) {
	const past = `"created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z"`
	const created = `"created":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","token":7,"run":{"status":"idle"}`
	for name, tt := range map[string]struct{ record, want string }{
		"garbage":   {`%PDF-1.7`, "not JSON"},
		"array":     {`[1,2]`, "not JSON"},
		"types":     {`{"schema":"one"}`, "cannot be read"},
		"newer":     {`{"schema":9,"app":"soloist","job":"work",` + created + `}`, "schema 9"},
		"foreign":   {`{"schema":1,"app":"other","job":"work",` + created + `}`, `"other/work"`},
		"status":    {`{"schema":1,"app":"soloist","job":"work","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","token":7,"run":{"status":"dancing"}}`, "dancing"},
		"no token":  {`{"schema":1,"app":"soloist","job":"work","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","token":0,"run":{"status":"idle"}}`, "token 0"},
		"future":    {`{"schema":1,"app":"soloist","job":"work",` + created + `}`, "watermark 2026-01-01T00:00:00Z is in the future"},
		"tick":      {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"run":{"status":"running","tick":"2000-01-01T01:00:00Z","attempt":1,"lease":15}}`, "tick 2000-01-01T01:00:00Z is in the future"},
		"claim":     {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"run":{"status":"running","claimed":"2000-01-01T01:00:00Z","attempt":1,"lease":15}}`, "claim 2000-01-01T01:00:00Z is in the future"},
		"since":     {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"definition":{"since":"9999-12-31T23:59:59Z"},"run":{"status":"idle"}}`, "(since) 9999-12-31T23:59:59Z is in the future"},
		"mark":      {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"definition":{"mark":{"spec":"x","since":"9999-12-31T23:59:59Z"}},"run":{"status":"idle"}}`, "(mark) 9999-12-31T23:59:59Z is in the future"},
		"history":   {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"run":{"status":"idle"},"history":[{"tick":"2000-01-01T01:00:00Z","status":"succeeded"}]}`, "history 2000-01-01T01:00:00Z is in the future"},
		"created":   {`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T01:00:00Z","watermark":"1999-01-01T00:00:00Z","token":7,"run":{"status":"idle"}}`, "creation 2000-01-01T01:00:00Z is in the future"},
		"token":     {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":4611686018427387903,"run":{"status":"idle"}}`, "the token 4611686018427387903, the largest there is"},
		"overflow":  {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":4611686018427387904,"run":{"status":"idle"}}`, "a token is from 1 to 4611686018427387903"},
		"attempt":   {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"run":{"status":"idle","attempt":-1}}`, "attempt -1"},
		"watermark": {`{"schema":1,"app":"soloist","job":"work","token":7,"run":{"status":"idle"}}`, "no watermark"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.createEntry(tt.record)
			fine := named("fine", work("@every 10s", time.Second))
			a := c.start("a", work("@every 10s", time.Second), fine)
			time.Sleep(2 * time.Minute)
			if got := string(c.raw("work")); got != tt.record {
				t.Errorf("the record became %s", got)
			}
			if slices.ContainsFunc(c.all(), func(r ran) bool { return r.Job == "work" }) {
				t.Error("it ran")
			}
			if got := len(c.all()); got != 12 && got != 11 {
				t.Errorf("the other job ran %d times", got)
			}
			wantError(t, a.Health().Broken["work"], tt.want)
			status, _ := a.Status(context.Background())
			if status[0].Err == nil || !strings.Contains(status[0].Err.Error(), tt.want) {
				t.Errorf("status says %v", status[0].Err)
			}
			a.wantLines(1, "level=ERROR", "job=work")
		})
	}
}

// What is less than a minute ahead is a clock that differs, and a tick that is
// due later is no fault.
func TestRecordLittleAheadIsUsed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const record = `{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:30Z","watermark":"2000-01-01T00:00:30Z","due":"2001-01-01T00:00:00Z","token":7,"definition":{"since":"2000-01-01T00:00:55Z"},"run":{"status":"idle"}}`
		c.createEntry(record)
		a := c.start("a", work("@every 10s", 0))
		time.Sleep(10 * time.Second)
		if err := a.Health().Broken["work"]; err != nil && strings.Contains(err.Error(), "in the future") {
			t.Errorf("health says %v", err)
		}
	})
}

// A replica writes no record that others refuse: with the largest token it stops,
// and says so.
func TestLargestTokenIsTheLast(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const record = `{"schema":1,"app":"soloist","job":"work","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","token":4611686018427387902,"run":{"status":"idle"}}`
		c.createEntry(record)
		a := c.start("a", work("@every 10s", time.Second))
		time.Sleep(2 * time.Minute)
		if got := c.all(); len(got) != 1 || got[0].Token != 4611686018427387903 {
			t.Errorf("%d runs: %+v", len(got), got)
		}
		b := c.start("b", work("@every 10s", time.Second))
		time.Sleep(2 * time.Minute)
		for _, r := range []*replica{a, b} {
			wantError(t, r.Health().Broken["work"], "the largest there is")
		}
		if r := c.record("work"); r.Token != 4611686018427387903 || r.Run.Status != store.Succeeded {
			t.Errorf("got %s with token %d", r.Run.Status, r.Token)
		}
	})
}

// After the largest attempt that a record can tell of, the tick is given up: a
// further one would make the record unreadable.
func TestLargestAttemptIsTheLast(t *testing.T) {
	job := rerun(work("@every 1m", 5*time.Second))
	spec := specOf(t, job)
	for _, status := range []store.Status{store.Running, store.Abandoned} {
		inCluster(t, func(c *cluster) {
			now := time.Now().UTC()
			c.byOthers(map[string]any{"spec": spec, "status": status, "tick": now, "claimed": now, "attempt": 1<<31 - 1, "replica": "gone"})
			a := c.start("a", job)
			for len(c.all()) == 0 {
				time.Sleep(time.Second)
			}
			if r := c.all()[0]; r.Attempt != 1 || !r.Tick.After(now) {
				t.Errorf("%s: %s has attempt %d", status, r.ID(), r.Attempt)
			}
			a.kill()
			b := c.start("b", job)
			time.Sleep(10 * time.Minute)
			if err := b.Health().Broken["work"]; err != nil {
				t.Errorf("%s: %v", status, err)
			}
		})
	}
}

// A record tells of a run under way whose tick is settled, or that has no tick:
// Rerun starts no tick again that the watermark has passed.
func TestSettledTickIsNotRunAgain(t *testing.T) {
	job := rerun(work("@every 1m", time.Second))
	spec := specOf(t, job)
	for name, tick := range map[string]time.Duration{"settled": -10 * time.Minute, "the watermark": -time.Minute, "none": 0} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			now := time.Now().UTC()
			fields := map[string]any{"spec": spec, "status": "running", "claimed": now.Add(-time.Minute), "attempt": 1, "replica": "gone"}
			if tick != 0 {
				fields["tick"] = now.Add(tick)
			}
			c.byOthers(fields)
			c.start("a", job)
			time.Sleep(5 * time.Minute)
			runs := c.all()
			if len(runs) < 5 {
				t.Fatalf("%d runs", len(runs))
			}
			if r := runs[0]; !r.Tick.After(now.Add(-time.Minute)) || r.Attempt != 1 {
				t.Errorf("started %s, attempt %d, and the watermark was %s", r.ID(), r.Attempt, now.Add(-time.Minute))
			}
		})
	}
}

// byOthers makes the entry of "work" as another program or a person may: like one
// that is idle and owes the ticks of the last minute, except for fields.
func (c *cluster) byOthers(fields map[string]any) {
	c.t.Helper()
	now := time.Now().UTC()
	definition := map[string]any{"spec": "", "since": now.Add(-time.Hour)}
	run := map[string]any{"status": "idle", "lease": 15}
	record := map[string]any{"schema": 1, "app": "soloist", "job": "work", "created": now.Add(-time.Hour), "definition": definition,
		"token": 7, "writer": "w", "watermark": now.Add(-time.Minute), "run": run}
	for name, value := range fields {
		switch name {
		case "x":
			record[name] = value
		case "spec":
			definition[name] = value
		default:
			run[name] = value
		}
	}
	b, err := json.Marshal(record)
	if err != nil {
		c.t.Fatal(err)
	}
	c.createEntry(string(b))
}

// specOf returns what a record says of a job's definition.
func specOf(t *testing.T, job soloist.Job) (spec string) {
	t.Helper()
	inCluster(t, func(c *cluster) {
		c.start("a", job)
		time.Sleep(time.Second)
		spec = c.record("work").Definition.Spec
	})
	return spec
}

// Somebody puts back an old version of the entry: nothing runs on it.
func TestRestoredRecordRunsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", time.Second)
		job.Missed = soloist.RunAll
		c.start("a", job)
		time.Sleep(90 * time.Second)
		old := c.raw("work")
		time.Sleep(2 * time.Minute) // 00:03:30
		c.deleteEntry()
		c.createEntry(string(old))
		time.Sleep(2 * time.Minute)
		once(t, c.all())
		tokens := map[int64]bool{}
		for _, r := range c.all() {
			if tokens[r.Token] {
				t.Errorf("token %d twice", r.Token)
			}
			tokens[r.Token] = true
		}
	})
}

// Somebody changes the record by hand, after a write whose answer is lost, and
// leaves the writer's nonce in it: it is not taken for that write.
func TestHandwrittenRecordIsNotOurs(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 10s", time.Second))
		time.Sleep(time.Minute + 500*time.Millisecond)
		changed := false
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op != "write" || changed || c.record("work").Run.Status != store.Succeeded {
				return err
			}
			changed = true
			c.changeByHand(func(r *store.Record) { r.Watermark = r.Watermark.Add(48 * time.Hour) })
			return errNetwork
		})
		time.Sleep(10 * time.Minute)
		r := c.record("work")
		a.stop()
		if !changed || !r.Watermark.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("changed %t, and the record now says %s", changed, r.Watermark)
		}
		if a.Health().Broken["work"] == nil {
			t.Error("nobody is told")
		}
	})
}

// changeByHand rewrites the record of the job "work", whoever holds its lease.
func (c *cluster) changeByHand(change func(*store.Record)) {
	c.t.Helper()
	_ = c.store.Break(context.Background(), "soloist/work", 0)
	if err := c.writeUnderLease(change).Release(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

// writeUnderLease rewrites the record of the job "work", and keeps the lease.
func (c *cluster) writeUnderLease(change func(*store.Record)) store.Lease {
	c.t.Helper()
	ctx := context.Background()
	r := c.record("work")
	change(&r)
	b, err := json.Marshal(r)
	if err != nil {
		c.t.Fatal(err)
	}
	e, err := c.store.Read(ctx, "soloist/work")
	if err != nil {
		c.t.Fatal(err)
	}
	l := c.store.Lease("soloist/work", "7c0a1c1e-0000-4000-8000-000000000001")
	if _, err := l.Acquire(ctx, D, e.ETag); err != nil {
		c.t.Fatal(err)
	}
	if _, err := l.Write(ctx, e.ETag, b); err != nil {
		c.t.Fatal(err)
	}
	return l
}

// A record with a lease that the store does not take is the trouble of its job
// alone: the store is not called unreachable.
func TestRecordWithLeaseBeyondLimitsIsRefused(t *testing.T) {
	for text, status := range map[string]store.Status{
		"86400": store.Running, "61": store.Succeeded, "0.001": store.Running, "0": store.Running, "30.5": store.Stalled,
	} {
		inCase(t, text+" s, "+string(status), func(t *testing.T, c *cluster) {
			record := c.foreign(text, status)
			a := c.start("a", work("@every 1m", time.Second))
			time.Sleep(10 * time.Minute)
			h := a.Health()
			if got := h.Broken["work"]; h.Storage != nil || got == nil || !strings.Contains(got.Error(), "the record has a lease of") || !strings.Contains(got.Error(), "1s to 1m0s") {
				t.Errorf("health is %+v", h)
			}
			if all, err := a.Status(c.t.Context()); err != nil || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), "lease of") {
				t.Errorf("status is %+v, %v", all, err)
			}
			if got := string(c.raw("work")); got != record || len(c.all()) > 0 {
				t.Errorf("%d runs, and the record is now %s", len(c.all()), got)
			}
		})
	}
}

// A lease that was shorter than the store takes today does no harm once its
// run has ended.
func TestRecordWithShortEndedLeaseIsUsed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.foreign("0.5", store.Succeeded)
		a := c.start("a", work("@every 1m", time.Second))
		time.Sleep(2 * time.Minute)
		if h := a.Health(); h.Broken["work"] != nil || len(c.all()) == 0 {
			t.Errorf("%d runs, health %+v", len(c.all()), h)
		}
	})
}

// foreign makes the entry of the job "work" with this lease in its record.
func (c *cluster) foreign(lease string, status store.Status) string {
	c.t.Helper()
	now := time.Now().UTC().Add(-time.Minute) // before any replica started
	record := fmt.Sprintf(`{"schema":1,"app":"soloist","job":"work","created":%[1]q,"token":7,"writer":"w","watermark":%[1]q,"definition":{"spec":"x","since":%[1]q},"run":{"tick":%[1]q,"attempt":1,"status":%[2]q,"replica":"b","lease":%[3]s,"claimed":%[1]q}}`,
		now.Format(time.RFC3339), status, lease)
	if !json.Valid([]byte(record)) {
		c.t.Fatal(record)
	}
	c.createEntry(record)
	return record
}

// A record with no room for a claim is named, and its lease is released.
func TestRecordWithoutRoomForClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		now := time.Now().UTC().Format(time.RFC3339)
		record := fmt.Sprintf(`{"schema":1,"app":"soloist","job":"work","created":%[1]q,"token":7,"writer":"w","watermark":%[1]q,"definition":{"since":%[1]q},"run":{"status":"idle","lease":15},"x":%[2]q}`, now, strings.Repeat("x", 7850))
		c.createEntry(record)
		a := c.start("a", work("@every 1m", 0))
		time.Sleep(5 * time.Minute)
		for range 1800 {
			time.Sleep(time.Second)
			if why := a.Health().Broken["work"]; why == nil || !strings.Contains(why.Error(), "shorten the record") {
				t.Fatalf("health is %v", why)
			}
		}
		if n := a.tap.counts(); n["acquire"] == 0 || n["acquire"] != n["release"] {
			t.Errorf("calls: %v", n)
		}
		// A run by hand is refused at once: waiting does not make room.
		if _, err := c.replica("b", work("@every 1m", 0)).RunNow(c.within(time.Minute), "work", "x"); err == nil ||
			!strings.Contains(err.Error(), "shorten the record") || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("RunNow: %v", err)
		}
	})
}

// An unknown field leaves room for a claim and none for the outcome: the job is
// not run, since nothing would tell of that.
func TestRecordWithoutRoomForOutcome(t *testing.T) {
	for _, size := range []int{7480, 7540, 7600} {
		inCluster(t, func(c *cluster) {
			job := rerun(work("@every 10m", time.Second))
			c.byOthers(map[string]any{"x": strings.Repeat("x", size)})
			a := c.start("a", job)
			time.Sleep(10*time.Minute + 2*time.Second)
			for range 900 {
				time.Sleep(time.Second)
				if why := a.Health().Broken["work"]; why == nil || !strings.Contains(why.Error(), "shorten the record") {
					t.Fatalf("%d: health is %v", size, why)
				}
			}
			if n := len(c.all()); n > 0 {
				t.Errorf("%d: %d runs", size, n)
			}
			if n := a.tap.counts(); n["acquire"] == 0 || n["acquire"] != n["release"] || n["write"] > 1 { // one settles what came due before
				t.Errorf("%d: calls: %v", size, n)
			}
		})
	}
}

// Where there is room for a short outcome, a long one is shortened: the record
// tells that the run failed, and counts it.
func TestLongOutcomeIsShortened(t *testing.T) {
	for _, size := range []int{6200, 6800, 7000, 7050} {
		inCluster(t, func(c *cluster) {
			job := doing("@every 1m", func(_ context.Context, run *soloist.Run) error {
				_ = run.Heartbeat(strings.Repeat("ü", 100))
				return errors.New(strings.Repeat("é", 500))
			})
			c.byOthers(map[string]any{"x": strings.Repeat("x", size)})
			a := c.start("a", job)
			time.Sleep(10*time.Minute + 30*time.Second)
			r := c.record("work")
			if n := int64(len(c.all())); n < 10 || r.Counts[store.Failed] != n || r.Failures != n || r.Run.Status != store.Failed {
				t.Errorf("%d: %d runs failed; the record says %s, and counts %v, %d failures in a row", size, n, r.Run.Status, r.Counts, r.Failures)
			}
			if why := a.Health().Broken["work"]; why != nil {
				t.Errorf("%d: health is %v", size, why)
			}
		})
	}
}

// records are what may stand in an entry; in each of them JSON is what a program
// of another version, a person or chance has made of a record.
var records = []string{
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":7,"writer":"w","watermark":"2000-01-01T00:00:00Z","definition":{"spec":"x","since":"2000-01-01T00:00:00Z"},"run":{"status":"succeeded"}}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":7,"writer":"w","watermark":"2000-01-01T00:00:00Z","definition":{"spec":"x","since":"2000-01-01T00:00:00Z"},"run":{"tick":"2000-01-01T00:01:00Z","attempt":2,"status":"running","replica":"b","lease":15,"claimed":"2000-01-01T00:01:00Z"},"counts":{"failed":3},"history":[{"tick":"2000-01-01T00:00:00Z","status":"failed","token":6}],"later":{"a":[1,2.50]}}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":9223372036854775807,"watermark":"2000-01-01T00:00:00Z","run":{"status":"idle"}}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":7,"watermark":"9999-12-31T23:59:59.999999999Z","run":{"tick":"0001-01-01T00:00:00Z","status":"stalled","lease":1000000}}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00Z","token":7,"watermark":"0001-01-01T00:00:01Z","due":"2000-01-01T00:00:30Z","run":{"status":"abandoned","tick":"2000-01-01T00:01:00Z","request":"by hand"}}`,
	`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:00+14:00","token":7,"watermark":"2000-01-01T00:00:00-12:00","\u017ftatus":"failed","status":"idle","EPOCH":3,"Token":8}`,
	`{"schema":2,"app":"soloist","job":"work","token":7,"watermark":"2000-01-01T00:00:00Z","created":"2000-01-01T00:00:00Z","run":{"status":"idle"}}`,
	`{"schema":1,"app":"other","job":"work","token":7,"watermark":"2000-01-01T00:00:00Z","created":"2000-01-01T00:00:00Z","run":{"status":"idle"}}`,
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
			r := store.Record{App: "soloist", Job: "work", Created: at(-60), Definition: store.Definition{Since: at(-60)}, Token: token, Writer: "w", Watermark: at(through),
				Run: store.Run{Tick: at(tick), Attempt: attempt, Status: states[int(status)%len(states)], Replica: "b", Lease: store.Seconds(lease % 1e6 * 1e9), Request: request}}
			if flags&1 != 0 {
				r.Run.Claimed = at(tick)
			}
			if flags&2 != 0 {
				r.Run.Finished = at(tick + 1)
			}
			if flags&4 != 0 {
				r.Due = at(due)
			}
			r.Run.Stopping = flags&8 != 0
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
	ctx := c.within(time.Hour)
	report, err := a.RunDue(ctx, soloist.Wake{})
	after := c.raw("work")
	var old, rec store.Record
	var version struct{ Schema int }
	ours := json.Unmarshal(before, &old) == nil && json.Unmarshal(before, &version) == nil && version.Schema == 1 && old.App == "soloist" && old.Job == "work" && old.Token > 0
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
	sample, _ := json.Marshal(store.Record{Due: time.Now(), Succeeded: time.Now(), Past: store.Past{Succeeded: time.Now()}, Beat: store.Beat{Token: 1}, Orders: store.Orders{Served: 1}, Run: store.Run{Tick: time.Now(), Request: "x", Attempt: 1, Deaths: 1, Replica: "x", Lease: 1, Claimed: time.Now(), Finished: time.Now(), Stopping: true, Progress: store.Progress{Note: "x"}, Error: "x"}, Failures: 1, Definition: store.Definition{Mark: store.Mark{Spec: "x"}}, Counts: map[store.Status]int64{"": 1}, History: []store.Outcome{{}}})
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

// The record says when a job last succeeded, also when its history does not reach back to it.
func TestLastSuccessOutlivesTheHistory(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var fails atomic.Bool
		c.start("a", doing("* * * * *", func(context.Context, *soloist.Run) error {
			if fails.Swap(true) {
				return errors.New("no luck")
			}
			return nil
		}))
		time.Sleep(50*time.Minute + 30*time.Second)
		r := c.record("work")
		if want := r.Watermark.Add(-49 * time.Minute); r.Failures != 49 || r.Succeeded.Before(want) || r.Succeeded.Sub(want) > 10*time.Second {
			t.Errorf("got %s after %d failures, want about %s", r.Succeeded, r.Failures, want)
		}
	})
}
