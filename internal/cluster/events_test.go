package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// An eventBook keeps the events of a replica.
type eventBook struct {
	mu  sync.Mutex
	all []event.Event
}

// tells has a replica keep its events.
func (r *replica) tells() *eventBook {
	b := &eventBook{}
	r.Events = b.add
	return b
}

func (b *eventBook) add(e event.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, e)
}

// of returns the events of a job that are of one of the kinds, by default all of them.
func (b *eventBook) of(job string, kinds ...event.Kind) (found []event.Event) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.all {
		if e.Job == job && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) {
			found = append(found, e)
		}
	}
	return found
}

// want checks the kinds of the events of a job, in order, but for details and renewals: at the
// instant of a renewal something else may happen.
func (b *eventBook) want(t *testing.T, job string, want ...event.Kind) {
	t.Helper()
	var got []event.Kind
	for _, e := range b.of(job) {
		if e.Kind != event.Detail && e.Kind != event.Renewed {
			got = append(got, e.Kind)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("events of %s:\ngot  %q\nwant %q", job, got, want)
	}
}

// only returns the one event of a kind.
func (b *eventBook) only(t *testing.T, job string, kind event.Kind) event.Event {
	t.Helper()
	all := b.of(job, kind)
	if len(all) != 1 {
		t.Fatalf("%d events of the kind %s: %+v", len(all), kind, all)
	}
	return all[0]
}

// What is told of a run, and to whom.
func TestEvents(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a run tells its way from the claim to the outcome": func(c *cluster) {
			a := c.replica("a", doing("0 * * * *", func(_ context.Context, r *soloist.Run) error {
				for i := range 12 {
					if err := r.Heartbeat(fmt.Sprint("row ", i, strings.Repeat(" of very many", 10))); err != nil {
						return err
					}
					time.Sleep(100 * time.Millisecond)
				}
				if err := r.Save(context.Background(), "half"); err != nil {
					return err
				}
				time.Sleep(11 * time.Second)
				return soloist.Skip("empty")
			}))
			book := a.tells()
			c.launch(a)
			time.Sleep(time.Hour + time.Minute)
			book.want(c.t, "work", event.Claimed, event.Started, event.Heartbeat, event.Heartbeat, event.Saved, event.Ended)
			outcome := c.record("work").History[0]
			for _, e := range book.of("work") {
				c.wrong(e.Replica != "a" || !e.Run.Tick.Equal(outcome.Tick) || e.Run.Attempt != 1 || e.Run.Token != outcome.Token,
					"not of the run: %+v", e)
				c.wrong(e.Time.Location() != time.UTC || e.Time.Before(outcome.Tick), "it has the time %s", e.Time)
			}
			begun, saved := book.only(c.t, "work", event.Started), book.only(c.t, "work", event.Saved)
			ended := book.only(c.t, "work", event.Ended)
			c.wrong(ended.Outcome != outcome || ended.Took != 12200*time.Millisecond, "got %+v, want %+v", ended, outcome)
			n := len(book.of("work", event.Renewed))
			c.wrong(n != 3, "%d renewals in 12 s, and in the seconds before the tick", n)
			c.wrong(saved.Note != c.record("work").Run.Progress.Note || !strings.HasPrefix(saved.Note, "row 11 "),
				"got %+v", saved)
			c.wrong(begun.Run.Try != 1 || begun.Late() < 0 || begun.Late() > time.Second, "got %+v", begun)
		},
		"who takes over says from whom": func(c *cluster) {
			// The one that is cut off says that it has lost the lease, and that its outcome is not in the record.
			job := rerun(work("0 * * * *", 30*time.Second))
			a, b := c.replica("a", job), c.replica("b", job)
			old, next := a.tells(), b.tells()
			c.launch(a)
			time.Sleep(time.Hour + 2*time.Second)
			c.launch(b)
			a.kill()
			time.Sleep(2 * time.Minute)
			lost, trouble := old.only(c.t, "work", event.Lost), old.only(c.t, "", event.StoreTrouble)
			c.wrong(!errors.Is(lost.Err, soloist.ErrLost) || lost.Run.Token == 0, "got %+v", lost)
			c.wrong(trouble.Note != "work" || trouble.Err == nil, "got %+v", trouble)
			took, claimed := next.only(c.t, "work", event.TookOver), next.only(c.t, "work", event.Claimed)
			c.wrong(took.Note != "died" || took.Former.Replica != "a", "got %+v", took)
			c.wrong(claimed.Run.Token != took.Run.Token || claimed.Run.Attempt != 2 || claimed.Late() < 10*time.Second,
				"got %+v", claimed)
			a.tap.cut.Store(false)
			time.Sleep(time.Minute)
			unrecorded, back := old.only(c.t, "work", event.Unrecorded), old.only(c.t, "", event.StoreBack)
			c.wrong(unrecorded.Outcome.Status != event.Abandoned || unrecorded.Err == nil, "got %+v", unrecorded)
			c.wrong(back.Took < time.Minute, "got %+v", back)
		},
		"an outage that only a run by hand has met ends with that run": func(c *cluster) {
			// No later call would end it. The log does not claim that the store answers.
			a := c.replica("a", work("0 * * * *", 0)).meets(fail(errNetwork))
			book := a.tells()
			_, err := a.RunNow(c.within(time.Minute), "work", "x")
			c.wrong(err == nil, "it ran without a store")
			began, back := book.of("", event.StoreTrouble), book.of("", event.StoreBack)
			c.wrong(len(began) != 1 || len(back) != 1 || back[0].Note == "" || back[0].Took < 50*time.Second,
				"got %+v, %+v", began, back)
			a.wantLines(0, "answers again")
		},
		"a function that panics, or ends its goroutine, costs no later event": func(c *cluster) {
			// What panics the same way again and again is logged once.
			a, book := c.replica("a", work("* * * * *", 0)), &eventBook{}
			a.Events = func(e event.Event) {
				book.add(e)
				if e.Kind == event.Started {
					panic("no such metric")
				}
				runtime.Goexit()
			}
			c.launch(a)
			time.Sleep(3*time.Minute + time.Second)
			book.want(c.t, "work", slices.Repeat([]event.Kind{event.Claimed, event.Started, event.Ended}, 3)...)
			a.wantLines(1, "level=ERROR", "the Events function panicked", "no such metric", "events_test.go")
		},
		"the outcome of a run whose write got no answer is reported once a read shows it": func(c *cluster) {
			a, b := c.replica("a", work("@every 10m", 10*time.Second)), c.replica("b", work("@every 10m", 10*time.Second))
			books := []*eventBook{a.tells(), b.tells()}
			c.launch(a)
			time.Sleep(10*time.Minute + 5*time.Second)
			a.meets(cutOffAfter("write", true, time.Hour))
			c.launch(b)
			time.Sleep(25 * time.Minute)
			got := books[0].of("work", event.Unrecorded, event.Ended)
			c.wrong(len(got) != 0 && got[0].Kind == event.Ended, "reported before it is read: %+v", got)
			a.meets(nil)
			time.Sleep(4 * time.Minute)
			ends := books[0].of("work", event.Unrecorded, event.Ended)
			c.wrong(len(ends) != 2 || ends[0].Kind != event.Unrecorded || outcomesIn(books...)[event.Succeeded] != 3,
				"got %+v, %v; the record has %q", ends, outcomesIn(books...), c.outcomes("work"))
		},
	})
}

