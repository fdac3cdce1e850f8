//go:build unix

package processes

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// shards of the singleton "feed" are held by the replicas of these tests.
const shards = 16

// hold is a shard's task: it notes in a log, to which all processes append, that it holds the shard.
func (o order) hold(ctx context.Context, run *soloist.Run) error {
	log, err := os.OpenFile(o.Log, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	note := func(what string) { fmt.Fprintln(log, run.Shard, run.Token, o.Name, what) }
	for ctx.Err() == nil {
		note("holds")
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	time.Sleep(200 * time.Millisecond) // the work that is left
	note("ends")
	return ctx.Err()
}

// A sharing is who holds the shards, by the log.
type sharing struct {
	holder map[string]string // of a shard
	twice  []string          // lines of a holder after those of the next one
}

func readSharing(t *testing.T, log string) sharing {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	s, newest := sharing{holder: map[string]string{}}, map[string]int64{}
	for line := range strings.Lines(string(b)) {
		var shard, replica, what string
		var token int64
		if n, _ := fmt.Sscan(line, &shard, &token, &replica, &what); n < 4 {
			continue // it is being written
		}
		switch {
		case token < newest[shard]:
			s.twice = append(s.twice, line)
			continue
		case what == "ends":
			delete(s.holder, shard)
		default:
			s.holder[shard] = replica
		}
		newest[shard] = token
	}
	return s
}

// even reports whether these replicas hold all shards, none of them two more than another.
func (s *sharing) even(names []string) bool {
	held := map[string]int{}
	for _, name := range names {
		held[name] = 0
	}
	for _, replica := range s.holder {
		if _, up := held[replica]; !up {
			return false
		}
		held[replica]++
	}
	counts := slices.Sorted(maps.Values(held))
	return len(s.holder) == shards && counts[len(counts)-1]-counts[0] <= 1
}

// A shardFleet is replicas that hold the shards of a singleton.
type shardFleet struct {
	*fleet
	up      []string
	started int
	took    map[string][]time.Duration // until the spread was even, by what has happened
}

func (f *shardFleet) join(n int) {
	for range n {
		name := fmt.Sprint("replica-", f.started)
		f.started++
		f.start(name, 0)
		f.up = append(f.up, name)
	}
}

// end ends replicas by a signal.
func (f *shardFleet) end(n int, how syscall.Signal) {
	rand.Shuffle(len(f.up), func(i, j int) { f.up[i], f.up[j] = f.up[j], f.up[i] })
	for _, name := range f.up[:n] {
		f.signal(name, how)
	}
	f.up = f.up[n:]
}

// awaitEven waits until the spread is even, and checks how long that took. It then waits for a random
// part of a lease, so that what follows comes at any phase of the renewals and listings.
func (f *shardFleet) awaitEven(after string) {
	f.t.Helper()
	begin, most := time.Now(), limit(2*lease+2*time.Second) // and the start of a process
	for {
		s := readSharing(f.t, f.order.Log)
		if s.even(f.up) {
			break
		}
		if time.Since(begin) > 2*most {
			f.t.Fatalf("after %s, %s later: the shards are held so: %v, of %q", after, ms(time.Since(begin)), s.holder, f.up)
		}
		time.Sleep(100 * time.Millisecond)
	}
	took := time.Since(begin)
	f.t.Logf("even again %s after %s", ms(took), after)
	f.took[after] = append(f.took[after], took)
	if took > most {
		f.t.Errorf("even only %s after %s, want two leases", ms(took), after)
	}
	time.Sleep(time.Duration(rand.Int64N(int64(lease))))
}

// Replicas die, join and leave. The shards are spread evenly within two leases each time, and none
// is ever held twice.
func TestShardsAreSpreadOverProcesses(t *testing.T) {
	t.Parallel()
	f := &shardFleet{fleet: newFleet(t, order{Shards: shards, Grace: 7 * time.Second, Log: filepath.Join(t.TempDir(), "log")}), took: map[string][]time.Duration{}}
	f.join(5)
	f.awaitEven("the start of five")
	for range max(1, *rounds) {
		f.end(2, syscall.SIGKILL)
		f.awaitEven("the death of two")
		f.join(3)
		f.awaitEven("three joined")
		f.end(1, syscall.SIGTERM)
		f.awaitEven("one left")
	}
	for after, took := range f.took {
		sorted := slices.Sorted(slices.Values(took))
		t.Logf("%s: %d times, even after min %s, median %s, max %s", after, len(sorted), ms(sorted[0]), ms(median(sorted)), ms(slices.Max(sorted)))
	}
	if s := readSharing(t, f.order.Log); len(s.twice) > 0 {
		t.Errorf("%d lines of a holder after the next one: %q", len(s.twice), s.twice[0])
	}
}

// The reader of the log finds a shard that two replicas have at once.
func TestLogShowsTwoHolders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		log    string
		twice  int
		holder string
	}{
		"one after the other":  {"3 7 a holds\n3 7 a ends\n3 8 b holds\n", 0, "b"},
		"after a death":        {"3 7 a holds\n3 8 b holds\n", 0, "b"},
		"at once":              {"3 7 a holds\n3 8 b holds\n3 7 a holds\n3 8 b holds\n", 1, "b"},
		"an end that was late": {"3 7 a holds\n3 8 b holds\n3 7 a ends\n", 1, "b"},
		"nobody":               {"3 7 a holds\n3 7 a ends\n3 8", 0, ""},
	} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(tt.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := readSharing(t, log); len(s.twice) != tt.twice || s.holder["3"] != tt.holder {
			t.Errorf("%s: held by %q, %d lines of two holders; want %q and %d", name, s.holder["3"], len(s.twice), tt.holder, tt.twice)
		}
	}
}
