package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/fields"
	"github.com/soloist-go/soloist/internal/record"
)

func nothing(context.Context, *soloist.Run) error { return nil }

func TestValidateTellsAllMistakes(t *testing.T) {
	s := &soloist.Scheduler{
		App:   "Größe",
		Grace: -time.Second,
		Store: &local.Memory{},
		Jobs: []soloist.Job{
			{Name: "Upper", Schedule: "@hourly", Do: nothing},
			{Name: "tick", Schedule: "@hourly", Do: nothing},
			{Name: "empty"},
			{Name: "twice", Schedule: "@hourly", Do: nothing},
			{Name: "negative", Schedule: "@hourly", Do: nothing, Timeout: -1, Late: soloist.Late{Finish: -time.Minute}},
			{Name: "long", Schedule: "@hourly", Do: nothing, Lease: 2 * time.Hour},
			{Name: "odd", Schedule: "@hourly", Do: nothing, Lease: 1500 * time.Millisecond},
			{Name: "policy", Schedule: "@hourly", Do: nothing, Late: soloist.Late{Missed: "sometimes"}, Overlap: "seldom", Interrupted: "maybe"},
			{Name: "zone", Schedule: "@hourly", Do: nothing, TimeZone: "Mars/Olympus"},
			{Name: "both", Schedule: "61 * * * *", Do: nothing, TimeZone: "No/Where"},
			{Name: "never", Schedule: "0 0 30 2 *", Do: nothing},
		},
		Singletons: []soloist.Singleton{{Name: "twice", Do: nothing}, {Name: "lead", Backoff: -1}},
	}
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`App is "Größe"`, "Grace is -1s", `"Upper"`, `"tick": allowed is any but tick, warmup`,
		`job "empty": Do is nil`, `"twice" is used more than once`,
		"Timeout is -1ns", "Late.Finish is -1m0s: allowed is zero, or 1s or more", "Lease is 2h0m0s: allowed is whole seconds from 1s to 1m0s",
		"Lease is 1.5s", `Late.Missed is "sometimes": allowed is RunLatest, RunAll or SkipMissed`,
		`Overlap is "seldom": allowed is SkipOverlap, QueueOne or Replace: `, `Interrupted is "maybe"`, "Mars/Olympus", "No/Where", `"61 * * * *"`, "minute", `job "never"`, `singleton "lead": Do is nil`, "Backoff is -1ns",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in:\n%v", want, err)
		}
	}
}

func TestMistakeRunsNothing(t *testing.T) {
	lead := leader()
	if err := lead.Run(t.Context(), nil); err == nil {
		t.Error("a singleton without a store: Run says nothing")
	}
	for name, s := range map[string]*soloist.Scheduler{
		"no store": {Jobs: []soloist.Job{{Name: "a", Schedule: "@hourly", Do: nothing}}},
		"no work":  {Store: &local.Memory{}},
	} {
		_, due := s.RunDue(t.Context(), soloist.Wake{})
		_, status := s.Status(t.Context())
		_, next := s.NextDue(t.Context())
		for call, err := range map[string]error{"Run": s.Run(t.Context()), "RunDue": due, "Status": status, "NextDue": next} {
			if err == nil {
				t.Errorf("%s: %s says nothing", name, call)
			}
		}
	}
}

