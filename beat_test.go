package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

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

// A dead holder is replaced after the lease that the program asks for, not after that of the store.
func TestDeadHolderOfShortLease(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
		inCase(t, length.String(), func(t *testing.T, c *cluster) {
			all := c.coarsely(brief(length), "a", "b", "c")
			time.Sleep(time.Minute + 123*time.Millisecond)
			first := c.all()[0]
			all[first.replica].kill()
			killed := time.Now()
			time.Sleep(3 * length)
			runs := c.all()
			if len(runs) != 2 {
				t.Fatalf("%d runs, want 2", len(runs))
			}
			if first = runs[0]; first.end.After(runs[1].start) || !errors.Is(first.cause, store.ErrLost) {
				t.Errorf("the dead run ended at %s, the next began at %s", first.end, runs[1].start)
			}
			if gap := runs[1].start.Sub(killed); gap < length*2/3 || gap > length*4/3+50*time.Millisecond {
				t.Errorf("back after %s", gap)
			}
			if runs[1].Token <= first.Token {
				t.Errorf("token %d after %d", runs[1].Token, first.Token)
			}
		})
	}
}

// A holder that is alive keeps its term, however short its lease.
func TestShortLeaseLasts(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.coarsely(brief(time.Second), "a", "b", "c")
		time.Sleep(time.Hour)
		if runs := c.all(); len(runs) != 1 {
			t.Errorf("%d runs in an hour, want 1", len(runs))
		}
		for name, r := range all {
			if n := r.tap.counts()["break unchanged"]; n > 0 {
				t.Errorf("%s broke %d leases", name, n)
			}
		}
	})
}

// Without beats the lease of the store does not keep a run, though its renewals succeed.
func TestRenewalsAloneDoNotKeepShortLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(3*time.Second), "a")["a"]
		time.Sleep(time.Minute)
		a.meets(func(op string, apply func() error) error {
			if op == "write" {
				return errors.New("503")
			}
			return apply()
		})
		failed := time.Now()
		time.Sleep(5 * time.Second)
		if run := c.all()[0]; !errors.Is(run.cause, store.ErrLost) || run.end.Sub(failed) > 3*time.Second {
			t.Errorf("ended %s after the last beat with %v", run.end.Sub(failed), run.cause)
		}
	})
}

// Without renewals beats do not keep a run: the lease of the store expires, and whoever sees it expired acts at once.
func TestBeatsAloneDoNotKeepShortLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(3*time.Second), "a")["a"]
		time.Sleep(time.Minute)
		a.meets(func(op string, apply func() error) error {
			if op == "renew" {
				return errors.New("503")
			}
			return apply()
		})
		failed := time.Now()
		time.Sleep(15 * time.Second)
		if run := c.all()[0]; !errors.Is(run.cause, store.ErrLost) || run.end.Sub(failed) > 13*time.Second {
			t.Errorf("ended %s after the last renewal with %v", run.end.Sub(failed), run.cause)
		}
	})
}

// The followers go by the length in the record, not by their own.
func TestFollowerWithShorterLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(12*time.Second), "a")["a"]
		time.Sleep(time.Minute)
		c.coarsely(brief(time.Second), "b")
		time.Sleep(time.Minute)
		a.kill()
		time.Sleep(30 * time.Second)
		if runs := c.all(); len(runs) != 2 || runs[0].end.After(runs[1].start) {
			t.Errorf("the dead run ended at %s, the next began at %s", runs[0].end, runs[1].start)
		}
	})
}

// After an operator's break the next holder waits until the one before trusts its lease no more.
func TestUnlockedShortLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(9*time.Second), "a")["a"]
		time.Sleep(time.Minute)
		a.kill()
		killed := time.Now()
		c.coarsely(brief(9*time.Second), "b")
		time.Sleep(time.Second)
		if err := c.store.Break(t.Context(), "soloist/lead", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		runs := c.all()
		if len(runs) != 2 || runs[0].end.After(runs[1].start) || runs[1].start.Sub(killed) > 11*time.Second {
			t.Errorf("%d runs, %s after the death", len(runs), runs[len(runs)-1].start.Sub(killed))
		}
	})
}

