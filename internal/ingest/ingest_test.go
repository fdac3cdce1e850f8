//go:build unix

// Package ingest proves the example job of that name, in jobs: replicas of the
// program, as real processes, carry pages while they are killed without notice.
//
//	go test ./internal/ingest -v -kills 200 -azurite-kills 10
package ingest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/soloist-go/soloist/host" // the program is made of it: when it changes, no result of before counts
	"github.com/soloist-go/soloist/internal/proctest"
)

var (
	each         = flag.Bool("each", false, "run each case of TestKilledAtAMoment, also those of a program with a mistake")
	kills        = flag.Int("kills", 4, "how often replicas over a directory are killed")
	azuriteKills = flag.Int("azurite-kills", 0, "how often replicas over Azurite are killed: 15 s or more each")
	seed         = flag.Uint64("seed", rand.Uint64N(1_000_000), "when they are killed, and what else is random")
)

func TestMain(m *testing.M) {
	code := proctest.Run(m, 8)
	os.RemoveAll(programs)
	os.Exit(code)
}

// programs is the directory of the program that all tests share; empty: none has needed it.
var programs string

// program builds the program of jobs as it is, once.
var program = sync.OnceValues(func() (_ string, err error) {
	if programs, err = os.MkdirTemp("", "ingest-*"); err != nil {
		return "", err
	}
	return proctest.BuildIn(programs, "jobs", false)
})

// built builds the program of jobs with a mistake, or without one.
func built(t *testing.T, mistake []proctest.Edit) string {
	t.Helper()
	if mistake != nil {
		return proctest.Build(t, "jobs", false, mistake...)
	}
	p, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Two worlds at once: what is waited for is mostly the end of a lease.
const worlds = 2

func TestKilledOverADirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("starts replicas as processes and kills them: run it without -short")
	}
	t.Parallel()
	killInWorlds(t, func(t testing.TB) proctest.Storage { return proctest.Directory(t.TempDir()) }, *kills, *seed)
}

func TestKilledOverAzurite(t *testing.T) {
	if *azuriteKills == 0 {
		t.Skip("-azurite-kills says how often; 10 take two minutes")
	}
	t.Parallel()
	killInWorlds(t, proctest.Azurite, *azuriteKills, *seed+worlds)
}

// killInWorlds shares the kills among the worlds.
func killInWorlds(t *testing.T, open func(testing.TB) proctest.Storage, kills int, seed uint64) {
	for i := range worlds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			killAtRandom(t, open(t), (kills+i)/worlds, seed+uint64(i))
		})
	}
}

// killAtRandom has two replicas carry pages, which become ever more, and kills
// them so often. Then nothing may be lost, doubled, out of date or gone back.
func killAtRandom(t *testing.T, storage proctest.Storage, kills int, world uint64) {
	t.Logf("again, more or less, with -seed %d", *seed)
	random := rand.New(rand.NewPCG(world, 0))
	lease := storage.Lease
	l := newLedger(t, world, lease, sink{}, nil)
	f := newFleet(t, built(t, nil), 2, l, storage)
	begin := time.Now()
	stop := l.publishing(world)
	defer stop()
	hits := map[string]int{}
	var last int64 // of the runs that were killed
	for range kills {
		pause := time.Duration(random.Int64N(int64(300 * time.Millisecond)))
		if random.IntN(4) > 0 {
			proctest.Poll(t, "a new run", 3*lease+20*time.Second, func() bool {
				_, alive := f.runner(l.newest())
				return l.newest() > last && alive
			})
		} else {
			pause = time.Duration(random.Int64N(int64(2 * lease)))
		}
		time.Sleep(pause)
		newest := l.newest()
		victim, runs := f.runner(newest)
		both := random.IntN(10) == 0
		if !runs || random.IntN(10) == 0 {
			victim, runs = names[random.IntN(2)], false
		}
		hits[l.strike(runs || both)]++
		f.Replica(victim).Kill()
		if other := names[1-slices.Index(names, victim)]; both {
			f.Replica(other).Kill()
			f.start(other)
		}
		if runs || both {
			last = newest
		}
		f.start(victim)
	}
	stop()
	proctest.Poll(t, "the last page", 3*lease+time.Minute, l.drained)
	f.stop()
	l.close()
	report(t, l, f, kills, hits, time.Since(begin))
	for _, fault := range l.faults() {
		t.Error(fault)
	}
}

func report(t *testing.T, l *ledger, f *fleet, kills int, hits map[string]int, took time.Duration) {
	runs, tries := 0, 0
	for _, e := range f.Events() {
		if ran(e) {
			runs, tries = runs+1, max(tries, e.Attempt)
		}
	}
	t.Logf("%d kills in %s, %d pages: %d applied, %d put again and known, %d refused as stale; %d runs, %d attempts at most at one tick",
		kills, took.Round(100*time.Millisecond), l.published, l.count(applied), l.count(again), l.count(refused), runs, tries)
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(hits)) {
		parts = append(parts, fmt.Sprintf("%s: %d", phase, hits[phase]))
	}
	t.Logf("killed at %s", strings.Join(parts, ", "))
}

// Each row kills the program once, at a moment in the life of page 5.
func TestKilledAtAMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("starts replicas as processes and kills them: run it without -short")
	}
	t.Parallel()
	const never, late = "the request gets lost", "the request comes after the next run has put the page"
	tests := []struct {
		name    string
		job     []proctest.Edit
		sink    sink
		moment  moment
		outcome string // of the request
		want    string
	}{
		{"in the get", nil, sink{}, atSource, "", ""},
		{"in the put, which gets lost", nil, sink{}, beforeCommit, never, ""},
		{"in the put, which comes late", nil, sink{}, beforeCommit, late, ""},
		{"after the put, before its answer", nil, sink{}, beforeAnswer, "", ""},

		// What each part is for: without it, the same moment does harm.
		{"saved before put", savesFirst, sink{}, beforeCommit, never, "page 5 is lost"},
		{"no checkpoint", neverLoads, sink{}, beforeCommit, never, "the position went back from 5 to 1"},
		{"a sink that forgets its pages", nil, sink{forgets: true}, beforeAnswer, "", "page 5 is applied 2 times"},
		{"a fence alone keeps off a late put", nil, sink{forgets: true}, beforeCommit, late, ""},
		{"neither", nil, sink{forgets: true, unfenced: true}, beforeCommit, late,
			"page 5 is applied by a stale run\npage 5 is applied 2 times"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.job != nil && !*each {
				t.Skip("builds a program with a mistake: run it with -each")
			}
			reached, goOn := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(goOn) })
			defer release()
			var once atomic.Bool
			l := newLedger(t, 0, time.Second, test.sink, func(m moment, page int) (drop bool) {
				if m != test.moment || page != 5 || once.Swap(true) {
					return false
				}
				close(reached)
				<-goOn
				return test.outcome == never
			})
			l.publish(10)
			f := newFleet(t, built(t, test.job), 1, l, proctest.Directory(t.TempDir()))
			select {
			case <-reached:
			case <-time.After(time.Minute):
				t.Fatal("page 5 did not come")
			}
			f.Replica(names[0]).Kill()
			f.start(names[0])
			if test.outcome == late {
				proctest.Poll(t, "the next page", time.Minute, func() bool { return l.count(applied) > 5 })
			}
			release()
			proctest.Poll(t, "the last page", time.Minute, l.drained)
			f.stop()
			l.close()
			if got := strings.Join(l.faults(), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
