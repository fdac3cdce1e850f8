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
	"github.com/soloist-go/soloist/internal/azurite"
)

var (
	kills        = flag.Int("kills", 10, "how often replicas over a directory are killed")
	azuriteKills = flag.Int("azurite-kills", 0, "how often replicas over Azurite are killed: 15 s or more each")
	seed         = flag.Uint64("seed", rand.Uint64N(1_000_000), "when they are killed, and what else is random")
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8") // the replicas wait nearly all the time
	os.Exit(inScratch(m.Run))
}

func inScratch(run func() int) int {
	dir, err := os.MkdirTemp("", "soloist-ingest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return run()
}

// Two worlds at once: what is waited for is mostly the end of a lease.
const worlds = 2

func TestKilledOverADirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("starts replicas as processes and kills them: run it without -short")
	}
	t.Parallel()
	for i := range worlds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			killAtRandom(t, "dir:"+t.TempDir(), time.Second, share(*kills, i), *seed+uint64(i))
		})
	}
}

func TestKilledOverAzurite(t *testing.T) {
	if *azuriteKills == 0 {
		t.Skip("-azurite-kills says how often; 10 take two minutes")
	}
	t.Parallel()
	storage := azurite.Start(t).ConnectionString()
	t.Run("worlds", func(t *testing.T) {
		for i := range worlds {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				killAtRandom(t, storage, 15*time.Second, share(*azuriteKills, i), *seed+uint64(worlds+i))
			})
		}
	})
}

func share(n, world int) int { return (n + world) / worlds }

// killAtRandom has two replicas carry pages, which become ever more, and kills
// them so often. Then nothing may be lost, doubled, out of date or gone back.
func killAtRandom(t *testing.T, storage string, lease time.Duration, kills int, world uint64) {
	t.Logf("again, more or less, with -seed %d", *seed)
	random := rand.New(rand.NewPCG(world, 0))
	l := newLedger(t, world, lease, sink{}, nil)
	f := newFleet(t, program(t, mistake{}), 2, l, storage, fmt.Sprintf("proof-%d", world))
	begin := time.Now()
	stop := l.publishing(world)
	defer stop()
	hits := map[string]int{}
	var last int64 // of the runs that were killed
	for range kills {
		pause := time.Duration(random.Int64N(int64(300 * time.Millisecond)))
		if random.IntN(4) > 0 {
			await(t, "a new run", 3*lease+20*time.Second, func() bool {
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
			victim, runs = random.IntN(len(f.procs)), false
		}
		hits[l.strike(runs || both)]++
		f.kill(victim)
		if both {
			f.kill(1 - victim)
			f.start(1 - victim)
		}
		if runs || both {
			last = newest
		}
		f.start(victim)
	}
	stop()
	await(t, "the last page", 3*lease+time.Minute, l.drained)
	f.stop()
	l.close()
	report(t, l, f, kills, hits, time.Since(begin))
	for _, fault := range l.faults() {
		t.Error(fault)
	}
}

func report(t *testing.T, l *ledger, f *fleet, kills int, hits map[string]int, took time.Duration) {
	t.Logf("%d kills in %s, %d pages: %d applied, %d put again and known, %d refused as stale; %d runs, %d attempts at most at one tick",
		kills, took.Round(100*time.Millisecond), l.published, l.count(applied), l.count(again), l.count(refused), len(f.runners), f.tries)
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
		job     mistake
		sink    sink
		moment  moment
		outcome string // of the request
		want    string
	}{
		{"in the get", mistake{}, sink{}, atSource, "", ""},
		{"in the put, which gets lost", mistake{}, sink{}, beforeCommit, never, ""},
		{"in the put, which comes late", mistake{}, sink{}, beforeCommit, late, ""},
		{"after the put, before its answer", mistake{}, sink{}, beforeAnswer, "", ""},

		// What each part is for: without it, the same moment does harm.
		{"saved before put", savesFirst, sink{}, beforeCommit, never, "page 5 is lost"},
		{"no checkpoint", neverLoads, sink{}, beforeCommit, never, "the position went back from 5 to 1"},
		{"a sink that forgets its pages", mistake{}, sink{forgets: true}, beforeAnswer, "", "page 5 is applied 2 times"},
		{"a fence alone keeps off a late put", mistake{}, sink{forgets: true}, beforeCommit, late, ""},
		{"neither", mistake{}, sink{forgets: true, unfenced: true}, beforeCommit, late,
			"page 5 is applied by a stale run\npage 5 is applied 2 times"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
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
			f := newFleet(t, program(t, test.job), 1, l, "dir:"+t.TempDir(), "proof")
			select {
			case <-reached:
			case <-time.After(time.Minute):
				t.Fatal("page 5 did not come")
			}
			f.kill(0)
			f.start(0)
			if test.outcome == late {
				await(t, "the next page", time.Minute, func() bool { return l.count(applied) > 5 })
			}
			release()
			await(t, "the last page", time.Minute, l.drained)
			f.stop()
			l.close()
			if got := strings.Join(l.faults(), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