// A write that is late makes no trust that is over good again.
func TestLateBeat(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(3*time.Second), "a", "b")["a"]
		time.Sleep(time.Minute)
		holder := c.all()[0].replica
		if holder == "b" {
			a = c.started[1]
		}
		a.meets(func(op string, apply func() error) error {
			err := apply() // the answers take too long
			time.Sleep(4 * time.Second)
			return err
		})
		time.Sleep(time.Minute)
		runs := c.all()
		for i, run := range runs[1:] {
			if run.start.Before(runs[i].end) {
				t.Errorf("run %d began at %s, before the end of the one before at %s", i+2, run.start, runs[i].end)
			}
		}
		if len(runs) < 2 {
			t.Error("nobody took over")
		}
	})
}

// After an outage somebody acts within the short lease and two seconds, whether the lease of the store has outlasted it or not.
func TestShortLeaseAfterOutage(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second} {
		for _, outage := range []time.Duration{12 * time.Second, time.Minute, time.Hour} {
			inCase(t, length.String()+" after "+outage.String(), func(t *testing.T, c *cluster) {
				all := c.coarsely(brief(length), "a", "b", "c")
				time.Sleep(time.Minute + 123*time.Millisecond)
				for _, r := range all {
					r.meets(func(string, func() error) error { return errors.New("429") })
				}
				time.Sleep(outage)
				for _, r := range all {
					r.meets(nil)
				}
				over := time.Now()
				time.Sleep(time.Minute)
				runs := c.all()
				if len(runs) != 2 {
					t.Fatalf("%d runs, want 2", len(runs))
				}
				if took := runs[1].start.Sub(over); took < 0 || took > length+2*time.Second {
					t.Errorf("back after %s, want at most %s", took, length+2*time.Second)
				}
			})
		}
	}
}

// A job takes a short lease as a singleton does: a tick whose runner died is run again soon.
func TestRerunOfShortLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.coarsely(leased(2*time.Second, rerun(work("@every 1h", 10*time.Minute))), "a", "b")
		time.Sleep(time.Hour + time.Minute)
		first := c.all()[0]
		all[first.replica].kill()
		killed := time.Now()
		time.Sleep(4 * time.Second)
		if runs := c.all(); len(runs) != 2 || runs[1].Attempt != 2 || runs[1].start.Sub(killed) > 3*time.Second {
			t.Errorf("runs: %+v", runs)
		}
	})
}

// A stop hands the task over at the next look of a replica that waits: a third of the lease, and a tenth of that so that
// not all of them look at once.
func TestStopOfShortLease(t *testing.T) {
	const look = time.Second + time.Second/10
	inCluster(t, func(c *cluster) {
		all := c.coarsely(brief(3*time.Second), "a", "b")
		time.Sleep(time.Minute)
		all[c.all()[0].replica].stop()
		stopped := time.Now()
		time.Sleep(5 * time.Second)
		if runs := c.all(); len(runs) != 2 || runs[1].start.Sub(stopped) > look {
			t.Errorf("%d runs; the last began %s after the stop", len(runs), runs[len(runs)-1].start.Sub(stopped))
		}
	})
}

// A store that cannot break a lease on condition takes no lease below its limit.
func TestShortLeaseNeedsBreak(t *testing.T) {
	has := func(err error, all ...string) bool {
		return err != nil && !slices.ContainsFunc(all, func(s string) bool { return !strings.Contains(err.Error(), s) })
	}
	for _, tt := range []struct {
		store store.Store
		lease time.Duration
		want  []string // in the error; none: no error
	}{
		{struct{ store.Store }{coarse{&local.Memory{}}}, 3 * time.Second, []string{"Lease is 3s", "15s to 1m0s", "store.ConditionalBreaker"}},
		{coarse{&local.Memory{}}, 3 * time.Second, nil},
		{coarse{&local.Memory{}}, 1500 * time.Millisecond, []string{"Lease is 1.5s", "1s to 1m0s"}},
		{coarse{&local.Memory{}}, 500 * time.Millisecond, []string{"Lease is 500ms", "1s to 1m0s"}},
	} {
		s := soloist.Scheduler{Store: tt.store, Singletons: []soloist.Singleton{brief(tt.lease)}}
		if err := s.Validate(); err != nil && len(tt.want) == 0 || !has(err, tt.want...) && len(tt.want) > 0 {
			t.Errorf("lease %s: error %v", tt.lease, err)
		}
	}
}

