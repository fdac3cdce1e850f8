package postgres_test

import (
	"flag"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var (
	fromFlag  = flag.Uint64("from", 1, "the first seed")
	seedsFlag = flag.Uint64("seeds", 2, "how many clusters of each kind to simulate")
)

var clusters atomic.Int64

// The kinds of clusters, as in the tests of package sim.
var (
	usual  = sim.Config{Length: 20 * time.Minute}
	atZero = sim.Config{Length: 2 * time.Hour, Zero: true}
	single = sim.Config{Length: 2 * time.Minute, Single: true, NoFaultPlan: true, NetworkFaults: []draw.NetworkFault{}}
)

// The clusters of package sim, over the real server in virtual time, have all the properties that its judge demands.
func TestSimulation(t *testing.T) {
	kinds := map[string]sim.Config{"usual": usual, "zero": atZero, "single": single}
	if testing.Short() {
		kinds = map[string]sim.Config{"usual": usual}
	}
	url := start(t)
	for kind, c := range kinds {
		for n := range *seedsFlag {
			c.Seed = *fromFlag + n
			t.Run(fmt.Sprint(kind, c.Seed), func(t *testing.T) {
				t.Parallel()
				l := simulate(t, url, c, mistake{})
				for _, v := range judge.Judge(l) {
					t.Error(v)
				}
				for _, e := range l.Events {
					if e.Status == http.StatusBadRequest { // none of the contract's errors
						t.Error(e.Time, e.Op, e.Job, e.Code)
					}
				}
			})
		}
	}
}

// Mistakes that a few clusters find, as the suite of a store does.
var fatal = []mistake{
	{"create", "DO NOTHING", "DO UPDATE SET record = excluded.record"},
	{"acquire", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"acquire", "id = j.lease::uuid, length", "id = coalesce(e.id, j.lease::uuid), length"},
	{"renew", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN lease::uuid IS NULL THEN 'lost'"},
	{"renew", "ends = j.clock + e.length", "ends = e.ends"},
	{"write", "WHEN id IS DISTINCT FROM lease::uuid THEN 'lost'", "WHEN id <> lease::uuid AND false THEN 'lost'"},
	{"write", "WHEN NOT live THEN 'lost'", ""},
	{"save", "checkpoint = j.checkpoint", "checkpoint = e.checkpoint"},
	{"acquireWrite", "WHEN etag::text <> was THEN 'changed'", "WHEN was = '' THEN 'changed'"},
	{"acquireWrite", "etag = gen_random_uuid(), ", ""},
	{"writeRelease", "WHEN NOT live THEN 'lost'", ""},
	{"writeRelease", "etag = gen_random_uuid(), ", ""},
	{"writeRelease", "id = NULL, ends = '-infinity'", "ends = e.ends"},
	{"writeDocument", "etag = gen_random_uuid(), ", ""},
}

// Each mistake can be made, and one of few clusters then has not all the properties.
func TestMistakesInSimulation(t *testing.T) {
	const most = 10
	url := ""
	if *mistakesFlag {
		url = start(t)
	}
	for _, m := range fatal {
		if !open(t, postgres.Config{URL: "host=/nowhere"}).Plant(m.statement, m.text, m.with) {
			t.Errorf("%s: no %q, or more than one", m.statement, m.text)
		}
		if !*mistakesFlag {
			continue // it takes minutes
		}
		t.Run(m.statement+": "+m.with, func(t *testing.T) {
			t.Parallel()
			c := usual
			for c.Seed = 1; c.Seed <= most; c.Seed++ {
				if bad := judge.Judge(simulate(t, url, c, m)); len(bad) > 0 {
					t.Logf("seed %d: %v", c.Seed, bad[0])
					return
				}
			}
			t.Errorf("%d clusters have all properties", most)
		})
	}
}

// simulate runs a cluster in a schema of its own, over statements of which one may have a mistake.
func simulate(t *testing.T, url string, c sim.Config, m mistake) (l *trace.Log) {
	schema := fmt.Sprint("sim", clusters.Add(1))
	synctest.Test(t, func(t *testing.T) {
		s := virtual(t, url, schema)
		if m.text != "" && !s.Plant(m.statement, m.text, m.with) {
			t.Fatal("it cannot be planted")
		}
		c.Store = s
		l = sim.Simulate(c)
	})
	return l
}
