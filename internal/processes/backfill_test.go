//go:build unix

package processes

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

var (
	backfilled = flag.Int("backfill", 100, "how many ticks TestBackfillOutlivesKills has run again")
	parallel   = flag.Int("parallel", 1, "how many of these ticks are run at a time")
	kills      = flag.Int("kills", 1, "how many replicas are killed meanwhile: each time that which runs the job")
)

// pace is between two ticks of the job whose ticks are run again.
const pace = 2 * time.Second

// Ticks are run again while the replica that runs them is killed, again and again. Each has one outcome,
// and those of the job itself are run in between.
func TestBackfillOutlivesKills(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every " + pace.String(), Rerun: true, Takes: 60 * time.Millisecond})
	for i := range 3 {
		f.start(fmt.Sprint("replica-", i), 0)
	}
	f.await("the first tick", started(""))
	begin := time.Now()
	b := f.orderBackfill(*backfilled)
	for i := range *kills {
		f.awaitFilled(b, (i+1)**backfilled/(*kills+1)+rand.IntN(5))
		proctest.Pause(t.Context(), time.Duration(rand.IntN(100))*time.Millisecond) // not always at the begin of a run
		victim := f.newest().Replica
		f.signal(victim, syscall.SIGKILL)
		<-f.Replica(victim).Gone()
		f.start(victim, 0)
	}
	proctest.Poll(t, "the end of the backfill", 5*time.Minute, func() bool {
		time.Sleep(200 * time.Millisecond) // the storage is that of the replicas
		done := f.record().Backfill
		return done.Done() == int64(b.Ticks)
	})
	took := time.Since(begin)
	f.checkFilled(b)
	f.checkTurn(b, begin)
	ticks, late := f.checkPunctual(begin)
	t.Logf("%d ticks run again in %s through %d kills, %v; %d ticks of the job meanwhile, those without a kill were late by %s at most", b.Ticks, ms(took), *kills,
		f.record().Backfill.Counts, ticks, ms(late))
}

// orderBackfill orders that n ticks are run again, which were due before the fleet began.
func (f *fleet) orderBackfill(n int) store.Backfill {
	f.t.Helper()
	backend, err := azure.Open(azure.Config{ConnectionString: f.storage.Setting, Container: f.storage.Container})
	if err != nil {
		f.t.Fatal(err)
	}
	desk := &soloist.Scheduler{Store: backend, App: "e2e", Replica: "desk", Jobs: f.order.jobs(), Logger: slog.New(slog.DiscardHandler)}
	to := time.Now().Truncate(pace).Add(-time.Hour)
	o, err := desk.Order(f.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "work",
		Backfill: soloist.Backfill{From: to.Add(-time.Duration(n-1) * pace), To: to, All: true, Parallel: *parallel}})
	if err != nil || o.Backfill.Ticks != n {
		f.t.Fatalf("got %+v, %v", o, err)
	}
	return o.Backfill
}

// filled returns the starts of ticks of a backfill.
func (f *fleet) filled(b store.Backfill) (all []event) {
	for _, e := range f.starts() {
		if !e.Tick.After(b.To) {
			all = append(all, e)
		}
	}
	return all
}

// awaitFilled waits until the n-th tick of a backfill has begun.
func (f *fleet) awaitFilled(b store.Backfill, n int) {
	f.t.Helper()
	proctest.Poll(f.t, fmt.Sprint(n, " ticks of the backfill"), 5*time.Minute, func() bool {
		all := f.filled(b)
		return slices.ContainsFunc(all, func(e event) bool { return e.Tick.Sub(b.From) >= time.Duration(min(n, b.Ticks)-1)*pace })
	})
}

// checkFilled checks that each tick of a backfill was run in its turn, has succeeded in the record, and
// has returned once: a process may be killed between the return and the outcome, which is an attempt more.
func (f *fleet) checkFilled(b store.Backfill) {
	f.t.Helper()
	if r := f.record(); r.Backfill.Counts[store.Succeeded] != int64(b.Ticks) || len(r.Backfill.Counts) != 1 || r.Backfill.Attempt != 0 || len(r.Backfill.Open) > 0 {
		f.t.Errorf("got %+v", r.Backfill)
	}
	returned, again := map[int64]int{}, 0
	for _, e := range f.Events() {
		if e.What == "end" && !e.Tick.After(b.To) {
			returned[e.Tick.UnixNano()]++
		}
	}
	for at := b.From; !at.After(b.To); at = at.Add(pace) {
		switch n := returned[at.UnixNano()]; {
		case n == 0:
			f.t.Errorf("the tick %s was not run to its end", at)
		case n > 1:
			again += n - 1
		}
	}
	if again > *kills**parallel {
		f.t.Errorf("%d further runs returned, of %d kills", again, *kills)
	}
	if *parallel > 1 {
		f.checkBeside(b)
		return
	}
	last, token := b.From.Add(-pace), int64(0)
	for _, e := range slices.SortedFunc(slices.Values(f.filled(b)), func(a, b event) int { return a.At.Compare(b.At) }) {
		again := e.Attempt > 1 // also of an attempt that was claimed and killed before its start
		if !e.Tick.Equal(last.Add(pace)) && !(again && e.Tick.Equal(last)) || e.Token <= token {
			f.t.Errorf("attempt %d of %s with token %d follows %s with token %d", e.Attempt, e.Tick, e.Token, last, token)
		}
		last, token = e.Tick, e.Token
	}
}

