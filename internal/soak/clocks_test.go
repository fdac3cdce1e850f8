// Package soak_test has a cluster live through the days around a change of the clocks, in virtual time and under all kinds
// of faults. At the end each tick that a calendar of its own names has one outcome.
//
//	go test ./internal/soak -seeds 2 -v
package soak_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var (
	from  = flag.Uint64("from", 1, "the first seed")
	seeds = flag.Uint64("seeds", 0, "how many seeds of each change of the clocks; 0: the test is skipped")
)

// TestMain lets the heap grow: little of what is made lasts.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestClockChanges has seeds in two zones, around the hour that their clocks leave out and around the one that they repeat.
func TestClockChanges(t *testing.T) {
	if *seeds == 0 {
		t.Skip("a seed takes 12 s of CPU: run it with -seeds 2")
	}
	var mu sync.Mutex
	met := map[string]int{}
	t.Run("seed", func(t *testing.T) {
		for seed := *from; seed < *from+*seeds; seed++ {
			zone := load(t, []string{"Europe/Berlin", "America/New_York"}[seed%2])
			_, gap := time.Date(2028, 1, 1, 0, 0, 0, 0, zone).ZoneBounds()
			_, fold := gap.ZoneBounds()
			for i, change := range []time.Time{gap, fold} {
				t.Run(fmt.Sprint(seed, " ", []string{"gap", "fold"}[i]), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(seed, change)
						w.live()
						all := w.judge(t)
						mu.Lock()
						defer mu.Unlock()
						for what, n := range all {
							met[what] += n
						}
					})
				})
			}
		}
	})
	for _, what := range []string{"succeeded", "failed failed", "stalled no heartbeat for 1m0s", "abandoned its runner died", "skipped overlap",
		"skipped paused", "skipped nothing to do", "missed a newer one was due", "missed past the starting deadline", "missed " + changed} {
		if met[what] == 0 {
			t.Errorf("no tick is %s", what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(met)) {
		t.Logf("%6d %s", met[what], what)
	}
}

// judge returns how many ticks had which outcome.
func (w *world) judge(t *testing.T) map[string]int {
	for _, r := range w.places {
		if h := r.Health(); h.Storage != nil || len(h.Broken)+len(h.Overrun)+len(h.Stuck) > 0 {
			t.Errorf("a replica says %+v", h)
		}
	}
	l := w.End()
	for _, v := range judge.Judge(l) {
		t.Error(v)
	}
	calendars, accounts, met := w.calendars(), map[string]*account{}, map[string]int{}
	for _, e := range l.Events {
		if !e.OK() || !e.Writes() || e.Record == nil {
			continue
		}
		if accounts[e.Job] == nil {
			accounts[e.Job] = &account{job: e.Job, bad: t.Errorf}
		}
		i := slices.IndexFunc(l.Fleet[e.Replica], func(d trace.Definition) bool { return d.Name == e.Job })
		accounts[e.Job].write(e.Record, calendars[l.Fleet[e.Replica][i].Schedule])
	}
	for _, a := range accounts {
		for what, n := range a.sum(w.to) {
			met[what] += n
		}
	}
	return met
}

// calendars are those of all schedules, with room for ticks that do not count.
func (w *world) calendars() map[string]calendar {
	all := map[string]calendar{}
	for _, r := range []rule{everyFive, onTheHour, atHalfPast, atNight, nightly, afterMidnight} {
		all[r.text] = r.write(w.from.Add(-48*time.Hour), w.to.Add(48*time.Hour), w.change.Location())
	}
	return all
}
