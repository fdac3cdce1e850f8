package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

// orphaned has a replica run an hourly job, cuts it off a second into the run, and breaks
// its lease of a minute: it trusts that until 01:00:49.
func (c *cluster) orphaned(job soloist.Job) {
	c.t.Helper()
	a := c.start("a", job)
	time.Sleep(time.Hour + time.Second)
	a.kill()
	c.breakLease()
}

// lasting runs for most of an hour, with a lease of a minute, and again if its runner dies.
func lasting(schedule string) soloist.Job {
	return leased(time.Minute, rerun(work(schedule, 50*time.Minute)))
}

// No replica begins before the last holder, which is cut off, must have given up: for the longest lease that was seen,
// also if the record that the next holder makes names a shorter one. The history says how the lease has ended; the
// record of another attempt says no more of that.
func TestHoldOff(t *testing.T) {
	for how, tt := range map[string]struct {
		follower soloist.Job
		want     string // the first outcome
	}{
		"broken":          {work("@every 10s", time.Hour), "abandoned 00:00:10 unlocked"},
		"unlocked":        {work("@every 10s", time.Hour), "abandoned 00:00:10 unlocked by ann"},
		"unlocked, rerun": {rerun(work("@every 10s", time.Hour)), ""},
		"deleted":         {work("@every 10s", time.Hour), ""},
	} {
		inCase(t, how, func(t *testing.T, c *cluster) {
			a := c.start("a", lasting("@every 10s"))
			time.Sleep(15 * time.Second)
			c.start("b", tt.follower)
			time.Sleep(16 * time.Second) // a has just renewed
			a.kill()
			killed := time.Now()
			switch how {
			case "broken":
				c.breakLease()
			case "deleted":
				c.breakLease()
				c.deleteEntry()
			default:
				c.ok(c.replica("ann", tt.follower).Unlock(c.t.Context(), "work", true))
			}
			time.Sleep(3 * time.Minute)
			first, next := c.successor(killed, D, 2*time.Minute)
			c.wrong(first.end.Sub(killed) < 30*time.Second, "the first one ended at %s", first.end)
			run, again := c.record("work").Run, next.Attempt == 2
			c.wrong(run.Status != event.Running || !run.Unlocked.At.IsZero() || again != (how == "unlocked, rerun"),
				"attempt %d: %+v", next.Attempt, run)
			got := append(c.outcomes("work"), "")
			c.wrong(tt.want != "" && got[0] != tt.want, "the outcomes %q", got)
		})
	}
}

// A replica with a shorter lease holds off after a break, and dies: its lease,
// which has run out, does not speak for the longer one before it.
func TestHoldOffSurvivesSecondDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		short := rerun(work("@every 1h", time.Second))
		c.orphaned(lasting("@every 1h"))
		b := c.start("b", short) // acquires, holds off, and dies
		time.Sleep(time.Second)
		b.kill()
		c.start("c", short)
		time.Sleep(3 * time.Minute)
		c.succession(2)
	})
}

// A hold-off that is cut short is not started again by the next call, also if that is another process: its lease expires, after
// which no replica has to hold off. The error says why nothing runs. A call that comes before that waits for it, and does not
// say that the dead replica runs the job.
func TestHoldOffIsNotRestarted(t *testing.T) {
	for _, same := range []bool{true, false} {
		inCase(t, fmt.Sprint("the same process: ", same), func(t *testing.T, c *cluster) {
			job := lasting("@every 1h")
			c.orphaned(job)
			job.Do = nil
			b := c.replica("b", job)
			for i, d := range []time.Duration{50 * time.Second, 5 * time.Second, 50 * time.Second} {
				if !same {
					b = c.replica(fmt.Sprint("b", i), job)
				}
				got, err := b.RunDue(c.within(d), soloist.Wake{})
				switch {
				case i == 0:
					wantError(t, err, "did not expire by itself")
				case i == 1 && same:
					wantError(t, err, "its lease has yet to expire", "deadline")
					c.wrong(got.Jobs[0].Replica != "", "got %+v", got)
				case i == 2:
					c.wrong(err != nil || got.Jobs[0].Replica != "" || len(got.Jobs[0].Ran) != 1, "got %+v, %v", got, err)
				}
				if i == 1 {
					time.Sleep(time.Minute)
				}
			}
			c.succession(2)
		})
	}
}

