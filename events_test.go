package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
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

// A run tells its way from the claim to the outcome.
func TestEventsOfARun(t *testing.T) {
	inCluster(t, func(c *cluster) {
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
		book.want(t, "work", event.Claimed, event.Started, event.Heartbeat, event.Heartbeat, event.Saved, event.Ended)
		outcome := c.record("work").History[0]
		for _, e := range book.of("work") {
			if e.Replica != "a" || !e.Run.Tick.Equal(outcome.Tick) || e.Run.Attempt != 1 || e.Run.Token != outcome.Token || e.Time.Location() != time.UTC || e.Time.Before(outcome.Tick) {
				t.Errorf("not of the run: %+v", e)
			}
		}
		if e := book.only(t, "work", event.Ended); e.Outcome != outcome || e.Took != 12200*time.Millisecond {
			t.Errorf("got %+v, want %+v", e, outcome)
		}
		if n := len(book.of("work", event.Renewed)); n != 3 {
			t.Errorf("%d renewals in 12 s, and in the seconds before the tick", n)
		}
		if e := book.only(t, "work", event.Saved); e.Note != c.record("work").Run.Progress.Note || !strings.HasPrefix(e.Note, "row 11 ") {
			t.Errorf("got %+v", e)
		}
		if e := book.only(t, "work", event.Started); e.Run.Try != 1 || e.Late() < 0 || e.Late() > time.Second {
			t.Errorf("got %+v", e)
		}
	})
}

// Each kind of trouble is an event with what its comment promises.
func TestEventsOfTrouble(t *testing.T) {
	type check = func(t *testing.T, c *cluster, a *eventBook)
	hang := func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		job  soloist.Job
		want []event.Kind // after Claimed and Started
		also check
	}{
		"a try fails": {soloist.Job{Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second}, Do: func(_ context.Context, r *soloist.Run) error {
			if r.Try == 1 {
				panic("boom")
			}
			return nil
		}}, []event.Kind{event.Panicked, event.TryFailed, event.Started, event.Ended}, func(t *testing.T, _ *cluster, a *eventBook) {
			failed, panicked := a.only(t, "work", event.TryFailed), a.only(t, "work", event.Panicked)
			if failed.Run.Try != 1 || failed.Of != 2 || failed.Wait <= 0 || failed.Err.Error() != "panic: boom" || !strings.Contains(panicked.Stack, "events_test.go") {
				t.Errorf("got %+v, %+v", failed, panicked)
			}
		}},
		"it stalls": {soloist.Job{HeartbeatTimeout: 20 * time.Second, Do: hang},
			[]event.Kind{event.HandingOver, event.Stalled, event.Ended}, func(t *testing.T, _ *cluster, a *eventBook) {
				stalled, status := a.only(t, "work", event.Stalled), a.only(t, "work", event.Ended).Outcome.Status
				if !errors.Is(stalled.Err, soloist.ErrStalled) || !strings.Contains(stalled.Stack, "goroutine") || status != store.Stalled {
					t.Errorf("got %+v, %s", stalled.Err, status)
				}
			}},
		"it is not healthy": {soloist.Job{Do: hang, HealthCheck: ill(2)},
			[]event.Kind{event.Unhealthy, event.HandingOver, event.Unhealthy, event.Stalled, event.Ended}, func(t *testing.T, _ *cluster, a *eventBook) {
				if all := a.of("work", event.Unhealthy); all[1].Count != 2 || all[1].Of != 2 || all[1].Err.Error() != "no data" {
					t.Errorf("got %+v", all)
				}
			}},
		"it ignores its time-out": {soloist.Job{Timeout: time.Second, Do: deaf(18 * time.Second).Do},
			[]event.Kind{event.TimedOut, event.Overrun, event.Ended}, func(t *testing.T, _ *cluster, a *eventBook) {
				if e := a.only(t, "work", event.Overrun); !errors.Is(e.Err, soloist.ErrTimeout) || e.Note == "" {
					t.Errorf("got %+v", e)
				}
				begun, over := a.only(t, "work", event.Started), a.only(t, "work", event.TimedOut)
				if !errors.Is(over.Err, soloist.ErrTimeout) || over.Time.Sub(begun.Time) != time.Second {
					t.Errorf("got %+v, want it a second after the start", over)
				}
			}},
		"ticks are skipped": {soloist.Job{Paused: true, Do: hang}, nil, func(t *testing.T, c *cluster, a *eventBook) {
			if e := a.only(t, "work", event.Settled); e.Outcome != c.record("work").History[0] || e.Outcome.Reason != "paused" {
				t.Errorf("got %+v", e)
			}
		}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			tt.job.Name, tt.job.Schedule, tt.job.Lease = "work", "0 * * * *", D
			a := c.replica("a", tt.job)
			book := a.tells()
			c.launch(a)
			time.Sleep(time.Hour + 5*time.Minute)
			want := append([]event.Kind{event.Claimed, event.Started}, tt.want...)
			if tt.job.Paused {
				want = []event.Kind{event.Settled}
			}
			if book.want(t, "work", want...); !t.Failed() {
				tt.also(t, c, book)
			}
		})
	}
}