// Each kind of trouble is an event with what its comment promises.
func TestEventsOfTrouble(t *testing.T) {
	hang := func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }
	begun := []event.Kind{event.Claimed, event.Started}
	for name, tt := range map[string]struct {
		job  soloist.Job
		want []event.Kind
		also func(c *cluster, a *eventBook)
	}{
		"a try fails": {soloist.Job{Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second}, Do: func(_ context.Context, r *soloist.Run) error {
			if r.Try == 1 {
				panic("boom")
			}
			return nil
		}}, append(begun, event.Panicked, event.TryFailed, event.Started, event.Ended), func(c *cluster, a *eventBook) {
			failed, panicked := a.only(c.t, "work", event.TryFailed), a.only(c.t, "work", event.Panicked)
			c.wrong(failed.Run.Try != 1 || failed.Of != 2 || failed.Wait <= 0 || failed.Err.Error() != "panic: boom",
				"got %+v", failed)
			c.wrong(!strings.Contains(panicked.Stack, "events_test.go"), "got %+v", panicked)
		}},
		"it stalls": {soloist.Job{HeartbeatTimeout: 20 * time.Second, Do: hang},
			append(begun, event.HandingOver, event.NoProgress, event.Ended), func(c *cluster, a *eventBook) {
				stalled, status := a.only(c.t, "work", event.NoProgress), a.only(c.t, "work", event.Ended).Outcome.Status
				c.wantIs(stalled.Err, soloist.ErrStalled)
				c.wrong(!strings.Contains(stalled.Stack, "goroutine") || status != event.Stalled, "got %+v, %s", stalled, status)
			}},
		"it is not healthy": {soloist.Job{Do: hang, HealthCheck: ill(2)},
			append(begun, event.Unhealthy, event.HandingOver, event.Unhealthy, event.NoProgress, event.Ended),
			func(c *cluster, a *eventBook) {
				all := a.of("work", event.Unhealthy)
				c.wrong(all[1].Count != 2 || all[1].Of != 2 || all[1].Err.Error() != "no data", "got %+v", all)
			}},
		"it ignores its time-out": {soloist.Job{Timeout: time.Second, Do: deaf(18 * time.Second).Do},
			append(begun, event.TimedOut, event.Overrun, event.Ended), func(c *cluster, a *eventBook) {
				start, end, on := a.only(c.t, "work", event.Started), a.only(c.t, "work", event.TimedOut), a.only(c.t, "work", event.Overrun)
				c.wantIs(on.Err, soloist.ErrTimeout)
				c.wantIs(end.Err, soloist.ErrTimeout)
				c.wrong(on.Note == "" || end.Time.Sub(start.Time) != time.Second,
					"got %+v a second after the start, and %+v", end, on)
			}},
		"ticks are skipped": {soloist.Job{Paused: true, Do: hang}, []event.Kind{event.Settled}, func(c *cluster, a *eventBook) {
			e := a.only(c.t, "work", event.Settled)
			c.wrong(e.Outcome != c.record("work").History[0] || e.Outcome.Reason != "paused", "got %+v", e)
		}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			tt.job.Name, tt.job.Schedule, tt.job.Lease = "work", "0 * * * *", D
			a := c.replica("a", tt.job)
			book := a.tells()
			c.launch(a)
			time.Sleep(time.Hour + 5*time.Minute)
			if book.want(t, "work", tt.want...); !t.Failed() {
				tt.also(c, book)
			}
		})
	}
}