// Each duration and each count of a job or singleton is refused if it is negative, or has no unit: Go takes a bare number for
// nanoseconds. That is said first, and once, with the field, the value and what is allowed.
func TestValidateRefusesNegativeAndBareNumbers(t *testing.T) {
	refused := func(s *soloist.Scheduler, of, want string) {
		t.Helper()
		s.Store = &local.Memory{}
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), of+want) || strings.Count(err.Error(), want) > 1 {
			t.Errorf("got %v, want %s%s", err, of, want)
		}
	}
	job, lead := soloist.Job{Name: "work", Schedule: "@hourly", Do: nothing}, soloist.Singleton{Name: "lead", Do: nothing}
	for of, work := range map[string]struct {
		fields any
		in     func() *soloist.Scheduler
	}{
		`job "work": `:       {&job, func() *soloist.Scheduler { return &soloist.Scheduler{Jobs: []soloist.Job{job}} }},
		`singleton "lead": `: {&lead, func() *soloist.Scheduler { return &soloist.Scheduler{Singletons: []soloist.Singleton{lead}} }},
	} {
		for name, v := range fields.Of(work.fields) {
			if !v.CanInt() {
				if v.CanUint() || v.CanFloat() {
					t.Errorf("%s: no wrong value of %s is known to this test", name, v.Type())
				}
				continue
			}
			v.SetInt(-int64(time.Hour))
			refused(work.in(), of, fmt.Sprintf("%s is %v: allowed is ", name, v))
			if v.SetInt(30); v.Type() == reflect.TypeFor[time.Duration]() {
				refused(work.in(), of, name+" is 30ns: did you mean 30 * time.Second?")
			}
			v.SetZero()
		}
	}
	refused(&soloist.Scheduler{Grace: 25, Jobs: []soloist.Job{job}}, "", "Grace is 25ns: did you mean 25 * time.Second?")
	job.Timeout, job.Retry.Backoff = 999*time.Microsecond, time.Millisecond
	refused(&soloist.Scheduler{Jobs: []soloist.Job{job}}, `job "work": `, `Timeout is 999µs: allowed is zero, or 1ms or more`)
}

