package why_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/why"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// at is an instant of the day of the tests.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-03-28 "+clock)
	if err != nil {
		t, err = time.Parse("2006-01-02 15:04:05", clock)
	}
	if err != nil {
		panic(err)
	}
	return t
}

// A world has facts, which a test changes: a job of each ten minutes at noon, whose ticks have succeeded, and two replicas.
type world struct {
	*why.Facts
	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{&why.Facts{Now: at("12:04:00"), Job: soloist.Job{Name: "report", Schedule: "*/10 * * * *"}, Others: map[string]desk.Status{}}, t}
	w.schedule()
	w.Status = desk.Status{Name: "report", Lease: store.Available, Schedule: "*/10 * * * *", Next: at("12:10:00"),
		Record: record.Record{Created: at("2026-01-01 00:00:00"), Watermark: at("12:00:00"), Token: 7, Run: record.Run{Tick: at("12:00:00"), Status: event.Succeeded, Replica: "a"}}}
	for tick := at("10:00:00"); !tick.After(at("12:00:00")); tick = tick.Add(10 * time.Minute) {
		w.settle(event.Outcome{Tick: tick, Status: event.Succeeded, Replica: "a", Token: 5, Attempt: 1, Start: tick.Add(200 * time.Millisecond), End: tick.Add(3 * time.Second)})
	}
	w.Replicas = presence.Reading{At: w.Now, Doc: &presence.Document{Replicas: map[string]presence.Replica{}}}
	w.replica("a", "2026-03-27 08:00:00", "12:03:00")
	return w
}

func (w *world) schedule() {
	w.t.Helper()
	t, err := app.TicksOf(w.Job)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Ticks, w.First = t, w.Job
}

// settle adds an outcome, or replaces that of its tick.
func (w *world) settle(o event.Outcome) {
	for i := range w.Lines {
		if w.Lines[i].Tick.Equal(o.Tick) && o.Request == "" {
			w.Lines[i].Outcome = o
			return
		}
	}
	w.Lines = append(past.Lines{history.Line{Outcome: o}}, w.Lines...)
}

// not replaces the outcome of the tick of 11:30 by one without a run.
func (w *world) not(status event.Status, reason string) {
	w.settle(event.Outcome{Tick: at("11:30:00"), Status: status, Reason: reason})
}

// ended replaces the outcome of the tick of 11:30 by one of a run.
func (w *world) ended(status event.Status, reason string) {
	w.settle(event.Outcome{Tick: at("11:30:00"), Status: status, Reason: reason, Replica: "a", Token: 6, Attempt: 1, Start: at("11:30:01"), End: at("11:32:00")})
}

func (w *world) replica(name, started, seen string) presence.Replica {
	r := presence.Replica{ID: name, Started: at(started), Seen: at(seen), Every: 120}
	w.Replicas.Doc.Replicas[name] = r
	return r
}

func (w *world) left(name, started, left string) {
	r := w.replica(name, started, left)
	r.Left = at(left)
	w.Replicas.Doc.Replicas[name] = r
}

func (w *world) order(o record.Order) {
	o.Job = "report"
	w.Control.Audit = append([]record.Order{o}, w.Control.Audit...)
}

// a calendar of one day
type holiday struct{}

func (holiday) Contains(d calendar.Day) bool { return d.String() == "2026-03-29" }
func (holiday) Name() string                 { return "holidays" }

// daily makes the job one of a time of day in Berlin, where 02:30 does not exist on 2026-03-29.
func (w *world) daily(text string, limit func(*soloist.Job)) {
	w.Job.Schedule, w.Job.TimeZone = text, "Europe/Berlin"
	if limit != nil {
		limit(&w.Job)
	}
	w.schedule()
	w.Now, w.Lines = at("2026-03-30 12:00:00"), nil
	w.Status.Record.Watermark = at("2026-03-30 11:00:00")
	w.Status.Next = w.Ticks.Next(w.Now)
}