// A replica that takes over says what it knows of the last run: that it stalled or was unlocked.
func TestTakeoverSaysWhy(t *testing.T) {
	leads := map[string]soloist.Singleton{"stalled": beating(time.Second, 30*time.Second, false), "unlocked": leader()}
	inRows(t, leads, func(c *cluster, why string, lead soloist.Singleton) {
		a, b := c.start("a", lead), c.replica("b", lead)
		next := b.tells()
		time.Sleep(10 * time.Second)
		c.launch(b)
		time.Sleep(10 * time.Second)
		if why == "unlocked" {
			a.kill()
			b.Unlock(c.within(time.Minute), "lead", true)
		}
		time.Sleep(5 * time.Minute)
		e := next.only(c.t, "lead", event.TookOver)
		c.wrong(e.Note != why || e.Former.Replica != "a", "got %+v", e)
	})
}

// The page of events has a row for each kind that the program has, and for no other one.
func TestPageOfEvents(t *testing.T) {
	got := allMatches("(?m)^\\| `([a-z-]+)` \\|", readPage(t, "docs/events.md"))
	want := allMatches(`(?m)^\t\w+ +Kind = "([^"]+)"`, readPage(t, "event/event.go"))
	if len(want) < 20 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("docs/events.md has the kinds\n%q\nand the program\n%q", got, want)
	}
}

