//go:build unix

package processes

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
)

var increments = flag.Int("increments", 200, "how far processes count in TestCounterUnderLockLosesNothing; one is killed in each 250")

// counters is how many processes count.
const counters = 8

// Each increment reads the number, adds one, writes a file beside it and renames that: two at a time
// would lose one. The processes are killed at random moments, and a holder's death costs a lease.
func TestCounterUnderLockLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCounter(t, order{Program: counts, Increments: *increments})
	kills := max(1, *increments/250)
	begin, holders := time.Now(), 0
	for i := range kills {
		c.await(t, (i+1)**increments/(kills+1)+rand.IntN(20))
		proctest.Pause(t.Context(), time.Duration(rand.IntN(100))*time.Millisecond) // not always in the middle of an increment
		victim := fmt.Sprint("c", rand.IntN(counters))
		c.fleet.Replica(victim).Kill() // or it has counted to the end
		killed := time.Now()
		c.fleet.start(victim, 0)
		c.await(t, c.number(t)+1)
		if time.Since(killed) > lease/2 {
			holders++
		}
	}
	c.await(t, *increments)
	for i := range counters {
		if _, code := c.fleet.exit(fmt.Sprint("c", i)); code != 0 {
			t.Errorf("c%d exits with %d", i, code)
		}
	}
	lines, share := c.read(t), map[string]int{}
	for i, l := range lines {
		if share[l.replica]++; i > 0 && (l.number <= lines[i-1].number || l.token <= lines[i-1].token) {
			t.Errorf("%+v follows %+v", l, lines[i-1])
		}
	}
	// A process that dies between the two files leaves a number without its line.
	if last := c.number(t); last < len(lines) || last > len(lines)+kills {
		t.Errorf("%d increments have returned, and the counter is %d after %d kills", len(lines), last, kills)
	}
	t.Logf("counted to %d in %s, %d kills, %d of them of a holder, %d lines: %v", c.number(t), ms(time.Since(begin)), kills, holders, len(lines), share)
}

// Without the lock the same processes lose increments: the test above can fail.
func TestCounterWithoutLockLosesIncrements(t *testing.T) {
	t.Parallel()
	c := newCounter(t, order{Program: counts, Increments: 1_000_000, Unlocked: true}) // more than one process can do before the next begins
	proctest.Poll(t, "an increment that is lost", patience, func() bool {
		seen := map[int]bool{}
		for _, l := range c.read(t) {
			if seen[l.number] {
				return true
			}
			seen[l.number] = true
		}
		return false
	})
}

// A counter is a number in a file, and a log of the increments that have returned.
type counter struct {
	fleet *fleet
	file  string
}

// A line is one increment.
type line struct {
	number  int
	token   int64
	replica string
}

func newCounter(t *testing.T, o order) *counter {
	t.Helper()
	o.File = filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(o.File, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &counter{fleet: newFleet(t, o), file: o.File}
	for i := range counters {
		c.fleet.start(fmt.Sprint("c", i), 0)
	}
	return c
}

// await waits until the counter has come to n.
func (c *counter) await(t *testing.T, n int) {
	t.Helper()
	long := patience + time.Duration(*increments)*200*time.Millisecond
	proctest.Poll(t, fmt.Sprint("a counter of ", n), long, func() bool { return c.number(t) >= min(n, *increments) })
}

func (c *counter) number(t *testing.T) int {
	t.Helper()
	n, err := readNumber(c.file)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// read returns the increments in the order of the log.
func (c *counter) read(t *testing.T) (all []line) {
	t.Helper()
	b, err := os.ReadFile(c.file + ".log")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(b)) {
		var l line
		if _, err := fmt.Sscan(text, &l.number, &l.token, &l.replica); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

// count increments the counter until it is where it should be.
func (o order) count() error {
	backend, err := o.storage()
	if err != nil {
		return err
	}
	lock := &soloist.Lock{Name: "counter", Store: backend, App: os.Getenv("SOLOIST_APP"), Lease: lease, Replica: o.Name,
		Logger: slog.New(slog.NewJSONHandler(os.Stdout, nil))}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	for n := 0; n < o.Increments; {
		one := func(_ context.Context, run *soloist.Run) (err error) {
			n, err = o.increment(run.Token)
			return err
		}
		if o.Unlocked {
			err = one(ctx, &soloist.Run{})
		} else {
			err = lock.Do(ctx, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// increment adds one, and returns where the counter is. It leaves a counter alone that is where it
// should be.
func (o order) increment(token int64) (int, error) {
	n, err := readNumber(o.File)
	if err != nil || n >= o.Increments {
		return n, err
	}
	beside := o.File + "." + o.Name
	if err := os.WriteFile(beside, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return n, err
	}
	if err := os.Rename(beside, o.File); err != nil {
		return n, err
	}
	return n + 1, appendLine(o.File+".log", fmt.Sprintln(n+1, token, o.Name))
}

func readNumber(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b))
}

// appendLine appends in one call, which no other process can come between.
func appendLine(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