// What a hold-off, and an unlock, cost and tell.
func TestHoldOffs(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a step-down does not wait for the end of a hold-off": func(c *cluster) {
			// Others have the first go then, as after a run.
			c.orphaned(lasting("@every 1h"))
			b := c.start("b", lasting("@every 1h"))
			time.Sleep(5 * time.Second)
			b.wantLines(1, "did not run out by itself")
			b.tap.counts()
			begin := time.Now()
			c.ok(b.StepDown(c.t.Context(), "work"))
			c.wrong(time.Since(begin) > time.Second, "stepped down after %s", time.Since(begin))
			time.Sleep(20 * time.Second)
			n := b.tap.counts()["acquire"]
			c.wrong(n > 0, "acquired %d times within a third of the lease of StepDown", n)
		},
		"a replica that holds off for long does not count as one that occupies the job": func(c *cluster) {
			c.orphaned(lasting("@every 1h"))
			b, d := c.start("b", lasting("@every 1h")), c.start("d", lasting("@every 1h"))
			for range 100 {
				time.Sleep(time.Second)
				b.wantWell()
				d.wantWell()
			}
			c.wantRuns(2)
		},
		"it takes half of a call, and what is left is too short for the run": func(c *cluster) {
			job := leased(30*time.Second, rerun(work("@every 1m", 40*time.Second)))
			job.Timeout = 45 * time.Second
			a := c.start("a", job)
			time.Sleep(time.Minute + time.Second)
			a.kill()
			c.breakLease()
			time.Sleep(2 * time.Minute)
			call := func(name string) error {
				_, err := c.replica(name, job).RunDue(c.within(time.Minute), soloist.Wake{})
				return err
			}
			wantError(c.t, call("b"), "not started")
			c.wantRuns(1)
			time.Sleep(job.Lease + time.Second)
			if err := call("c"); len(c.all()) < 2 {
				c.t.Errorf("the next call: %d runs, %v", len(c.all()), err)
			}
		},
		"the record tells who did an unlock at once, and when another replica can follow": func(c *cluster) {
			// The history then tells the same, and not that the runner died.
			both := c.startAll(work("@hourly", 50*time.Minute), "a", "b")
			time.Sleep(time.Hour + 10*time.Minute + 2*time.Second) // between two renewals
			before := c.record("work")
			operator := c.replica("ann@desk", work("@hourly", 0))
			unlocked := time.Now()
			c.ok(operator.Unlock(c.t.Context(), "work", true))
			r, by := c.record("work"), c.record("work").Run.Unlocked
			c.wrong(by.By != "ann@desk" || by.At.Sub(unlocked).Abs() > time.Second, "the record tells %+v", by)
			c.wrong(r.Run.Status != event.Running || r.Token != before.Token || r.Run.Replica != before.Run.Replica,
				"the annotation changed the run: %+v", r)
			c.wantLease(store.Available)
			st, err := operator.StatusOf(c.t.Context(), "work")
			c.wrong(err != nil || st.Waits.Before(unlocked.Add(D)), "status is %+v, %v", st, err)
			time.Sleep(time.Until(st.Waits))
			r = c.record("work")
			c.wrong(!r.Run.Unlocked.At.IsZero() || r.Run.Status == event.Running,
				"at the time that status told no replica has followed: %+v", r)
			c.wantOutcomes("work", "abandoned 01:00:00 unlocked by ann@desk")
			logged := 0
			for _, r := range both {
				logged += len(r.log.lines("reason=\"unlocked by ann@desk\""))
			}
			c.wrong(logged != 1, "logged %d times", logged)
		},
		"a holder that has claimed nothing leaves nothing to tell": func(c *cluster) {
			a := c.replica("a", work("@hourly", 0))
			a.wake()
			before := c.raw("work")
			e, _ := c.store.Read(c.t.Context(), "soloist/work")
			_, err := c.store.Lease("soloist/work", "5f1f3b6e-0b1c-4d2e-8f3a-9b7c6d5e4f30").Acquire(c.t.Context(), D, e.ETag)
			c.ok(errors.Join(err, a.Unlock(c.t.Context(), "work", true)))
			got := c.raw("work")
			c.wrong(string(got) != string(before), "the record became %s", got)
		},
		"a break that is refused though the entry shows no change is not sent again and again": func(c *cluster) {
			a, rest := c.leads(3*time.Second, "b")
			b := rest["b"].meets(fail(store.ErrChanged, "break unchanged"))
			a.kill()
			time.Sleep(20 * time.Second)
			n := b.tap.counts()["break unchanged"]
			c.wrong(n < 1 || n > 6, "%d breaks", n)
			c.succession(2)
		},
	})
}