// checkBeside checks that the ticks of a backfill were claimed in their order, with the tokens of their claims, that no more of them
// than asked for have one, and that the runs of one claim do not go on beside those of another.
func (f *fleet) checkBeside(b store.Backfill) {
	f.t.Helper()
	ticks, last := map[int64]map[int64]bool{}, map[int64]time.Time{}
	most := 0
	for _, e := range f.filled(b) {
		if ticks[e.Token] == nil {
			ticks[e.Token] = map[int64]bool{}
		}
		ticks[e.Token][e.Tick.UnixNano()] = true
		most = max(most, len(ticks[e.Token]))
		if e.Attempt == 1 && e.Tick.After(last[e.Token]) {
			last[e.Token] = e.Tick
		}
	}
	if most != *parallel {
		f.t.Errorf("%d ticks at a time, want %d", most, *parallel)
	}
	through := time.Time{}
	for _, token := range slices.Sorted(maps.Keys(last)) {
		if !last[token].After(through) {
			f.t.Errorf("%s with token %d follows %s", last[token], token, through)
		}
		through = last[token]
	}
	var now int64
	for _, e := range slices.SortedFunc(slices.Values(f.Events()), func(a, b event) int { return a.At.Compare(b.At) }) {
		switch {
		case e.What == "start" && e.Token < now, e.What == "end" && e.Token != now:
			f.t.Errorf("%s of %s, attempt %d, with token %d after a start with token %d", e.What, e.Tick, e.Attempt, e.Token, now)
		case e.What == "start":
			now = e.Token
		}
	}
}

// checkTurn checks that of the ticks of the job none waits for more than what is run of a backfill when it comes due: one claim,
// or two if a replica is killed meanwhile, and those that are made before the clock of the storage shows the tick.
func (f *fleet) checkTurn(b store.Backfill, begin time.Time) {
	f.t.Helper()
	all := f.filled(b)
	last := slices.MaxFunc(all, func(x, y event) int { return x.At.Compare(y.At) }).At
	for tick := begin.Truncate(pace).Add(pace); tick.Before(last); tick = tick.Add(pace) {
		begins := last
		for _, e := range f.starts() {
			if !e.Tick.Before(tick) && e.At.Before(begins) {
				begins = e.At
			}
		}
		claims := map[int64]bool{}
		for _, e := range all {
			if e.At.After(tick.Add(2*time.Second)) && e.At.Before(begins) {
				claims[e.Token] = true
			}
		}
		if len(claims) > 2 {
			f.t.Errorf("the tick %s was due, and %d claims of the backfill came before it or a newer one, at %s", tick, len(claims), begins)
		}
	}
}

// checkPunctual returns how many ticks of the job there were, none twice, and how late they were at most, but for those that came due
// under a lease whose holder was killed.
func (f *fleet) checkPunctual(begin time.Time) (ticks int, late time.Duration) {
	f.t.Helper()
	seen := map[time.Time]bool{}
	var killed []time.Time
	for _, e := range f.Events() {
		if e.What == proctest.Begins && e.At.After(begin) {
			killed = append(killed, e.At)
		}
	}
	for _, e := range f.starts() {
		if e.Tick.Before(begin) || e.Attempt > 1 {
			continue
		}
		if seen[e.Tick] {
			f.t.Errorf("the tick %s ran twice", e.Tick)
		}
		seen[e.Tick] = true
		ticks++
		if !slices.ContainsFunc(killed, func(at time.Time) bool { return e.Tick.After(at.Add(-pace)) && e.Tick.Before(at.Add(lease+pace)) }) {
			late = max(late, e.At.Sub(e.Tick))
		}
	}
	if missed := f.record().Counts[store.Missed]; missed > int64(*kills)*int64(limit(lease)/pace+2) {
		f.t.Errorf("%d ticks of the job were missed, with %d kills", missed, *kills)
	}
	if late > limit(time.Second) {
		f.t.Errorf("a tick was late by %s, want at most %s", late, limit(time.Second))
	}
	return ticks, late
}