// Each reason, by the facts that it rests on. The text is the moment that is asked about, or empty.
var reasons = []struct {
	name  string
	given func(w *world)
	text  string
	want  why.Cause
	says  []string // parts of the sentence; with "? " in front, of what is not known; with "! ", of the facts
}{
	{"all is well", func(*world) {}, "", why.NotDue, []string{"nothing is due: the next tick is 2026-03-28 12:10:00Z, in 6m", "! no outcome since 2026-03-28 10:00:00Z"}},
	{"it succeeded", func(*world) {}, "11:30", why.Succeeded, []string{"it succeeded", "! it began on a at 2026-03-28 11:30:00Z, and ended at 2026-03-28 11:30:03Z"}},
	{"it failed with a hostile text", func(w *world) { w.ended(event.Failed, "no\npaper\x1b[2J\u202e") }, "", why.Failed, []string{`failed: no paper\x1b[2J\u202e`}},
	{"its runner died", func(w *world) { w.ended(event.Abandoned, "its runner died") }, "", why.Died, []string{"the runner died", "! no Interrupted: Rerun", "? the log of a"}},
	{"it was too late for another attempt", func(w *world) {
		w.Job.Interrupted = soloist.Rerun
		w.ended(event.Abandoned, "its runner died, and the starting deadline has passed")
	}, "", why.Died, []string{"the runner died, and the starting deadline has passed"}},
	{"it lost its lease", func(w *world) { w.ended(event.Abandoned, "lost: leased by another") }, "", why.Lost, []string{"its run on a lost its lease: lost: leased by another"}},
	{"overlap", func(w *world) {
		w.settle(event.Outcome{Tick: at("11:20:00"), Status: event.Succeeded, Replica: "b", Token: 5, Start: at("11:20:01"), End: at("11:41:07")})
		w.not(event.Skipped, "overlap")
	}, "", why.Overlap, []string{"the run before, for the tick of 2026-03-28 11:20:00Z, on b, took until 2026-03-28 11:41:07Z"}},
	{"overlap, and the run is not kept", func(w *world) { w.not(event.Skipped, "overlap"); w.Lines = w.Lines[:4] }, "", why.Overlap, []string{"the job was running", "? which run"}},
	{"paused by an operator, which is over", func(w *world) {
		w.order(record.Order{Kind: record.OrderPause, At: at("11:25:00"), By: "anna", Reason: "new disks", Until: at("11:35:00")})
		w.not(event.Skipped, "paused")
	}, "", why.PausedByOrder, []string{"the job was paused by anna at 2026-03-28 11:25:00Z until 2026-03-28 11:35:00Z: new disks"}},
	{"a resume ended that pause", func(w *world) {
		w.order(record.Order{Kind: record.OrderPause, At: at("11:05:00"), By: "anna"})
		w.order(record.Order{Kind: record.OrderResume, At: at("11:15:00"), By: "anna"})
		w.not(event.Skipped, "paused")
	}, "", why.Paused, []string{"the job was paused", "? by what"}},
	{"paused itself now", func(w *world) {
		w.Status.Record.Orders.Paused = record.SelfPause{At: at("12:00:04"), Token: 7}
		for _, tick := range []string{"11:50:00", "12:00:00"} {
			w.settle(event.Outcome{Tick: at(tick), Status: event.Failed, Token: 6, Replica: "a", Start: at(tick), End: at(tick)})
		}
		w.settle(event.Outcome{Tick: at("12:04:00"), Request: "mine", Status: event.Failed, Token: 8, Replica: "a", Start: at("12:04:00")})
		w.Now = at("12:11:00")
	}, "", why.PausedItself, []string{"the job is paused by itself at 2026-03-28 12:00:04Z after 2 failures in a row"}},
	{"had paused itself", func(w *world) {
		w.Job.Retry.PauseAfter = 2
		for _, tick := range []string{"11:10:00", "11:20:00"} {
			w.settle(event.Outcome{Tick: at(tick), Status: event.Failed, Token: 6, Replica: "a", Start: at(tick), End: at(tick)})
		}
		w.not(event.Skipped, "paused")
	}, "", why.PausedItself, []string{"the job had paused itself after 2 failures in a row", "! Retry.PauseAfter is 2"}},
	{"its predecessor failed", func(w *world) {
		w.Others["import"] = desk.Status{Name: "import", Record: record.Record{History: []event.Outcome{{Tick: at("11:30:00"), Status: event.Failed, Reason: "no disk"}}}}
		w.not(event.Skipped, "import failed")
	}, "", why.Predecessor, []string{"its predecessor import did not succeed: it failed", "! import: failed (no disk)"}},
	{"the outcome of its predecessor has gone", func(w *world) { w.not(event.Missed, "the outcome of import is not known") }, "", why.Predecessor, []string{"the outcome of its predecessor import had left the record"}},
	{"another definition", func(w *world) {
		w.Status.Record.Definition.Since = at("11:31:00")
		r := w.replica("b", "11:31:00", "12:03:00")
		r.Version = "1.4"
		w.Replicas.Doc.Replicas["b"] = r
		w.not(event.Missed, "the schedule changed")
	}, "", why.Definition, []string{"changed at 2026-03-28 11:30:00Z, with b (1.4), which started at 2026-03-28 11:31:00Z"}},
	{"too many", func(w *world) { w.not(event.Missed, "too many were due") }, "", why.TooMany, []string{"more ticks were due than are made up for"}},
	{"no replica was up", func(w *world) {
		w.left("a", "08:00:00", "11:24:41")
		w.replica("b", "11:37:11", "12:03:00")
		w.not(event.Missed, "a newer one was due")
		w.Lines[2].Replica = "b"
	}, "", why.Down, []string{"no replica ran it before a newer tick was due: no replica was up from 2026-03-28 11:24:41Z, when a had stopped, to 2026-03-28 11:37:11Z, when b started"}},
	{"no replica was up, but one may have been cut off", func(w *world) {
		w.replica("a", "08:00:00", "11:24:41")
		w.replica("b", "11:37:11", "12:03:00")
		w.not(event.Missed, "past the starting deadline")
		w.Lines[2].Replica, w.Lines[1].Replica, w.Lines[0].Replica = "b", "b", "b"
	}, "", why.Down, []string{"no replica ran it in time: no replica is known to have been up from 2026-03-28 11:24:41Z", "when a last said that it was up", "? whether a was up after 2026-03-28 11:24:41Z"}},
	{"the process before had the same name", func(w *world) {
		w.replica("a", "11:37:11", "12:03:00")
		w.not(event.Missed, "a newer one was due")
	}, "", why.Down, []string{"no replica is known to have been up from 2026-03-28 11:20:03Z, when a ended a run of it, to 2026-03-28 11:37:11Z", "? until when the process named a before"}},
	{"a later process of that name began the next run", func(w *world) {
		w.replica("a", "08:00:00", "11:24:41")
		w.not(event.Missed, "a newer one was due")
	}, "", why.Down, []string{"no replica is known to have been up from 2026-03-28 11:24:41Z, when a last said that it was up, to 2026-03-28 11:40:00Z, when a began a run of it"}},
	{"the platform woke no replica up", func(w *world) {
		r := w.replica("a", "11:24:40", "11:24:41")
		r.Woken = true
		w.Replicas.Doc.Replicas["a"] = r
		w.not(event.Missed, "a newer one was due")
	}, "", why.Down, []string{"no replica is known to have been woken up by its platform from 2026-03-28 11:24:41Z"}},
	{"a replica was up", func(w *world) { w.not(event.Missed, "a newer one was due") }, "", why.Unclaimed, []string{"though a was up", "? why: the log of a"}},
	{"the storage was out of reach", func(w *world) {
		w.Here = why.Here{Replica: "a", Outages: []why.Outage{{From: at("11:29:30"), To: at("11:38:00")}}}
		w.replica("b", "08:00:00", "12:03:00")
		w.not(event.Missed, "a newer one was due")
	}, "", why.OutOfReach, []string{"out of reach for a from 2026-03-28 11:29:30Z to 2026-03-28 11:38:00Z", "? whether b reached"}},
	{"the list does not reach back", func(w *world) {
		w.settle(event.Outcome{Tick: at("10:10:00"), Status: event.Missed, Reason: "a newer one was due"})
		w.left("a", "08:00:00", "10:05:00")
		w.replica("b", "10:15:00", "12:03:00")
	}, "", why.Unclaimed, []string{"no replica ran it before a newer tick was due", "? whether a replica was up"}},
	{"there is no list", func(w *world) { w.Replicas = presence.Reading{}; w.not(event.Missed, "a newer one was due") }, "", why.Unclaimed, []string{"? whether a replica was up"}},
	{"the list lacks who ran it next", func(w *world) {
		w.replica("a", "11:45:00", "12:03:00")
		w.not(event.Missed, "a newer one was due")
		w.Lines[2].Replica = "x"
	}, "", why.Unclaimed, []string{"! x is not in the list", "? whether a replica was up"}},
	{"the runner before had died", func(w *world) {
		w.settle(event.Outcome{Tick: at("11:20:00"), Status: event.Abandoned, Reason: "its runner died", Replica: "b", Token: 5, Start: at("11:20:01")})
		w.not(event.Missed, "past the starting deadline")
	}, "11:30", why.Died, []string{"the run before, for the tick of 2026-03-28 11:20:00Z, on b, had no end, since its runner died"}},
	{"a range of ticks", func(w *world) {
		w.Lines = append(w.Lines[:2:2], w.Lines[4:]...)
		w.settle(event.Outcome{From: at("11:20:00"), Tick: at("11:40:00"), Count: 2, Status: event.Skipped, Reason: "group imports"})
		w.Lines[0], w.Lines[1], w.Lines[2] = w.Lines[1], w.Lines[2], w.Lines[0]
	}, "11:30", why.GroupFull, []string{"no slot of group imports", "! that of the ticks after 2026-03-28 11:20:00Z up to 2026-03-28 11:40:00Z"}},
	{"it waits for another attempt", func(w *world) {
		w.Now = at("12:11:00")
		w.Status.Record.Run = record.Run{Tick: at("12:10:00"), Status: event.Abandoned, Replica: "b", Claimed: at("12:10:01"), Attempt: 2}
	}, "", why.Waiting, []string{"attempt 2 on b was interrupted, and it waits for another one"}},
	{"it waits after an unlock", func(w *world) {
		w.Now, w.Status.Waits = at("12:11:00"), at("12:12:00")
		w.Status.Record.Run = record.Run{Tick: at("12:10:00"), Status: event.Running, Replica: "b", Claimed: at("12:10:01")}
	}, "", why.Waiting, []string{"it waits after an unlock until about 2026-03-28 12:12:00Z, since the run on b may go on"}},
	{"a stranger has the lease", func(w *world) {
		w.Now, w.Status.Occupied, w.Status.Lease = at("12:11:00"), fmt.Errorf("leased by a client that claims nothing"), store.Leased
	}, "", why.Occupied, []string{"leased by a client that claims nothing"}},
	{"no replica is up", func(w *world) { w.Now = at("12:41:00"); w.Replicas.At = w.Now }, "", why.Down, []string{"no replica has claimed it: no replica is known to have been up from 2026-03-28 12:03:00Z on, when a last said that it was up"}},
	{"it came due a moment ago", func(w *world) { w.Now = at("12:10:02") }, "", why.Due, []string{"it came due 2s ago"}},
	{"nobody claims it", func(w *world) { w.Now = at("12:11:00"); w.Replicas.At = w.Now; w.replica("a", "08:00:00", "12:10:30") }, "", why.Unclaimed, []string{"it came due 1m ago, and no replica has claimed it", "! a is up", "? /healthz"}},
	{"the storage is out of reach", func(w *world) {
		w.Now = at("12:11:00")
		w.Here = why.Here{Replica: "a", Outages: []why.Outage{{From: at("12:09:30")}}}
	}, "", why.OutOfReach, []string{"the storage is out of reach for a since 2026-03-28 12:09:30Z"}},
	{"it cannot be run here", func(w *world) {
		w.Now, w.Here = at("12:11:00"), why.Here{Replica: "a", Broken: fmt.Errorf("the record is full")}
	}, "", why.Unclaimed, []string{"this replica, a, cannot run it: the record is full"}},
	{"it is to come", func(w *world) {}, "2026-03-28T12:20:00Z", why.NotDue, []string{"it comes due in 16m"}},
	{"there is no tick then", func(w *world) {}, "11:33", why.NoTick, []string{"has no tick then", "! the tick before is 2026-03-28 11:30:00Z", "! the next tick is 2026-03-28 11:40:00Z"}},
	{"the outcome is not kept", func(w *world) {}, "08:30", why.Kept, []string{"not kept any more", "! the oldest outcome that was read is of 2026-03-28 10:00:00Z", "? what became of it: a record keeps the last outcomes"}},
	{"the outcome may be lost", func(w *world) { w.Lines = append(w.Lines[:3:3], w.Lines[5:]...); w.Lines[2].Gap = true }, "11:30", why.Kept, []string{"? what became of it: outcomes may be lost"}},
	{"the log was not read so far", func(w *world) { w.Lines, w.Logged = w.Lines[:4], true }, "11:20", why.Kept, []string{"? what became of it: the log was not read back so far"}},
	{"from before the record", func(w *world) {}, "2025-12-31T23:50:00Z", why.NoRecord, []string{"it was made at 2026-01-01 00:00:00Z"}},
	{"a time that does not exist", func(w *world) {
		w.daily("30 2 * * *", nil)
		w.settle(event.Outcome{Tick: at("2026-03-29 01:00:00"), Status: event.Succeeded, Replica: "a", Token: 3, Start: at("2026-03-29 01:00:01"), End: at("2026-03-29 01:00:02")})
	}, "2026-03-29T02:30", why.NoSuch, []string{"02:30 does not exist on 2026-03-29 in Europe/Berlin: clocks go forward from 02:00 to 03:00, where its tick is, 2026-03-29 01:00:00Z; as for that, it succeeded"}},
	{"a time that does not exist, and no tick", func(w *world) { w.daily("30 4 * * *", nil) }, "2026-03-29T02:30", why.NoSuch, []string{"02:30 does not exist"}},
	{"a time that comes twice", func(w *world) {
		w.daily("30 2 * * *", nil)
		w.Now = at("2026-10-26 12:00:00")
		w.settle(event.Outcome{Tick: at("2026-10-25 00:30:00"), Status: event.Failed, Replica: "a", Token: 3, Start: at("2026-10-25 00:30:01")})
	}, "2026-10-25T02:30", why.Failed, []string{"! clocks go back on that day, so they show 2026-10-25T02:30 twice: at 2026-10-25 00:30:00Z and at 2026-10-25 01:30:00Z"}},
	{"a calendar leaves the day out", func(w *world) {
		w.daily("30 4 * * *", func(j *soloist.Job) { j.Days.Except = []soloist.Calendar{holiday{}} })
	}, "2026-03-29", why.LeftDay, []string{"2026-03-29 is a day of holidays"}},
	{"a calendar moves the tick", func(w *world) {
		w.daily("30 4 * * *", func(j *soloist.Job) { j.Days.Except, j.Days.Shift = []soloist.Calendar{holiday{}}, soloist.ShiftNext })
	}, "2026-03-29T04:30", why.LeftDay, []string{"its ticks of that day move to 2026-03-30"}},
	{"before From", func(w *world) {
		w.daily("30 4 * * *", func(j *soloist.Job) { j.Days.From = at("2026-03-29 12:00:00") })
	}, "2026-03-29T04:30", why.Bounds, []string{"that is before From, 2026-03-29 12:00:00Z"}},
	{"after Until", func(w *world) {
		w.daily("30 4 * * *", func(j *soloist.Job) { j.Days.Until = at("2026-03-29 01:00:00") })
	}, "2026-03-29T04:30", why.Bounds, []string{"no ticks from Until, 2026-03-29 01:00:00Z, on"}},
	{"a day with a failure", func(w *world) { w.ended(event.Failed, "no paper") }, "2026-03-28", why.Failed, []string{"no paper", "! the day has 144 ticks"}},
	{"a span ago", func(w *world) { w.ended(event.Failed, "no paper") }, "30m", why.Failed, []string{"no paper"}},
	{"each replica runs it", func(w *world) { w.Status.EveryReplica = true }, "", why.Each, []string{"each replica runs it for itself"}},
	{"no record yet", func(w *world) { w.Status.Lease = "" }, "", why.NoRecord, []string{"no replica has ever started with it"}},
	{"the store does not answer", func(w *world) { w.Status.Err = fmt.Errorf("no route\x1b[2J") }, "", why.Unread, []string{`its record could not be read: no route\x1b[2J`}},
	{"a job without ticks", func(w *world) {
		w.Job.Schedule = "@manual"
		w.schedule()
		w.Status.Next, w.Lines = time.Time{}, nil
	}, "", why.NotDue, []string{"it has no ticks: it runs when that is ordered"}},
	{"a job without ticks that failed", func(w *world) {
		w.Job.Schedule = "@manual"
		w.schedule()
		w.Lines = past.Lines{{Outcome: event.Outcome{Tick: at("11:28:00"), Request: "again", Status: event.Failed, Reason: "no paper", Replica: "b", Token: 6, Start: at("11:28:00"), End: at("11:31:00")}}}
	}, "", why.Failed, []string{"no paper"}},
	{"a singleton", func(w *world) {
		w.Ticks, w.Job, w.Status.Singleton = nil, soloist.Job{}, true
		w.Status.Lease, w.Status.Record.Run = store.Leased, record.Run{Status: event.Running, Replica: "b", Claimed: at("11:10:00")}
		w.Lines = past.Lines{{Outcome: event.Outcome{Status: event.Abandoned, Reason: "its runner died", Replica: "a", Token: 4, Start: at("09:00:00")}}}
	}, "", why.Died, []string{"the runner died"}},
	{"what was not read", func(w *world) { w.LeftOut = []string{"which replicas were up: a time-out"} }, "", why.NotDue, []string{"? which replicas were up: a time-out"}},
}

