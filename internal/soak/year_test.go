// Package soak_test has a cluster live through a year of virtual time: the
// cluster of the simulation, with the jobs, the deploys and the troubles that a year brings. At its end each tick
// that a calendar of its own names has one outcome, and the ledger says which.
//
//	go test ./internal/soak -run TestYear -year -v -timeout 0
//
// With -changes in its place, as CI has it, four days are passed around the hour that a clock shows twice, and
// four around the hour that it leaves out.
package soak_test

import (
	"flag"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/store"
)

var (
	long = flag.Bool("year", false, "pass a whole year")
	both = flag.Bool("changes", false, "without -year: pass four days around each change of the clocks")
	days = flag.Int("days", 366, "of the year to pass; a shorter one need not have every kind of trouble")
)

// TestMain lets the heap grow: little of what is made lasts.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// theYear is one with a 29th of February.
func theYear(t *testing.T) stretch {
	zone := berlin(t)
	return stretch{time.Date(2028, 1, 1, 0, 0, 0, 0, zone), time.Date(2029, 1, 1, 0, 0, 0, 0, zone)}
}

func TestYear(t *testing.T) {
	if !*long && !*both {
		t.Skip("takes 25 s of CPU: run it with -changes")
	}
	if *long {
		year := theYear(t)
		year.to = year.from.AddDate(0, 0, *days)
		pass(t, year, (*plan).wholeYear)
		return
	}
	t.Run("the fold", func(t *testing.T) {
		fourDaysFrom(t, time.October, 27)
	})
	t.Run("the gap", func(t *testing.T) {
		fourDaysFrom(t, time.March, 24)
	})
}

// fourDaysFrom passes four days, beside others.
func fourDaysFrom(t *testing.T, month time.Month, day int) {
	t.Parallel()
	begin := time.Date(2028, month, day, 0, 0, 0, 0, berlin(t))
	pass(t, stretch{begin, begin.AddDate(0, 0, 4)}, (*plan).fourDays)
}

// pass has a cluster live through a time, and reads its ledger.
func pass(t *testing.T, over stretch, draw func(*plan)) {
	synctest.Test(t, func(t *testing.T) {
		p := &plan{over: over, zone: berlin(t)}
		draw(p)
		time.Sleep(time.Until(over.from.Add(-5 * time.Minute)))
		c := newCluster(over, p.zone, 3, t.Errorf)
		if c.program = program(*long); *long {
			c.lead()
		}
		c.heal()
		month := over.from.Month()
		for _, d := range p.sort() {
			time.Sleep(time.Until(d.at))
			d.do(c)
			if m := d.at.Month(); m != month {
				t.Logf("%s is over", month)
				month = m
			}
		}
		time.Sleep(time.Until(over.to.Add(-calm)))
		c.heal()
		time.Sleep(time.Until(over.to.Add(calm)))
		c.healthy()
		c.end()
		sums := c.ledger.sums()
		t.Log(c.print(sums))
		if *both || *long && *days == 366 {
			c.complete(sums)
		}
	})
}

// healthy asks all replicas how they fare.
func (c *cluster) healthy() {
	for _, s := range c.slots {
		r := s.current()
		if r == nil {
			c.bad("no replica is up at %s", s.name)
			continue
		}
		h := r.Health()
		if h.Storage != nil || len(h.Broken)+len(h.Overrun)+len(h.Stuck) > 0 {
			c.bad("%s: %+v", r.name, h)
		}
	}
}

// complete checks that nothing of what the ledger is to show is missing.
func (c *cluster) complete(sums []sum) {
	troubles := []string{"crash", "crash by a job", "crash of the leader", "partition of a replica", "outage", "outage of hours",
		"night with nobody up", "deploy", "change of the program", "step of a clock"}
	if *long {
		troubles = append(troubles, "outage of a day", "weekend with nobody up")
	}
	for _, name := range troubles {
		if c.troubles[name] == 0 {
			c.bad("there was no %s", name)
		}
	}
	met := map[store.Status][]string{}
	for _, s := range sums {
		for k := range s.outcomes {
			met[k.status] = append(met[k.status], k.reason)
		}
	}
	for status, reasons := range map[store.Status][]string{
		store.Succeeded: {""},
		store.Failed:    {"out of order"},
		store.Stalled:   {"no heartbeat for 1m0s"},
		store.Abandoned: {"its runner died", "stopped"},
		store.Skipped:   {"overlap", "paused", "nothing new"},
		store.Missed:    {"a newer one was due", "past the starting deadline", changed},
	} {
		for _, reason := range reasons {
			if !slices.Contains(met[status], reason) {
				c.bad("no tick is %s: %q", status, reason)
			}
		}
	}
	if *long && !slices.Contains(met[store.Missed], "too many were due") {
		c.bad("there were never too many")
	}
	if c.resumed == 0 || c.here == 0 || c.ledger.accounts[leader].takeovers == 0 {
		c.bad("no import went on, no cache was kept, or no leader was replaced")
	}
	if most := leaderLease + 12*time.Second; c.office.worst > most {
		c.bad("nobody led for %s while somebody could, want at most %s", c.office.worst, most)
	}
}