// The events of a run come in the order of its life, and each outcome in the record is told
// once: over retries, stalls, panics, overruns, runs by hand and stops.
func TestEventsFollowTheRecord(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("*/20 * * * * *", oneOrAnother)
		job.Retry, job.HeartbeatTimeout = soloist.Retry{MaxTries: 2, Backoff: time.Second}, 10*time.Second
		books, seen := map[string]*eventBook{}, map[string]bool{} // seen is all that the history has had
		for second := range 21 * 60 {
			if second%150 == 0 { // another replica comes, and the oldest one goes
				if len(books) > 1 {
					go c.started[len(books)-2].stop()
				}
				r := c.replica(fmt.Sprint("r", len(books)), job)
				r.Grace, books[r.Replica] = 5*time.Second, r.tells()
				c.launch(r)
			}
			if second%50 == 25 {
				r := c.started[len(books)-1]
				c.meanwhile(func() { _, _ = r.RunNow(c.within(3*time.Minute), "work", fmt.Sprint("by-hand-", second)) })
			}
			time.Sleep(time.Second)
			for _, o := range c.record("work").History {
				seen[outcomeName(o)] = true
			}
		}
		c.stopAll()
		for _, o := range c.record("work").History {
			seen[outcomeName(o)] = true
		}
		c.wrong(len(seen) < 40, "only %d outcomes", len(seen))
		told := map[string]int{}
		for _, book := range books {
			c.wantStages(book)
			for _, e := range book.of("work", event.Ended, event.Settled) {
				told[outcomeName(e.Outcome)]++
				failed := e.Kind == event.Ended && (e.Outcome.Status == event.Failed || e.Outcome.Status == event.Stalled)
				c.wrong(failed && !strings.Contains(e.Detail, "failed after") && !strings.Contains(e.Detail, "stalled after") ||
					e.Outcome.Status == event.Succeeded && e.Detail != "", "%s has the detail %q", outcomeName(e.Outcome), e.Detail)
			}
		}
		for name := range seen {
			c.wrong(told[name] != 1, "%q is told %d times", name, told[name])
		}
		for name := range told {
			c.wrong(!seen[name], "%q is told and not in the record", name)
		}
	})
}

// oneOrAnother is a run of one kind or another, by its minute.
func oneOrAnother(ctx context.Context, r *soloist.Run) error {
	kind := r.Tick.Minute() % 7
	if r.Tick.Second() != 0 || r.Request != "" {
		kind = 0
	}
	if kind > 3 { // ticks come due under it
		for range 30 {
			if err := errors.Join(pause(ctx, time.Second), r.Heartbeat("on the way")); err != nil {
				return err
			}
		}
	}
	switch kind {
	case 1:
		panic("boom")
	case 2:
		return errors.New("not yet")
	case 3:
		return r.Save(ctx, "a line")
	case 4:
		<-ctx.Done() // it stalls
		return ctx.Err()
	case 5:
		<-ctx.Done()
		time.Sleep(30 * time.Second) // and does not return in time
	}
	return pause(ctx, time.Second)
}

// outcomeName names what an outcome is of: a run, or a tick or range of ticks that did not run.
func outcomeName(o event.Outcome) string {
	return fmt.Sprint(o.Status, " ", o.Token, " ", o.Tick.Format(time.TimeOnly), " ", o.Request)
}

// wantStages checks the order of the events of a replica.
func (c *cluster) wantStages(book *eventBook) {
	last, claimed := map[int64]int{}, int64(0)
	for _, e := range book.of("work") {
		stage, was := stages[e.Kind], last[e.Run.Token]
		early := stage > 0 && stage < was || stage > 1 && was == 0 || e.Kind == event.Claimed && e.Run.Token <= claimed
		c.wrong(early, "%s: %s of token %d comes after stage %d of it", e.Replica, e.Kind, e.Run.Token, was)
		if e.Kind == event.Claimed {
			claimed = e.Run.Token
		}
		last[e.Run.Token] = max(stage, was)
	}
}

// stages is where in the life of a run the kinds of events belong; the others belong anywhere.
var stages = map[event.Kind]int{
	event.Claimed: 1, event.TookOver: 2,
	event.Started: 3, event.NotStarted: 3, event.Heartbeat: 3, event.Saved: 3, event.TryFailed: 3, event.Unhealthy: 3,
	event.Panicked: 3, event.HandingOver: 3, event.NoProgress: 3, event.Overrun: 3,
	event.Unrecorded: 4, event.TakenBack: 4, event.Ended: 5,
}

// outcomesIn counts the outcomes that events report.
func outcomesIn(books ...*eventBook) map[event.Status]int {
	n := map[event.Status]int{}
	for _, b := range books {
		for _, e := range b.of("work", event.Ended, event.Settled) {
			n[e.Outcome.Status]++
		}
	}
	return n
}