func TestEachReason(t *testing.T) {
	for _, c := range reasons {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			c.given(w)
			var m why.Moment
			if c.text != "" {
				var err error
				if m, err = why.ReadMoment(c.text, w.Now, w.Ticks.Location()); err != nil {
					t.Fatal(err)
				}
			}
			got := w.Of(m)
			if got.Cause != c.want {
				t.Errorf("got the cause %s, want %s", got.Cause, c.want)
			}
			for _, part := range c.says {
				where := got.Sentence
				if rest, ok := strings.CutPrefix(part, "? "); ok {
					part, where = rest, strings.Join(got.NotKnown, "\n")
				} else if rest, ok := strings.CutPrefix(part, "! "); ok {
					part, where = rest, strings.Join(got.Known, "\n")
				}
				if !strings.Contains(where, part) {
					t.Errorf("got no %q in %q", part, where)
				}
			}
			if t.Failed() {
				t.Logf("%+v", got)
			}
		})
	}
}

func TestReadMoment(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := at("2026-03-30 12:00:00")
	for text, want := range map[string]string{
		"02:30": "2026-03-30 00:30:00", "23:00": "2026-03-29 21:00:00", "14:00:01": "2026-03-29 12:00:01", "14:00:00": "2026-03-30 12:00:00",
		"2026-03-29": "2026-03-28 23:00:00", "2026-03-29 04:00": "2026-03-29 02:00:00", "2026-03-29T04:00:07": "2026-03-29 02:00:07",
		"2026-03-29T04:00:00Z": "2026-03-29 04:00:00", "2026-03-29 04:00:00Z": "2026-03-29 04:00:00", "2h": "2026-03-30 10:00:00", "1d": "2026-03-29 12:00:00",
		"2026-03-29T02:30": "2026-03-29 01:00:00",
		"":                 "", "25:00": "", "yesterday": "", "2026-13-01": "", "1969-12-31": "", "0001-01-01T00:00:00Z": "", "-3h": "", "02:30 Europe/Berlin": "", "9999-12-31": "",
	} {
		m, err := why.ReadMoment(text, now, zone)
		got := ""
		if err == nil {
			got = m.From.UTC().Format("2006-01-02 15:04:05")
		}
		if got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}