// A mistake names its field and its value, and what is allowed, once: there is one line for each line of what is wanted.
func TestValidateTellsMistakeOnce(t *testing.T) {
	long := strings.Repeat("x", 62)
	job := func(name, schedule string) soloist.Job {
		return soloist.Job{Name: name, Schedule: schedule, Do: nothing}
	}
	zoned := func(schedule, zone string) soloist.Job {
		return soloist.Job{Name: "job", Schedule: schedule, TimeZone: zone, Do: nothing}
	}
	after := func(name string, names ...string) soloist.Job {
		return soloist.Job{Name: name, After: soloist.After{Jobs: names}, Do: nothing}
	}
	with := func(j soloist.Job, change func(*soloist.Job)) soloist.Job { change(&j); return j }
	each := func(j soloist.Job) soloist.Job { j.EveryReplica = true; return j }
	overlap := func(o soloist.OverlapPolicy, m soloist.MissedPolicy) soloist.Job {
		j := job("work", "@hourly")
		j.Overlap, j.Late.Missed = o, m
		return j
	}
	a := job("a", "@hourly")
	type of = []soloist.Work
	for name, tt := range map[string]struct {
		work of
		want string // empty: it is right
	}{
		"schedule": {of{zoned("61 * * * *", "")},
			`job "job": Schedule is "61 * * * *": byte 0, minute field: 61 is out of range, want 0-59`},
		"zone": {of{zoned("@hourly", "Mars/Olympus")},
			`job "job": TimeZone "Mars/Olympus" is unknown; want an IANA name such as Europe/Berlin, or UTC`},
		"typo": {of{zoned("@hourly", "Europe/Berln")},
			`job "job": TimeZone "Europe/Berln" is unknown; did you mean Europe/Berlin?`},
		"city": {of{zoned("@hourly", "tokyo")}, `job "job": TimeZone "tokyo" is unknown; did you mean Asia/Tokyo?`},
		"typo in the schedule": {of{zoned("TZ=Erope/Paris @daily", "")},
			`job "job": Schedule is "TZ=Erope/Paris @daily": byte 3: zone "Erope/Paris" is unknown; did you mean Europe/Paris?`},
		"both": {of{zoned("* * 3", "No/Where")},
			`job "job": TimeZone "No/Where" is unknown; want an IANA name such as Europe/Berlin, or UTC` + "\n" +
				`Schedule is "* * 3": byte 0: 3 fields, want 5 (minute hour day-of-month month day-of-week) or 6 (second first)`},

		"after":               {of{a, after("b", "a"), after("c", "a"), after("d", "b", "c")}, ""},
		"in any order":        {of{after("d", "b", "c"), after("c", "a"), after("b", "a"), a}, ""},
		"one schedule of two": {of{a, job("b", "0 * * * *"), after("c", "a", "b")}, ""},
		"of two schedules": {of{a, job("b", "@daily"), after("c", "a", "b")},
			`job "c": After.Jobs names "a", every hour, UTC, and "b", at 00:00 every day, UTC: allowed are jobs with the ticks of one schedule`},
		"of two zones": {of{job("a", "CRON_TZ=Europe/Berlin @daily"), job("b", "@daily"), after("c", "a", "b")},
			"allowed are jobs with the ticks of one schedule"},
		"unknown": {of{after("b", "a")}, `job "b": After.Jobs names "a", and there is no such job`},
		"itself":  {of{after("a", "a")}, `After.Jobs names "a", which is this job itself`},
		"a circle": {of{after("a", "c"), after("b", "a"), after("c", "b")},
			"After.Jobs leads back to where it began: a after c after b after a\njob \"b\": After.Jobs names \"a\"\njob \"c\": After.Jobs names \"b\""},
		"after a circle": {of{after("z", "a"), after("a", "b"), after("b", "a")},
			`job "z": After.Jobs leads back to where it began: a after b after a` + "\njob \"a\": After.Jobs names\njob \"b\": After.Jobs names"},
		"empty name":  {of{a, after("b", "a", "")}, "After.Jobs has an empty name: allowed are names of jobs"},
		"blank":       {of{after("b", "")}, "After.Jobs has an empty name"},
		"twice":       {of{a, after("b", "a", "a")}, `After.Jobs names "a" twice`},
		"a singleton": {of{lead("lead"), after("b", "lead")}, `After.Jobs names "lead", which is a singleton: it has no ticks`},
		"everywhere":  {of{each(a), after("b", "a")}, `After.Jobs names "a", which is a job of EveryReplica`},
		"a wrong one": {of{job("a", "@never"), after("b", "a")},
			`job "a": Schedule` + "\n" + `job "b": After.Jobs names "a", whose own ticks are not known`},
		"its own schedule": {of{a, with(after("b", "a"), func(j *soloist.Job) { j.Schedule = "@daily" })},
			`Schedule is "@daily": allowed is none beside After`},
		"its own zone": {of{a, with(after("b", "a"), func(j *soloist.Job) { j.TimeZone = "UTC" })},
			`TimeZone is "UTC": allowed is none beside After`},
		"ahead": {of{a, with(after("b", "a"), func(j *soloist.Job) { j.ClaimAhead = true })},
			"ClaimAhead is true: allowed is false beside After"},
		"on each": {of{a, each(after("b", "a"))}, "EveryReplica is true: allowed is false beside After"},
		"any of none": {of{with(a, func(j *soloist.Job) { j.After.Any = true })},
			"After.Any is true: allowed is false for a job without After.Jobs"},
		"no job at all":  {of{after("b", "", "")}, "After.Jobs has an empty name\nAfter.Jobs names"},
		"late on each":   {of{finishBy(time.Hour, each(a))}, "EveryReplica is true: allowed is no Lease, Late or Interrupted beside it"},
		"shards on each": {of{inShards(2, each(a))}, "Shards is 2: allowed is zero for a job of EveryReplica"},

		"shards":             {of{inShards(256, a), feed(256)}, ""},
		"less than no shard": {of{inShards(-1, a)}, `job "a": Shards is -1: allowed is 0 to 256`},
		"many shards":        {of{feed(257)}, `singleton "feed": Shards is 257: allowed is 0 to 256`},
		"a long name": {of{inShards(1, job(long, "@hourly"))},
			`the name of its last shard, "` + long + `-0", is 64 characters long: allowed are 63, so shorten Name`},
		"the name of a shard": {of{inShards(4, a), job("a-3", "@hourly"), job("a-4", "@hourly")},
			`the name "a-3" is used more than once: a shard of "a" has it, too`},
		"a shard of each": {of{feed(1), inShards(2, job("feed-0", "@hourly"))},
			`the name "feed-0" is used more than once: a shard of "feed" has it, too`},
		"the name of all": {of{feed(2), job("feed", "@hourly")}, `the name "feed" is used more than once`},
		"a mistake of 16": {of{inShards(16, job("a", "never"))}, `job "a": Schedule is "never"`},
		"overlap": {of{overlap("allow", "")},
			`Overlap is "allow": allowed is SkipOverlap, QueueOne or Replace: two runs of one job never take place at once, but those of its Shards do`},
		"queue all": {of{overlap(soloist.QueueOne, soloist.RunAll)},
			`Overlap is "queue-one": allowed is SkipOverlap beside Late.Missed: RunAll`},
		"a short wait": {of{overlap(soloist.QueueOne, soloist.SkipMissed)},
			`unless Late.Start says how long a tick may wait`},
		"a bounded wait": {of{with(overlap(soloist.QueueOne, soloist.SkipMissed),
			func(j *soloist.Job) { j.Late.Start = time.Hour })}, ""},
		"replace or skip": {of{overlap(soloist.Replace, soloist.SkipMissed)}, ""},
		"a follower": {of{a, with(after("b", "a"), func(j *soloist.Job) { j.Overlap = soloist.Replace })},
			`Overlap is "replace": allowed is SkipOverlap beside After`},
		"shards, claimed ahead": {of{with(inShards(3, rerun(overlap(soloist.Replace, ""))),
			func(j *soloist.Job) { j.ClaimAhead = true })}, ""},
	} {
		err := (&cluster{}).replica("a", tt.work...).Validate()
		var got, want []string
		if err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		if tt.want != "" {
			want = strings.Split(tt.want, "\n")
		}
		if !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, tt.want)
		}
	}
}