// A lock is had again after the lease that the program asks for, as a job is, by callers that wait
// for long and by callers that come again and again.
func TestDeadHolderOfShortLock(t *testing.T) {
	for name, do := range map[string]func(l *soloist.Lock, ctx context.Context, f func(context.Context, *soloist.Run) error) error{
		"Do": (*soloist.Lock).Do,
		"TryDo": func(l *soloist.Lock, ctx context.Context, f func(context.Context, *soloist.Run) error) error {
			for {
				if err := l.TryDo(ctx, f); !errors.Is(err, soloist.ErrHeld) {
					return err
				}
				time.Sleep(200 * time.Millisecond)
			}
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			dying := &tap{Store: coarse{c.store}, t: t}
			a := &soloist.Lock{Store: dying, Name: "tenant-42", Lease: 3 * time.Second}
			b := &soloist.Lock{Store: coarse{c.store}, Name: "tenant-42", Lease: 3 * time.Second}
			var lost time.Time
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = a.Do(t.Context(), func(ctx context.Context, _ *soloist.Run) error {
					<-ctx.Done()
					lost = time.Now()
					return ctx.Err()
				})
			}()
			time.Sleep(time.Minute)
			killed, began := time.Now(), time.Time{}
			time.AfterFunc(10*time.Second, func() { dying.cut.Store(true) })
			if err := do(b, c.within(time.Minute), func(context.Context, *soloist.Run) error { began = time.Now(); return nil }); err != nil {
				t.Fatal(err)
			}
			<-done
			if gap := began.Sub(killed) - 10*time.Second; gap > 4500*time.Millisecond || gap < 2*time.Second || lost.After(began) {
				t.Errorf("had %s after the death of its holder, whose context ended %s before", gap, began.Sub(lost))
			}
		})
	}
}

// What a singleton costs is what docs/costs.md says: its rule, and each row of its table.
func TestShortLeaseCosts(t *testing.T) {
	page := readPage(t, "docs/costs.md")
	rule := regexp.MustCompile(`takes ([\d,]+) operations a month times the replicas[^.]*below\s15 s ([\d,]+) more`).FindStringSubmatch(page)
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
					wantOperations(t, c, time.Duration(length)*time.Second, replicas, month(float64(length), float64(replicas)))
				})
			}
		}
	}
}

// wantOperations wants so many operations a month of a singleton.
func wantOperations(t *testing.T, c *cluster, lease time.Duration, replicas int, want float64) {
	t.Helper()
	all := c.coarsely(brief(lease), strings.Split("abcdefghij"[:replicas], "")...)
	count := func() (n int) {
		for _, r := range all {
			for _, calls := range r.tap.counts() {
				n += calls
			}
		}
		return n
	}
	time.Sleep(time.Minute)
	count()
	time.Sleep(20 * time.Minute)
	if got := float64(count()) * 30 * 24 * 3; math.Abs(got-want) > want/10 {
		t.Errorf("%.0f operations a month, and the page says %.0f", got, want)
	}
}

// The trust ends in time after the first sending of the last beat that was applied, also if answers are lost,
// beats are sent again, and the reads that find out what became of them are slow.
func TestBeatsOfUnclearOutcome(t *testing.T) {
	const length = 3 * time.Second
	for cut := time.Duration(0); cut < 6*time.Second; cut += 150 * time.Millisecond {
		inCase(t, cut.String(), func(t *testing.T, c *cluster) {
			var mu sync.Mutex
			first := map[string]time.Time{}
			var last time.Time // when the last write that was applied was first sent
			n, unclear := 0, false
			a := c.replica("a", brief(length))
			a.tap.Store = coarse{c.store}
			a.tap.write = func(record []byte, apply func() error) error {
				var r store.Record
				if err := json.Unmarshal(record, &r); err != nil {
					return err
				}
				mu.Lock()
				_, again := first[r.Writer]
				if !again {
					first[r.Writer] = time.Now()
					n++
				}
				kind, sent := n%3, first[r.Writer]
				unclear = n > 2 && kind != 0
				mu.Unlock()
				if n > 2 && kind == 2 && !again { // it never arrives
					time.Sleep(450 * time.Millisecond)
					return errors.New("no answer")
				}
				err := apply()
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					last = sent
				}
				if n > 2 && kind > 0 { // the answer is lost
					return errors.Join(err, errors.New("no answer"))
				}
				return err
			}
			a.meets(func(op string, apply func() error) error {
				mu.Lock()
				slow := unclear && op == "read"
				mu.Unlock()
				if slow {
					time.Sleep(450 * time.Millisecond)
				}
				return apply()
			})
			c.launch(a)
			time.Sleep(time.Minute + cut)
			a.kill()
			time.Sleep(length)
			mu.Lock()
			defer mu.Unlock()
			run := c.all()[0]
			if most := last.Add(length - length/100 - length/6); run.end.IsZero() || run.end.After(most.Add(201*time.Millisecond)) {
				t.Errorf("the run ended at %s, and could be trusted until %s", run.end, most)
			}
			if n < 30 || len(c.all()) != 1 {
				t.Errorf("%d beats, %d runs", n, len(c.all()))
			}
		})
	}
}

