package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// both are the calls that take two steps.
const (
	acquiring = "acquire and write"
	releasing = "write and release"
)

// woken returns a replica whose store takes two steps in one call, what it tells, and by how much its wall clock is wrong. It was
// woken up for the tick of 00:01, the first one of its entry, and it is 00:02.
func (c *cluster) woken(job soloist.Job, with ...func(*replica)) (r *replica, told *eventBook, skew *atomic.Int64) {
	c.whole = true
	time.Sleep(time.Millisecond / 2) // a date of a whole second would be taken for one that leaves out its fraction
	r, skew = c.replica("a", job), &atomic.Int64{}
	r.Now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	told = r.tells()
	for _, change := range with {
		change(r)
	}
	for range 2 {
		r.wake()
		time.Sleep(time.Minute)
	}
	r.tap.counts()
	return r, told, skew
}

// A tick costs two calls in place of four. An acquisition ahead of it is one of its own.
func TestCallsOfATick(t *testing.T) {
	for name, tt := range map[string]struct {
		whole, loop bool
		want        map[string]int
	}{
		"woken up":               {false, false, map[string]int{"acquire": 1, "write": 2, "release": 1}},
		"woken up, two steps":    {true, false, map[string]int{acquiring: 1, releasing: 1}},
		"ahead of it":            {false, true, map[string]int{"acquire": 1, "write": 2, "release": 1}},
		"ahead of it, two steps": {true, true, map[string]int{"acquire": 1, "write": 1, releasing: 1}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r, _, _ := c.woken(work("* * * * *", time.Second))
			if r.tap.whole = tt.whole; tt.loop {
				r.wake()
				r.tap.counts()
				c.launch(r)
				time.Sleep(90 * time.Second)
			} else {
				r.wake()
			}
			got := r.tap.counts()
			delete(got, "read")
			c.wrong(fmt.Sprint(got) != fmt.Sprint(tt.want), "got %v, want %v", got, tt.want)
		})
	}
}

// Whatever becomes of a call with two steps, or of its answer: the tick runs once and has its outcome.
func TestAnswersToTwoSteps(t *testing.T) {
	var late error
	delay := func(op string, d time.Duration) fault { // arrives when no caller waits any more
		return onNth(op, 1, func(apply func() error) error {
			time.AfterFunc(d, func() { late = apply() })
			return errNetwork
		})
	}
	justBefore := func(op, next string) fault { // arrives, after a read that does not show it, before the next call
		var first func() error
		return func(got string, apply func() error) error {
			switch {
			case got == op && first == nil:
				first = apply
				return errNetwork
			case got == next && first != nil:
				late = first()
				first = func() error { return nil }
			}
			return apply()
		}
	}
	for name, tt := range map[string]struct {
		fault fault
		want  map[string]int // calls; nil: not counted
		late  error          // of the call that arrives late
	}{
		"acquired, and the answer is lost":    {lose(acquiring, 1), map[string]int{acquiring: 1, "read": 1, releasing: 1}, nil},
		"not acquired":                        {drop(acquiring, 1), map[string]int{acquiring: 1, "read": 1, "acquire": 1, "write": 1, releasing: 1}, nil},
		"acquired by an answer with no ETag":  {fail(nil, acquiring), map[string]int{acquiring: 1, "read": 1, "acquire": 1, "write": 1, releasing: 1}, nil},
		"it may acquire, but not so":          {fail(fs.ErrPermission, acquiring), map[string]int{acquiring: 1, "acquire": 1, "write": 1, releasing: 1}, nil},
		"acquired later, under the run":       {delay(acquiring, time.Second), nil, store.ErrChanged},
		"acquired later, after the run":       {delay(acquiring, 20*time.Second), nil, store.ErrChanged},
		"acquired later, before another call": {justBefore(acquiring, "acquire"), map[string]int{acquiring: 1, "read": 2, "acquire": 1, releasing: 1}, nil},
		"acquired later, before the claim":    {justBefore(acquiring, "write"), nil, store.ErrHeld},
		"released, and the answer is lost":    {lose(releasing, 1), map[string]int{acquiring: 1, "read": 1, releasing: 1}, nil},
		"not released":                        {drop(releasing, 1), map[string]int{acquiring: 1, "read": 1, releasing: 1, "write": 1, "release": 1}, nil},
		"released by an answer with no ETag":  {fail(nil, releasing), map[string]int{acquiring: 1, "read": 1, releasing: 1, "write": 1, "release": 1}, nil},
		"released later":                      {delay(releasing, 20*time.Second), nil, store.ErrChanged},
		"released later, before another call": {justBefore(releasing, "write"), nil, nil},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			late = nil
			r, told, _ := c.woken(work("* * * * *", 2*time.Second))
			r.meets(tt.fault).wake()
			got := r.tap.counts()
			c.wrong(tt.want != nil && fmt.Sprint(got) != fmt.Sprint(tt.want), "got %v, want %v", got, tt.want)
			c.wrong(c.state("work") != store.Available, "the lease is %s", c.state("work"))
			time.Sleep(30 * time.Second)
			synctest.Wait() // for the late call
			c.wrong(!errors.Is(late, tt.late), "the late call got %v", late)
			c.wantRuns(2)
			c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
			bad := told.of("work", event.Lost, event.Unrecorded, event.NotClaimed, event.TakenBack, event.LeftAlone)
			c.wrong(len(bad) > 0 || len(told.of("work", event.Ended)) != 2, "told %v", bad)
		})
	}
}