// A run ends after an unlock, now or when its lease has run out, and another follows. An unknown job is not unlocked.
func TestUnlockEndsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.startAll(leader(), "a", "b")
		for _, now := range []bool{true, false} {
			time.Sleep(time.Minute + 7*time.Second)
			c.ok(all["b"].Unlock(c.t.Context(), "lead", now))
			time.Sleep(3 * D)
			c.wrong(all["b"].Unlock(c.t.Context(), "nobody", now) == nil, "an unknown job is unlocked")
		}
		c.wantIs(c.succession(3)[1].cause, store.ErrLost)
		for _, r := range all {
			r.wantLines(0, "0001-01-01")
		}
	})
}

// Where the annotation fails, the lease is ended all the same, and the caller
// learns of both.
func TestUnlockWithoutNoteIsToldToCaller(t *testing.T) {
	inEach(t, []string{"read", "acquire", "write"}, func(c *cluster, op string) {
		c.start("a", work("@hourly", 50*time.Minute))
		time.Sleep(time.Hour + 2*time.Second) // between two renewals
		err := c.replica("ann", work("@hourly", 0)).meets(fail(errNetwork, op)).Unlock(c.t.Context(), "work", true)
		c.wantIs(err, soloist.ErrUntold)
		wantError(c.t, err, errNetwork.Error())
		e, err := c.store.Read(c.t.Context(), "soloist/work")
		c.wrong(err != nil || e.State == store.Leased, "the lease is %s, %v", e.State, err)
	})
}

// The operator's process dies before it releases the lease that it took for the
// annotation. That lease expires by itself, and by then the last holder, which
// is cut off, has ended its run.
func TestUnlockerThatDiesFreesJob(t *testing.T) {
	inEach(t, []string{"acquire", "write"}, func(c *cluster, op string) {
		a := c.start("a", work("@hourly", 50*time.Minute))
		time.Sleep(time.Hour + 10*time.Second + 100*time.Millisecond) // just renewed
		c.start("b", rerun(work("@hourly", time.Second)))
		a.kill()
		operator := c.replica("ann", work("@hourly", 0))
		_ = operator.meets(after(op, operator.kill)).Unlock(c.t.Context(), "work", true)
		time.Sleep(3 * time.Minute)
		runs := c.succession(2)
		c.wrong(runs[1].replica != "b", "%s follows", runs[1].replica)
	})
}

// A coarse store takes no lease as short as those of these tests, as Azure's does not.
type coarse struct{ *local.Memory }

func (coarse) Limits() (shortest, longest time.Duration) { return 15 * time.Second, time.Minute }

// coarsely starts replicas over a coarse store.
func (c *cluster) coarsely(work soloist.Work, names ...string) map[string]*replica {
	all := map[string]*replica{}
	for _, name := range names {
		r := c.replica(name, work)
		r.tap.Store = coarse{c.store}
		all[name] = c.launch(r)
	}
	return all
}