// A replica that takes over says from whom; the one that is cut off says that it has lost
// the lease, and that its outcome is not in the record.
func TestEventsOfATakeover(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("0 * * * *", 30*time.Second))
		a, b := c.replica("a", job), c.replica("b", job)
		old, next := a.tells(), b.tells()
		c.launch(a)
		time.Sleep(time.Hour + 2*time.Second)
		c.launch(b)
		a.kill()
		time.Sleep(2 * time.Minute)
		if kinds := old.of("work", event.Lost); len(kinds) != 1 || !errors.Is(kinds[0].Err, soloist.ErrLost) || kinds[0].Run.Token == 0 {
			t.Errorf("got %+v", kinds)
		}
		if e := old.of("", event.StoreTrouble); len(e) != 1 || e[0].Note != "work" || e[0].Err == nil {
			t.Errorf("got %+v", e)
		}
		took := next.only(t, "work", event.TookOver)
		if took.Note != "died" || took.Former.Replica != "a" {
			t.Errorf("got %+v", took)
		}
		if e := next.only(t, "work", event.Claimed); e.Run.Token != took.Run.Token || e.Run.Attempt != 2 || e.Late() < 10*time.Second {
			t.Errorf("got %+v", e)
		}
		a.tap.cut.Store(false)
		time.Sleep(time.Minute)
		if e := old.only(t, "work", event.Unrecorded); e.Outcome.Status != store.Abandoned || e.Err == nil {
			t.Errorf("got %+v", e)
		}
		if e := old.of("", event.StoreBack); len(e) != 1 || e[0].Took < time.Minute {
			t.Errorf("got %+v", e)
		}
	})
}

// An outage that only a run by hand has met ends for its receivers with that run: no later
// call would end it. The log does not claim that the store answers.
func TestOutageOfRunByHandEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", 0)).meets(fail(errNetwork))
		book := a.tells()
		if _, err := a.RunNow(c.within(time.Minute), "work", "x"); err == nil {
			t.Error("it ran without a store")
		}
		began, back := book.of("", event.StoreTrouble), book.of("", event.StoreBack)
		if len(began) != 1 || len(back) != 1 || back[0].Note == "" || back[0].Took < 50*time.Second {
			t.Errorf("got %+v, %+v", began, back)
		}
		a.wantLines(0, "answers again")
	})
}

// A replica that takes over says what it knows of the last run: that it stalled or was unlocked.
func TestTakeoverSaysWhy(t *testing.T) {
	hangs := beating(time.Second, 30*time.Second, false)
	for why, lead := range map[string]soloist.Singleton{"stalled": hangs, "unlocked": leader()} {
		inCase(t, why, func(t *testing.T, c *cluster) {
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
			if e := next.only(t, "lead", event.TookOver); e.Note != why || e.Former.Replica != "a" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// An Events function that panics, or ends its goroutine, costs no later event. What panics
// the same way again and again is logged once.
func TestPanicOfEventsIsLogged(t *testing.T) {
	inCluster(t, func(c *cluster) {
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
		book.want(t, "work", slices.Repeat([]event.Kind{event.Claimed, event.Started, event.Ended}, 3)...)
		a.wantLines(1, "level=ERROR", "the Events function panicked", "no such metric", "events_test.go")
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