// A claim of which it is not known whether it was written does not run, and its lease is not released: another replica settles it.
func TestAcquisitionWithClaimInDoubt(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, told, _ := c.woken(work("* * * * *", time.Second))
		var cut atomic.Bool
		r.meets(func(op string, apply func() error) error {
			if cut.Load() {
				return errNetwork
			}
			if op == acquiring {
				cut.Store(true)
				_ = apply()
				time.AfterFunc(5*time.Second, func() { cut.Store(false) })
				return errNetwork
			}
			return apply()
		})
		_, err := r.RunDue(t.Context(), soloist.Wake{})
		wantError(t, err, "reading it back")
		time.Sleep(6 * time.Second)
		_, err = r.RunDue(c.within(time.Second), soloist.Wake{})
		wantError(t, err, "its tick 2000-01-01T00:02:00Z was claimed and not run")
		c.wrong(c.state("work") != store.Leased, "the lease is %s", c.state("work"))
		time.Sleep(time.Minute)
		r.wake()
		c.wantOutcomes("work", "succeeded 00:01:00", "abandoned 00:02:00 its runner died", "succeeded 00:03:00")
		c.wrong(len(told.of("work", event.NotClaimed)) != 1, "not told")
	})
}

// Until an outcome is known to be written the lease is renewed, also after a call that would have released it.
func TestRenewalsGoOnAfterCallThatReleasesNothing(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, _, _ := c.woken(work("* * * * *", time.Second))
		r.meets(fail(errNetwork, releasing, "write"))
		c.meanwhile(r.wake)
		for range 10 {
			time.Sleep(4 * time.Second)
			c.wrong(c.state("work") != store.Leased, "after %s the lease is %s", time.Now(), c.state("work"))
		}
		r.meets(nil)
		time.Sleep(15 * time.Second)
		c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
		c.wrong(c.state("work") != store.Available, "the lease is %s", c.state("work"))
	})
}

// The trust in a lease that was acquired together with a claim counts from the sending of that call.
func TestTrustInAcquisitionWithClaim(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, _, _ := c.woken(work("* * * * *", 40*time.Second))
		sent := time.Now()
		r.meets(func(op string, apply func() error) error {
			if op == "renew" {
				return errNetwork
			}
			err := apply()
			if op == acquiring {
				time.Sleep(2 * time.Second)
			}
			return err
		})
		r.wake()
		last := c.all()[1]
		c.wrong(last.end.Sub(sent) > D-D/100-D/6, "it is trusted for %s", last.end.Sub(sent))
	})
}