// brief leads with a lease that the coarse store does not take.
func brief(lease time.Duration) soloist.Singleton {
	s := leader()
	s.Lease = lease
	return s
}

// leads has a lead with such a lease for half a minute, then starts the others and waits for as long again.
func (c *cluster) leads(lease time.Duration, others ...string) (a *replica, rest map[string]*replica) {
	a = c.coarsely(brief(lease), "a")["a"]
	time.Sleep(30 * time.Second)
	rest = c.coarsely(brief(lease), others...)
	time.Sleep(30*time.Second + 123*time.Millisecond)
	return a, rest
}

// hangsOnce returns what has the first call of op after the start wait until its caller gives up.
func hangsOnce(op string, start *atomic.Bool) func(context.Context, string) error {
	var done atomic.Bool
	return func(ctx context.Context, got string) error {
		if got != op || !start.Load() || done.Swap(true) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// A short is a holder of a short lease that goes, and how soon the next one begins.
type short struct {
	lease       time.Duration
	follower    soloist.Singleton
	over        func(*replica) // what the follower is besides; nil: nothing
	end         func(c *cluster, a *replica)
	least, most time.Duration // from the end
}

func dies(_ *cluster, a *replica) { a.kill() }

// A dead holder is replaced after the lease that the program asks for, not after the longer lease of the
// store. The same holds if an operator breaks the lease. The followers go by the length in the record, not by their own.
func TestNextHolderOfShortLease(t *testing.T) {
	all := map[string]short{
		"broken": {9 * time.Second, brief(9 * time.Second), nil, func(c *cluster, a *replica) {
			a.kill()
			time.Sleep(time.Second)
			c.ok(c.store.Break(c.t.Context(), "soloist/lead", 0))
		}, 5 * time.Second, 11050 * time.Millisecond},
		// The next look is a third of a lease away, and a tenth of that so that not all look at once.
		"stopped": {3 * time.Second, brief(3 * time.Second), nil, func(_ *cluster, a *replica) { a.stop() },
			0, 1100 * time.Millisecond},
		// A store that cannot break leases: the follower waits for the lease of the store, also if a holder beats.
		"no breaks": {3 * time.Second, brief(30 * time.Second), func(b *replica) { b.Store = struct{ store.Store }{b.tap.Store} },
			dies, 9 * time.Second, 22 * time.Second},
		"calls take longer than the first one has time": {time.Second, brief(30 * time.Second), func(b *replica) {
			b.tap.before = func(ctx context.Context, _ string) error { return pause(ctx, 350*time.Millisecond) }
			b.tap.after = b.tap.before
		}, dies, 0, 8 * time.Second},
	}
	for lease, follower := range map[time.Duration]time.Duration{time.Second: time.Second, 3 * time.Second: 3 * time.Second,
		10 * time.Second: 10 * time.Second, 12 * time.Second: time.Second} {
		all[fmt.Sprint("dead, ", lease)] = short{lease, brief(follower), nil, dies, lease * 2 / 3, lease*4/3 + 50*time.Millisecond}
	}
	// One call of the replica that takes over whose request or answer is lost costs it a third of the lease, or half a second
	// if that is longer.
	for _, lease := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		for _, op := range []string{"read", "break unchanged", "acquire"} {
			for _, applied := range []bool{false, true} {
				var start atomic.Bool
				all[fmt.Sprint("lost ", op, " ", applied, " ", lease)] = short{lease, brief(lease), func(b *replica) {
					if applied {
						b.tap.after = hangsOnce(op, &start)
					} else {
						b.tap.before = hangsOnce(op, &start)
					}
				}, func(_ *cluster, a *replica) {
					a.kill()
					time.AfterFunc(map[bool]time.Duration{true: lease / 2}[op == "read"], func() { start.Store(true) })
				}, 0, lease + lease/99 + lease/3 + lease/30 + max(lease/3, 500*time.Millisecond) + 100*time.Millisecond}
			}
		}
	}
	inRows(t, all, func(c *cluster, name string, tt short) {
		a := c.coarsely(brief(tt.lease), "a")["a"]
		time.Sleep(30 * time.Second)
		b := c.replica("b", tt.follower)
		b.tap.Store = coarse{c.store}
		if tt.over != nil {
			tt.over(b)
		}
		c.launch(b)
		time.Sleep(30*time.Second + 123*time.Millisecond)
		tt.end(c, a)
		ended := time.Now()
		time.Sleep(time.Minute)
		first, _ := c.successor(ended, tt.least, tt.most)
		c.wrong(name != "stopped" && !errors.Is(first.cause, store.ErrLost), "the first run ended with %v", first.cause)
	})
}

// A request for the outcome that is lost loses no run that has succeeded: it is sent again before others replace the holder.
func TestLostOutcomeOfShortLease(t *testing.T) {
	for _, length := range []time.Duration{2 * time.Second, 3 * time.Second, 10 * time.Second} {
		for took := length; took < 2*length; took += length / 7 {
			inCase(t, length.String()+" "+took.String(), func(t *testing.T, c *cluster) {
				var over atomic.Bool
				job := leased(length, rerun(doing("@every 1h", func(ctx context.Context, _ *soloist.Run) error {
					defer over.Store(true)
					return pause(ctx, took)
				})))
				for _, r := range c.coarsely(job, "a", "b") {
					lost := false
					r.meets(func(op string, apply func() error) error {
						if op == "write" && over.Load() && !lost {
							lost = true
							time.Sleep(length / 6) // until the caller gives up
							return context.DeadlineExceeded
						}
						return apply()
					})
				}
				time.Sleep(time.Hour + time.Minute)
				c.wantRuns(1)
				c.wantOutcomes("work", "succeeded 01:00:00")
			})
		}
	}
}

// halves has each call take d: half of it on the way there, half on the way back.
func halves(d time.Duration) fault {
	return func(_ string, apply func() error) error {
		time.Sleep(d / 2)
		err := apply()
		time.Sleep(d / 2)
		return err
	}
}

// A replica that reads between the outcome of a run that is handed over and the release of its lease reads again soon,
// whatever the lease.
func TestHandOverIsNear(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 30 * time.Second} {
		for _, took := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond} {
			inCase(t, fmt.Sprint(length, " ", took), func(t *testing.T, c *cluster) {
				all := map[string]*replica{}
				for _, name := range letters(4) {
					r := c.replica(name, brief(length)).meets(halves(took))
					r.Grace, r.tap.Store = 10*time.Second, coarse{c.store}
					all[name] = c.launch(r)
				}
				time.Sleep(time.Minute)
				for n := range 3 {
					all[c.all()[n].replica].stop()
					time.Sleep(30 * time.Second)
					runs := c.succession(n + 2)
					// The outcome and the release, a read after the pause, the acquisition and the claim.
					gap := runs[n+1].start.Sub(runs[n].end)
					c.wrong(gap > 300*time.Millisecond+6*took, "%s from one run to the next", gap)
				}
			})
		}
	}
}