// Whatever is typed into a field is answered with an error or accepted.
func FuzzValidate(f *testing.F) {
	f.Add("job", "* * * * *", "")
	f.Add("Job", "TZ=UTC", "Europe/Berlin")
	f.Add("", "@every -5s", "\x00")
	f.Fuzz(func(t *testing.T, name, text, zone string) {
		s := &soloist.Scheduler{Store: &local.Memory{}, App: name,
			Jobs: []soloist.Job{{Name: name, Schedule: text, TimeZone: zone, Do: nothing}}}
		if err := s.Validate(); err != nil && strings.ContainsRune(err.Error(), 0) {
			t.Errorf("a NUL byte in %q", err)
		}
	})
}

// The fields are read by the first call: a later change of them has no effect.
func TestLaterChangesHaveNoEffect(t *testing.T) {
	for name, jobs := range map[string][]soloist.Job{"more jobs": {work("* * * * *", 0), work("* * * * *", 0)}, "no job": nil} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r := c.replica("a", work("* * * * *", 0), leader())
			c.ok(r.Validate())
			r.Jobs = jobs
			report, err := r.RunDue(c.t.Context(), soloist.Wake{})
			if err != nil || len(report.Jobs) != 1 || report.Jobs[0].Job != "work" {
				t.Errorf("got %+v, %v", report, err)
			}
		})
	}
}