// A renewal that comes due while the lease is being released is not sent: it would look like a loss.
func TestNoRenewalAfterReleaseWithOutcome(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, told, _ := c.woken(work("* * * * *", 4*time.Second))
		r.meets(after(releasing, func() { time.Sleep(2 * time.Second) })).wake()
		c.wrong(len(told.of("work", event.Lost)) > 0, "told %v", told.of("work", event.Lost))
		c.wrong(r.tap.counts()["renew"] > 0, "it was renewed")
	})
}

// The lease that was released with an outcome is not kept for the next tick, which has come nearer meanwhile.
func TestReleasedLeaseIsNotKept(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		c.whole = true
		r := c.replica("a", doing("@every 5s", func(ctx context.Context, run *soloist.Run) error {
			return pause(ctx, time.Until(run.Tick.Add(3*time.Second-50*time.Millisecond)))
		}))
		told := r.tells()
		late := false
		var sent func() error
		c.launch(r.meets(func(op string, apply func() error) error {
			switch {
			case op == releasing:
				time.Sleep(100 * time.Millisecond)
				if late = !late; late { // it arrives just before the next call
					sent = apply
					return errNetwork
				}
			case op == "write" && sent != nil:
				c.ok(sent())
				sent = nil
			}
			return apply()
		}))
		time.Sleep(time.Minute + time.Second)
		c.wantRuns(12)
		bad := told.of("work", event.Lost, event.NotClaimed)
		c.wrong(len(bad) > 0 || r.tap.counts()[releasing] < 3, "told %v", bad)
	})
}

// A stop does not end an acquisition with a claim: the claim is taken back, and another replica runs the tick.
func TestStopDuringAcquisitionWithClaim(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, told, _ := c.woken(work("* * * * *", time.Second))
		ctx, stop := context.WithCancel(t.Context())
		r.tap.after = func(ctx context.Context, op string) error {
			if op != acquiring {
				return nil
			}
			stop()
			time.Sleep(100 * time.Millisecond)
			return ctx.Err()
		}
		_, _ = r.RunDue(ctx, soloist.Wake{})
		c.wrong(len(told.of("work", event.TakenBack)) != 1, "it was not taken back")
		c.wantRuns(1)
		c.replica("b", work("* * * * *", time.Second)).wake()
		c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
	})
}

// What has to be waited for under the lease is waited for.
func TestNoClaimWithAcquisition(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a hold-off": func(c *cluster) {
			a, _, _ := c.woken(work("@every 10s", time.Second))
			a.wake()
			c.ok(c.store.Delete(c.t.Context(), "soloist/work"))
			b := c.replica("b", work("@every 10s", time.Second))
			for range 2 {
				b.wake()
				time.Sleep(10 * time.Second)
			}
			seen := time.Now()
			a.wake()
			last := c.all()[len(c.all())-1]
			c.wrong(last.replica != "a" || last.start.Sub(seen) < D, "%s begins after %s", last.replica, last.start.Sub(seen))
		},
		"the token of an entry": func(c *cluster) {
			c.whole = true
			time.Sleep(time.Millisecond / 2) // see woken
			a := c.replica("a", work("* * * * *", time.Second))
			a.wake()
			time.Sleep(time.Minute)
			a.tap.counts()
			a.wake()
			n := a.tap.counts()
			c.wrong(n[acquiring] != 0 || n["acquire"] != 1, "calls: %v", n)
		},
		"a manual run": func(c *cluster) {
			a, _, _ := c.woken(work("* * * * *", time.Second))
			a.byHand("work", "r1")
			n := a.tap.counts()
			c.wrong(n[acquiring] != 0 || n[releasing] != 1, "calls: %v", n)
		},
		"a run whose runner died": func(c *cluster) {
			a, _, _ := c.woken(rerun(work("* * * * *", 10*time.Second)))
			c.meanwhile(func() { _, _ = a.RunDue(c.within(time.Minute), soloist.Wake{}) })
			time.Sleep(time.Second)
			a.kill()
			time.Sleep(2 * D)
			b := c.replica("b", rerun(work("* * * * *", time.Second)))
			b.wake()
			n := b.tap.counts()
			c.wrong(n[acquiring] != 0 || n["acquire"] != 1, "calls: %v", n)
			c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
		},
	})
}