// A store that cannot break a lease on condition takes no lease below its limit.
func TestShortLeaseNeedsBreak(t *testing.T) {
	for _, tt := range []struct {
		store store.Store
		lease time.Duration
		want  []string // in the error
	}{
		{struct{ store.Store }{coarse{&local.Memory{}}}, 3 * time.Second,
			[]string{"Lease is 3s", "15s to 1m0s", "store.ConditionalBreaker"}},
		{coarse{&local.Memory{}}, 1500 * time.Millisecond, []string{"Lease is 1.5s", "1s to 1m0s"}},
		{coarse{&local.Memory{}}, 500 * time.Millisecond, []string{"Lease is 500ms", "1s to 1m0s"}},
	} {
		wantError(t, (&soloist.Scheduler{Store: tt.store, Singletons: []soloist.Singleton{brief(tt.lease)}}).Validate(), tt.want...)
	}
}

// What a singleton costs is what docs/costs.md says: its rule, and each row of its table. Meanwhile a holder that is
// alive keeps its term, however short its lease.
func TestShortLeaseCosts(t *testing.T) {
	page := readPage(t, "docs/costs.md")
	rule := regexp.MustCompile(`takes ([\d,]+) operations a month times the replicas[^.]*below\s15 s ([\d,]+) more`).
		FindStringSubmatch(page)
	rows := regexp.MustCompile(`(?m)^\| (\d+) s \| (\d+) \| ([\d,]+) \| \$([\d.]+) \|$`).FindAllStringSubmatch(page, -1)
	if rule == nil || len(rows) < 4 {
		t.Fatalf("the rule %q, and %d rows", rule, len(rows))
	}
	month := func(length, replicas float64) float64 {
		beats := number(t, rule[1]) * replicas / length
		if length < 15 {
			return beats + number(t, rule[2])
		}
		return beats
	}
	for _, row := range rows {
		want := number(t, row[3])
		if got := month(number(t, row[1]), number(t, row[2])); got != want {
			t.Errorf("%s: the rule says %.0f", row[0], got)
		}
		if price := want * pricePerOperation; math.Abs(price-number(t, row[4])) > 0.01 {
			t.Errorf("%s: $%.2f", row[0], price)
		}
	}
	for _, length := range []int{1, 3, 5, 15, 60} {
		for _, replicas := range []int{1, 3, 10} {
			if replicas <= 3 || nightly.Runs() {
				inCase(t, fmt.Sprintf("%ds of %d", length, replicas), func(t *testing.T, c *cluster) {
					all := c.coarsely(brief(time.Duration(length)*time.Second), letters(replicas)...)
					count := func() (n float64) {
						for _, r := range all {
							for _, calls := range r.tap.counts() {
								n += float64(calls)
							}
						}
						return n
					}
					time.Sleep(time.Minute)
					count()
					time.Sleep(20 * time.Minute)
					got, want := count()*30*24*3, month(float64(length), float64(replicas))
					c.wrong(math.Abs(got-want) > want/10, "%.0f operations a month, and the page says %.0f", got, want)
					c.wantRuns(1)
				})
			}
		}
	}
}