// A forgetful store is a coarse one behind a proxy that drops the condition from some calls: they name the ETag that
// the entry has.
type forgetful struct {
	coarse
	drops []string      // "break", "acquire", "write"
	broke *atomic.Int32 // leases of an entry that had changed since the caller has read it
}

// current returns what a call of op names instead of etag.
func (s *forgetful) current(ctx context.Context, op, name, etag string) string {
	if e, err := s.Read(ctx, name); err == nil && slices.Contains(s.drops, op) {
		return e.ETag
	}
	return etag
}

func (s *forgetful) BreakUnchanged(ctx context.Context, name, etag string) error {
	now := s.current(ctx, "break", name, etag)
	if now != etag {
		s.broke.Add(1)
	}
	return s.coarse.BreakUnchanged(ctx, name, now)
}

func (s *forgetful) Lease(name, id string) store.Lease {
	return &forgetfulLease{s.coarse.Lease(name, id), s, name}
}

type forgetfulLease struct {
	store.Lease
	s    *forgetful
	name string
}

func (l *forgetfulLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.Lease.Acquire(ctx, d, l.s.current(ctx, "acquire", l.name, etag))
}

func (l *forgetfulLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.Lease.Write(ctx, l.s.current(ctx, "write", l.name, etag), record)
}

// The beats of a holder fail for a while, and its last one arrives just before another replica breaks its lease. Of the
// break, the acquisition and the claim one condition is enough to keep two runs apart.
func TestBreakWithoutCondition(t *testing.T) {
	for _, drops := range [][]string{{"break"}, {"break", "acquire"}, {"break", "write"}, {"break", "acquire", "write"}} {
		t.Run(strings.Join(drops, " "), func(t *testing.T) {
			var broke atomic.Int32
			overlaps := 0
			for cut := time.Duration(0); cut < 40*time.Second; cut += 1050 * time.Millisecond {
				inCase(t, cut.String(), func(t *testing.T, c *cluster) {
					if holderSeemsDead(c, &forgetful{coarse{c.store}, drops, &broke}, cut) {
						overlaps++
					}
				})
			}
			if broke.Load() == 0 {
				t.Error("no lease of a changed entry was broken")
			}
			if kept := len(drops) < 3; kept != (overlaps == 0) {
				t.Errorf("%d times two runs were under way at once", overlaps)
			}
		})
	}
}

// holderSeemsDead has a holder send a beat only after two that fail, and reports whether another run begins before its own has ended.
func holderSeemsDead(c *cluster, s *forgetful, cut time.Duration) (overlaps bool) {
	a, b := c.replica("a", brief(3*time.Second)), c.replica("b", brief(3*time.Second))
	a.tap.Store, b.tap.Store = coarse{c.store}, s
	c.launch(a)
	time.Sleep(time.Minute)
	c.launch(b)
	time.Sleep(time.Minute + cut)
	a.meets(fail(errors.New("503"), "write"))
	time.Sleep(2200 * time.Millisecond)
	a.meets(nil)
	time.Sleep(time.Minute)
	for i, run := range c.all()[1:] {
		before := c.all()[i]
		overlaps = overlaps || before.end.IsZero() || before.end.After(run.start)
	}
	return overlaps
}