// The answer to an acquisition with a claim may show that the tick is not due yet: the run waits for it, or the claim is taken back.
func TestClaimBeforeItsTickIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		dated time.Duration // by how much the date of that answer is wrong
		stop  bool          // while it waits
		back  bool          // another replica runs the tick
	}{
		"by a moment":       {0, false, false},
		"and a stop comes":  {0, true, true},
		"by a wrong minute": {-time.Minute, false, true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r, told, skew := c.woken(work("* * * * *", time.Second), func(r *replica) { r.Store = struct{ store.Store }{r.tap} })
			r.wake()
			// For a minute no answer, and none about orders, shows the service's time: it is not known that the clock was set.
			time.Sleep(time.Until(time.Date(2000, 1, 1, 0, 2, 59, 7e8, time.UTC)))
			skew.Store(int64(400 * time.Millisecond))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			r.meets(before(acquiring, func() {
				r.tap.date = func(date time.Time) time.Time { return date.Add(tt.dated) }
				if tt.stop {
					time.AfterFunc(100*time.Millisecond, stop)
				}
			}))
			_, err := r.RunDue(ctx, soloist.Wake{})
			c.wrong(r.tap.date == nil, "it was not claimed together with the acquisition")
			if tt.back {
				c.wantRuns(2)
				c.wrong(len(told.of("work", event.TakenBack)) != 1, "RunDue: %v", err)
				time.Sleep(time.Second)
				c.replica("b", work("* * * * *", time.Second)).wake()
			} else {
				last := c.all()[len(c.all())-1]
				c.wrong(!last.start.Equal(last.Tick), "tick %s starts at %s", last.Tick, last.start)
			}
			c.wantRuns(3)
			c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00", "succeeded 00:03:00")
		})
	}
}

// state is the state of the lease of a job.
func (c *cluster) state(job string) store.LeaseState {
	c.t.Helper()
	e, err := c.store.Read(c.t.Context(), "soloist/"+job)
	c.ok(err)
	return e.State
}

// A claim of a run that beats is trusted for the length of a beat: if the call that acquires the lease with it is not answered
// in a part of that, the run begins under the lease that the replica has, or another claim is made.
func TestAcquisitionWithClaimOfShortLease(t *testing.T) {
	for name, when := range map[string]func(*tap) *func(context.Context, string) error{
		"it is not answered": func(s *tap) *func(context.Context, string) error { return &s.after },
		"it does not arrive": func(s *tap) *func(context.Context, string) error { return &s.before },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r, told, _ := c.woken(leased(2*time.Second, work("* * * * *", time.Second)), func(r *replica) { r.tap.Store = coarse{c.store} })
			var on atomic.Bool
			on.Store(true)
			*when(r.tap) = hangsOnce(acquiring, &on)
			r.wake()
			c.wrong(r.tap.counts()[acquiring] != 1, "it was not claimed together with the acquisition")
			c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
			c.wrong(len(told.of("work", event.Lost)) > 0, "told %v", told.of("work", event.Lost))
		})
	}
}

// A call that acquires the lease with a claim and arrives once nobody waits for it claims nothing, also if its sender has
// released the lease without a claim since.
func TestLateAcquisitionAfterRelease(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, _, _ := c.woken(work("* * * * *", time.Second))
		ctx, stop := context.WithCancel(t.Context())
		var sent func() error
		var late error
		r.meets(func(op string, apply func() error) error {
			switch op {
			case acquiring:
				sent = apply
				return errNetwork
			case "acquire":
				defer stop()
			case "release":
				defer func() { late = sent() }()
			}
			return apply()
		})
		_, _ = r.RunDue(ctx, soloist.Wake{})
		c.wrong(!errors.Is(late, store.ErrChanged), "the late call got %v", late)
		c.wantRuns(1)
		c.replica("b", work("* * * * *", time.Second)).wake()
		c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
	})
}