// What a claim has settled is reported once, also if the claim and the read after it get no answer: the replica that
// has sent it finds out later whether it was applied.
func TestOutcomesOfUnconfirmedClaim(t *testing.T) {
	for name, tt := range map[string]struct {
		applied, other bool
		want           map[event.Status]int
	}{
		"applied":                          {true, false, map[event.Status]int{event.Missed: 1, event.Abandoned: 1}},
		"applied, and another goes on":     {true, true, map[event.Status]int{event.Missed: 1, event.Abandoned: 1}},
		"not applied, and another does it": {false, true, map[event.Status]int{event.Missed: 1, event.Succeeded: 1}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@hourly", time.Minute)
			c.replica("first", job).wake()
			until(3*time.Hour + 10*time.Minute)
			a, b := c.replica("a", job).meets(cutOffAfter("write", tt.applied, time.Hour)), c.replica("b", job)
			books := []*eventBook{a.tells(), b.tells()}
			_, err := a.RunDue(c.within(20*time.Second), soloist.Wake{})
			c.wrong(err == nil, "no error")
			time.Sleep(2 * D)
			if tt.other {
				b.wake()
			}
			_, _ = a.meets(nil).RunDue(c.t.Context(), soloist.Wake{}) // its error may be of the claim
			got := outcomesIn(books...)
			c.wrong(!maps.Equal(got, tt.want), "got %v, want %v; the record has %q", got, tt.want, c.outcomes("work"))
		})
	}
}

// The record only counts the outcomes of a backfill: who does not report one leaves it out of the history for good.
func TestOutcomesOfUnconfirmedBackfill(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		for lost := range 5 {
			inCase(t, fmt.Sprintf("%d at a time, write %d", parallel, lost+1), func(t *testing.T, c *cluster) {
				job := work("@hourly", time.Minute)
				c.filling(job, lastHours(7, parallel), "dead")
				time.Sleep(30 * time.Second)
				c.started[0].kill()
				time.Sleep(2 * D)
				a := c.replica("a", job)
				book, cut := a.tells(), cutOffAfter("write", true, time.Hour)
				a.meets(onNth("write", int64(lost+1), func(apply func() error) error {
					a.meets(cut)
					return cut("write", apply)
				}))
				_, _ = a.RunDue(c.within(3*time.Minute), soloist.Wake{})
				time.Sleep(2 * D)
				a.meets(nil)
				for range 5 {
					_, _ = a.RunDue(c.t.Context(), soloist.Wake{})
					time.Sleep(2 * D)
				}
				got := outcomesIn(book)
				for status, n := range c.record("work").Backfill.Counts {
					c.wrong(int(n) != got[status], "%d are counted as %s, and %d are reported", n, status, got[status])
				}
			})
		}
	}
}

// That a run has stalled is in the record before it returns, also if another replica has the lease by then.
func TestStallIsReportedThoughAnotherHasTheLease(t *testing.T) {
	slow := stalling("@every 1m", func(ctx context.Context, run *soloist.Run) error {
		if run.Tick.Minute() == 1 {
			<-ctx.Done()
			time.Sleep(time.Minute) // it takes long to clean up
		}
		return nil
	})
	for _, lost := range []bool{false, true} {
		inCase(t, fmt.Sprintf("an answer is lost %v", lost), func(t *testing.T, c *cluster) {
			a := c.replica("a", slow).meets(func(op string, apply func() error) error {
				err := apply()
				if lost && op == "write" && c.record("work").Run.Status == event.Stalled {
					return errNetwork
				}
				return err
			})
			book := a.tells()
			a.wake()
			until(time.Minute)
			time.AfterFunc(time.Second, func() { c.start("b", slow) })
			report, err := a.RunDue(c.t.Context(), soloist.Wake{})
			c.wrong(!lost && (err != nil || len(report.Jobs[0].Ran) != 1 || report.Jobs[0].Ran[0].Status != event.Stalled),
				"got %+v, %v", report, err)
			a.wake()
			ends := book.of("work", event.Ended, event.Unrecorded)
			c.wrong(ends[len(ends)-1].Kind != event.Ended || outcomesIn(book)[event.Stalled] != 1 || len(ends) == 2 != lost,
				"got %+v; the record has %q", ends, c.outcomes("work"))
		})
	}
	inCase(t, "of a backfill", func(t *testing.T, c *cluster) {
		c.replica("first", slow).wake()
		until(6 * time.Minute)
		c.replica("first", slow).wake()
		c.fills(lastHour(3, 3), slow)
		a := c.replica("a", slow)
		book := a.tells()
		c.launch(a)
		time.Sleep(10 * time.Second)
		c.start("b", slow)
		time.Sleep(3 * time.Minute)
		got, want := outcomesIn(book), c.record("work").Backfill.Counts
		c.wrong(got[event.Stalled] != 1 || want[event.Stalled] != 1, "got %v, counted %v", got, want)
	})
}