// After an unlock at once a status says until about when others wait: for the last beat, and not for the lease of the store.
func TestUnlockedShortLeaseIsToldInTime(t *testing.T) {
	inEach(t, []time.Duration{time.Second, 3 * time.Second, 9 * time.Second}, func(c *cluster, length time.Duration) {
		a, _ := c.leads(length, "b")
		c.ok(a.Unlock(c.t.Context(), "lead", true))
		st, err := a.StatusOf(c.t.Context(), "lead")
		c.ok(err)
		time.Sleep(time.Minute)
		began := c.all()[1].start
		c.wrong(began.After(st.Waits) || st.Waits.Sub(began) > length/3+2*time.Second,
			"others wait until %s, and the next run began at %s", st.Waits, began)
	})
}

// The outcome of a run whose lease another tool has ended says so, also where the run beats and a replica may have ended it:
// if the replica that settles the run has seen that no beat was missing.
func TestBrokenShortLeaseIsTold(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
		for after := range 4 {
			inCase(t, fmt.Sprint(length, " ", after), func(t *testing.T, c *cluster) {
				a, _ := c.leads(length, "b")
				time.Sleep(time.Duration(after) * length / 12)
				a.kill()
				c.ok(c.store.Break(t.Context(), "soloist/lead", 0))
				time.Sleep(time.Minute)
				f := c.record("lead").History[0]
				c.wrong(f.Reason != "unlocked", "%s: %s", f.Status, f.Reason)
			})
		}
	}
}