// A claim that arrives before another acquisition, which is refused for it, is told of even if no read shows it.
func TestLateAcquisitionThatIsNotReadBack(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, told, _ := c.woken(work("* * * * *", time.Second))
		var sent func() error
		cut := false
		r.meets(func(op string, apply func() error) error {
			switch {
			case op == acquiring && sent == nil:
				sent = apply
				return errNetwork
			case op == "acquire" && !cut:
				cut = true
				c.ok(sent())
				return apply()
			case op == "read" && cut:
				cut = false
				r.tap.meet(nil)
				return errNetwork
			}
			return apply()
		})
		_, err := r.RunDue(t.Context(), soloist.Wake{})
		wantError(t, err, "reading it back")
		_, err = r.RunDue(c.within(time.Second), soloist.Wake{})
		wantError(t, err, "its tick 2000-01-01T00:02:00Z was claimed and not run")
		c.wrong(len(told.of("work", event.NotClaimed)) != 1, "not told")
	})
}

// An acquisition that gets no answer is not needed if a claim that was sent with another one has arrived meanwhile.
func TestLateAcquisitionBesideLostOne(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, _, _ := c.woken(work("* * * * *", time.Second))
		var sent func() error
		r.meets(func(op string, apply func() error) error {
			switch op {
			case acquiring:
				sent = apply
				return errNetwork
			case "acquire":
				return errNetwork
			case "release":
				if sent != nil {
					c.ok(sent())
					sent = nil
				}
				return errNetwork
			}
			return apply()
		})
		r.wake()
		c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
	})
}

// A renewal is refused if the call has arrived meanwhile that releases the lease with the outcome. That is no loss.
func TestRenewalAfterLateRelease(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, told, _ := c.woken(work("* * * * *", 9*time.Second))
		var mu sync.Mutex // renewals come from another goroutine
		var sent func() error
		arrived := false
		r.meets(func(op string, apply func() error) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == releasing:
				sent = apply
				return errNetwork
			case op == "write" && !arrived:
				return errNetwork
			case op == "renew" && sent != nil:
				arrived = true
				c.ok(sent())
				sent = nil
			}
			return apply()
		})
		r.wake()
		c.wrong(!arrived, "it was not renewed after the release")
		c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00")
		c.wrong(len(told.of("work", event.Lost)) > 0, "told %v", told.of("work", event.Lost))
		r.wantWell()
	})
}

// A claim that arrives after a read which did not show it, and with it what it has settled, is told of once a read shows it.
func TestLateAcquisitionIsTold(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		r, told, _ := c.woken(work("* * * * *", time.Second))
		time.Sleep(time.Minute)
		var sent func() error
		reads := 0
		r.meets(func(op string, apply func() error) error {
			switch {
			case op == acquiring && sent == nil:
				sent = apply
				return errNetwork
			case op == "read" && sent != nil:
				if reads++; reads == 1 {
					return errNetwork
				} else if reads == 2 {
					time.AfterFunc(time.Second, func() { c.ok(sent()) })
				}
			}
			return apply()
		})
		_, err := r.RunDue(t.Context(), soloist.Wake{})
		wantError(t, err, "reading it back")
		_, err = r.RunDue(c.within(10*time.Second), soloist.Wake{})
		wantError(t, err, "its tick 2000-01-01T00:03:00Z was claimed and not run")
		time.Sleep(time.Minute)
		r.wake()
		c.wantOutcomes("work", "succeeded 00:01:00", "missed 00:02:00 a newer one was due", "abandoned 00:03:00 its runner died", "succeeded 00:04:00")
		c.wrong(len(told.of("work", event.Settled)) != 2, "told %v", told.of("work", event.Settled))
	})
}