// A chain of thousands is checked at once.
func TestLongChain(t *testing.T) {
	s := soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{{Name: "n0", Schedule: "@hourly", Do: nothing}}}
	for i := range 3000 {
		s.Jobs = append([]soloist.Job{{Name: fmt.Sprint("n", i+1), After: soloist.After{Jobs: []string{fmt.Sprint("n", i)}}, Do: nothing}}, s.Jobs...)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// ours is how each record of the job "work" begins.
const ours = `{"schema":1,"app":"soloist","job":"work",`

// A record that this program cannot use stays as it is, and is the trouble of its job alone: the store is not called unreachable.
// In which ways one may be ahead of its time, or have a lease beyond limits, the tests of internal/plan list.
func TestUnusableRecordIsLeftAlone(t *testing.T) {
	const past = `"created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z",`
	for name, tt := range map[string]struct{ record, want string }{
		"garbage":   {`%PDF-1.7`, "not JSON"},
		"types":     {`{"schema":"one"}`, "cannot be read"},
		"newer":     {`{"schema":9,"app":"soloist","job":"work",` + past + `"token":7,"run":{"status":"idle"}}`, "schema 9"},
		"foreign":   {`{"schema":1,"app":"other","job":"work",` + past + `"token":7,"run":{"status":"idle"}}`, `"other/work"`},
		"status":    {ours + past + `"token":7,"run":{"status":"dancing"}}`, "dancing"},
		"no token":  {ours + past + `"token":0,"run":{"status":"idle"}}`, "token 0"},
		"overflow":  {ours + past + `"token":4611686018427387904,"run":{"status":"idle"}}`, "a token is from 1 to"},
		"token":     {ours + past + `"token":4611686018427387903,"run":{"status":"idle"}}`, "the largest there is"},
		"attempt":   {ours + past + `"token":7,"run":{"status":"idle","attempt":-1}}`, "attempt -1"},
		"watermark": {ours + `"token":7,"run":{"status":"idle"}}`, "no watermark"},
		"future": {ours + `"created":"1999-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","token":7,"run":{"status":"idle"}}`,
			"watermark 2026-01-01T00:00:00Z is in the future"},
		"lease": {ours + past + `"token":7,"run":{"status":"running","attempt":1,"lease":86400,"claimed":"1999-01-01T00:00:00Z"}}`,
			"the record has a lease of 24h0m0s and the store takes whole seconds from 1s to 1m0s"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.createEntry(tt.record)
			a := c.start("a", work("@every 10s", time.Second), named("fine", work("@every 10s", time.Second)))
			time.Sleep(2 * time.Minute)
			if got := string(c.raw("work")); got != tt.record {
				t.Errorf("the record became %s", got)
			}
			if own, other := len(c.runsOf("work")), len(c.runsOf("fine")); own > 0 || other < 11 {
				t.Errorf("it ran %d times, the other job %d", own, other)
			}
			h := a.Health()
			if wantError(t, h.Broken["work"], tt.want); h.Storage != nil {
				t.Errorf("health is %+v", h)
			}
			status, _ := a.Status(context.Background())
			wantError(t, status[0].Err, tt.want)
			a.wantLines(1, "level=ERROR", "job=work")
		})
	}
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
		job.Late.Missed = soloist.RunAll
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
			if op != "write" || changed || c.record("work").Run.Status != event.Succeeded {
				return err
			}
			changed = true
			c.changeByHand(func(r *record.Record) { r.Watermark = r.Watermark.Add(48 * time.Hour) })
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
func (c *cluster) changeByHand(change func(*record.Record)) {
	c.t.Helper()
	ctx := context.Background()
	_ = c.store.Break(ctx, "soloist/work", 0)
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
	if err := l.Release(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// A record with no room for a claim, or for the outcome beside an unknown field, is named, and its lease is released. The job is
// not run, since nothing would tell of that; a manual run is refused at once: waiting does not make room.
func TestRecordWithoutRoom(t *testing.T) {
	for _, size := range []int{7480, 7540, 7600, 7850} {
		inCase(t, fmt.Sprint(size), func(t *testing.T, c *cluster) {
			job := rerun(work("@every 10m", time.Second))
			c.createEntry(ours + `"created":"1999-12-31T23:00:00Z","watermark":"1999-12-31T23:59:00Z","token":7,"writer":"w",` +
				`"definition":{"spec":"","since":"1999-12-31T23:00:00Z"},"run":{"status":"idle","lease":15},` +
				`"x":"` + strings.Repeat("x", size) + `"}`)
			a := c.start("a", job)
			time.Sleep(10*time.Minute + 2*time.Second)
			for range 900 {
				time.Sleep(time.Second)
				if why := a.Health().Broken["work"]; why == nil || !strings.Contains(why.Error(), "shorten the record") {
					t.Fatalf("health is %v", why)
				}
			}
			// One write settles what came due before.
			if n := a.tap.counts(); n["acquire"] == 0 || n["acquire"] != n["release"] || n["write"] > 1 {
				t.Errorf("calls: %v", n)
			}
			_, err := c.replica("b", job).RunNow(c.within(time.Minute), "work", "x")
			if wantError(t, err, "shorten the record"); errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("RunNow: %v", err)
			}
			c.wantRuns(0)
		})
	}
}

const of2000 = `"created":"2000-01-01T00:00:00Z","watermark":"2000-01-01T00:00:00Z",`

// records are what may stand in an entry; in each of them JSON is what a program
// of another version, a person or chance has made of a record.
var records = []string{
	ours + of2000 + `"writer":"w","token":7,"definition":{"spec":"x","since":"2000-01-01T00:00:00Z"},"run":{"status":"succeeded"}}`,
	ours + of2000 + `"writer":"w","token":7,"definition":{"spec":"x","since":"2000-01-01T00:00:00Z"},` +
		`"run":{"tick":"2000-01-01T00:01:00Z","attempt":2,"status":"running","replica":"b","lease":15,` +
		`"claimed":"2000-01-01T00:01:00Z"},` +
		`"counts":{"failed":3},"history":[{"tick":"2000-01-01T00:00:00Z","status":"failed","token":6}],"later":{"a":[1,2.50]}}`,
	ours + of2000 + `"token":9223372036854775807,"run":{"status":"idle"}}`,
	ours + `"created":"2000-01-01T00:00:00Z","token":7,"watermark":"9999-12-31T23:59:59.999999999Z",` +
		`"run":{"tick":"0001-01-01T00:00:00Z","status":"stalled","lease":1000000}}`,
	ours + `"created":"2000-01-01T00:00:00Z","token":7,"watermark":"0001-01-01T00:00:01Z","due":"2000-01-01T00:00:30Z",` +
		`"run":{"status":"abandoned","tick":"2000-01-01T00:01:00Z","request":"by hand"}}`,
	ours + `"created":"2000-01-01T00:00:00+14:00","token":7,"watermark":"2000-01-01T00:00:00-12:00",` +
		`"\u017ftatus":"failed","status":"idle","EPOCH":3,"Token":8}`,
	`{"schema":2,"app":"soloist","job":"work",` + of2000 + `"token":7,"run":{"status":"idle"}}`,
	`{"schema":1,"app":"other","job":"work",` + of2000 + `"token":7,"run":{"status":"idle"}}`,
	`null`, `{}`, `[]`, `7`, `"`, `<html>`, `{"schema":1}`, strings.Repeat(`[`, 8000),
}

// Whatever record a replica finds: it is refused, visibly, and stays as it is byte for byte while nothing runs; or its job
// runs, the token goes up, and the watermark and the time do not go back.
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
	states := []event.Status{record.Idle, event.Running, event.Succeeded, event.Failed,
		event.Stalled, event.Abandoned, event.Skipped, event.Missed}
	f.Fuzz(func(t *testing.T, token, through, tick, due int64, attempt int, status byte, lease int64, request string, flags byte) {
		synctest.Test(t, func(t *testing.T) {
			at := func(sec int64) time.Time { return time.Now().Add(time.Duration(sec%1e9) * time.Second) }
			r := record.Record{App: "soloist", Job: "work", Created: at(-60), Definition: record.Definition{Since: at(-60)},
				Token: token, Writer: "w", Watermark: at(through), Run: record.Run{Tick: at(tick), Attempt: attempt, Replica: "b",
					Status: states[int(status)%len(states)], Lease: record.Seconds(lease % 1e6 * 1e9), Request: request}}
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
	var old, rec record.Record
	var version struct{ Schema int }
	known := json.Unmarshal(before, &old) == nil && json.Unmarshal(before, &version) == nil && version.Schema == 1
	known = known && old.App == "soloist" && old.Job == "work" && old.Token > 0
	if bytes.Equal(before, after) {
		if len(c.all()) > runs || !known && err == nil {
			c.t.Errorf("%s: %d runs without a claim, %v", before, len(c.all())-runs, err)
		}
		return
	}
	if !known {
		c.t.Errorf("%s\nis none of this program's and became\n%s", before, after)
	}
	back := json.Unmarshal(after, &rec) != nil || rec.Token < old.Token || rec.Watermark.Before(old.Watermark)
	if back || !rec.Created.Equal(old.Created) {
		c.t.Errorf("%s\nbecame\n%s (%+v, %v)", before, after, report, err)
	}
	for _, r := range c.all()[runs:] {
		if r.Token <= old.Token || r.Token > rec.Token || r.Tick.After(r.start) {
			c.t.Errorf("%s\nran tick %s at %s with token %d and became\n%s", before, r.Tick, r.start, r.Token, after)
		}
	}
}
