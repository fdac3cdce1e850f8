//go:build unix

package local_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

// A child is this test binary, run again to do one of the roles on a directory.
const (
	roleVariable = "LOCAL_TEST_ROLE"
	pathVariable = "LOCAL_TEST_PATH"
)

var roles = map[string]func(d local.Dir) error{
	"count": countForever,
	"boot":  func(local.Dir) error { return errOf(fmt.Println(elapsed.Boot())) },
}

var kills = flag.Int("kills", 12, "how often a process is killed or stopped in TestDirKilledAndStopped: about two seconds each")

func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(local.Dir{Path: os.Getenv(pathVariable)}); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// child is a process that the test has started, and the lines it says.
type child struct {
	cmd   *exec.Cmd
	lines chan string // closed at the end of its output
	once  sync.Once
}

func start(t *testing.T, role, path string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, lines: make(chan string, 1<<16)} // room for all it says: it is not held up by us
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(c.kill)
	return c
}

// kill ends the process at once, and returns when it is gone and all that it
// said is in lines.
func (c *child) kill() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		_, _ = c.cmd.Process.Wait()
	})
}

// countForever adds one to the record in hold after hold, and says when it got
// a lease, until when it may believe in it, what it wrote and when it let go.
func countForever(d local.Dir) error {
	ctx := context.Background()
	for {
		e, err := d.Read(ctx, "app/job")
		if err != nil {
			return err
		}
		id := newID()
		l := d.Lease("app/job", id)
		sent := time.Now()
		_, err = l.Acquire(ctx, local.Shortest, e.ETag)
		if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrChanged) {
			<-time.After(time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println("took", id, time.Now().UnixNano(), sent.Add(local.Shortest).UnixNano())
		n, err := strconv.Atoi(string(e.Record))
		if err != nil {
			return err
		}
		_, err = l.Write(ctx, e.ETag, []byte(strconv.Itoa(n+1)))
		if err == nil {
			fmt.Println("wrote", n+1)
		} else if !errors.Is(err, store.ErrLost) && !errors.Is(err, store.ErrChanged) { // a slow machine, or it was stopped
			return err
		}
		fmt.Println("left", id, time.Now().UnixNano())
		if err := l.Release(ctx); err != nil && !errors.Is(err, store.ErrLost) {
			return err
		}
	}
}

func newID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", rand.Uint32(), rand.Uint64()>>16)
}

// Processes count under the lease while others of them are killed, or stopped for longer than it lasts, at any point. The
// directory is readable at all times, the others go on, no count is lost or given twice, and no two processes may believe at
// once that they hold the lease.
func TestDirKilledAndStopped(t *testing.T) {
	nightly.Only(t, "waits for processes and their leases")
	const processes = 3
	d := local.Dir{Path: t.TempDir()}
	create(t, d, "app/job")
	j := &journal{t: t, holds: make(map[string]*stretch), counts: make(map[int]bool)}
	running := make([]*child, processes)
	for i := range running {
		running[i] = start(t, "count", d.Path)
	}
	watch := watch(t, d)
	for turn := range *kills {
		victim := rand.IntN(processes)
		c := running[victim]
		for range 1 + rand.IntN(12) { // between any two lines, and then some
			line, ok := <-c.lines
			if !ok {
				t.Fatal("a process ended by itself")
			}
			j.note(line)
		}
		<-time.After(rand.N(2 * time.Millisecond))
		if turn%2 == 0 {
			c.kill()
			j.drain(c)
			running[victim] = start(t, "count", d.Path)
			continue
		}
		signal(t, c, syscall.SIGSTOP)
		j.goesOn(running[(victim+1)%processes])
		signal(t, c, syscall.SIGCONT)
	}
	for _, c := range running {
		c.kill()
		j.drain(c)
	}
	last := watch()
	j.check(last, *kills/2+processes)
}

func signal(t *testing.T, c *child, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// goesOn checks that a process works while another one is stopped, perhaps under the lease.
func (j *journal) goesOn(c *child) {
	for len(c.lines) > 0 {
		j.note(<-c.lines)
	}
	late := time.After(2*local.Shortest + 2*time.Second) // the third process may be the next holder
	for range 3 {                                        // the first lines may be of a hold that it had
		select {
		case line := <-c.lines:
			j.note(line)
		case <-late:
			j.t.Fatal("the other process does not go on")
		}
	}
}

// watch reads the record again and again until the returned function is called,
// which tells the last count.
func watch(t *testing.T, d local.Dir) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var last int
	done := make(chan struct{})
	look := func() {
		e, err := d.Read(t.Context(), "app/job")
		n, convErr := strconv.Atoi(string(e.Record))
		if err != nil || convErr != nil || n < last {
			t.Errorf("after %d: got record %q, error %v", last, e.Record, err)
		}
		last = n
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			look()
			<-time.After(time.Millisecond)
		}
	}()
	return func() int {
		cancel()
		<-done
		look()
		return last
	}
}

// stretch is how long a process could believe in its lease.
type stretch struct{ from, to int64 }

// journal is what all the children have said.
type journal struct {
	t      *testing.T
	holds  map[string]*stretch // by lease id
	counts map[int]bool
}

// drain notes what a child said before it died. A hold that it had not left has
// not been released, so it goes on to the end of its lease.
func (j *journal) drain(c *child) {
	for line := range c.lines {
		j.note(line)
	}
}

func (j *journal) note(line string) {
	f := strings.Fields(line)
	number := func(i int) int64 {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			j.t.Fatalf("line %q: %v", line, err)
		}
		return n
	}
	switch {
	case len(f) == 4 && f[0] == "took":
		j.holds[f[1]] = &stretch{number(2), number(3)}
	case len(f) == 3 && f[0] == "left":
		j.holds[f[1]].to = min(j.holds[f[1]].to, number(2))
	case len(f) == 2 && f[0] == "wrote":
		n := int(number(1))
		if j.counts[n] {
			j.t.Errorf("count %d was given twice", n)
		}
		j.counts[n] = true
	default:
		j.t.Errorf("a process said %q", line) // perhaps cut short, if it was killed in a write
	}
}

// check: a write that a dead process could not tell of is in the record all the
// same, one for each death at most.
func (j *journal) check(last, deaths int) {
	if got := len(j.counts); got > last || got < last-deaths {
		j.t.Errorf("%d counts were written and told, the record says %d, with %d deaths", got, last, deaths)
	}
	if len(j.counts) < deaths {
		j.t.Errorf("only %d counts: the test has shown little", len(j.counts))
	}
	var all []*stretch
	for _, s := range j.holds {
		if s.from < s.to {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *stretch) int { return int(a.from - b.from) })
	for i := 1; i < len(all); i++ {
		if all[i].from < all[i-1].to {
			j.t.Errorf("two holders: one from %d to %d, one from %d", all[i-1].from, all[i-1].to, all[i].from)
		}
	}
}

// Two processes go by one clock, whatever their wall clocks say.
func TestBootIsOneForAllProcesses(t *testing.T) {
	boot, id := elapsed.Boot()
	if id == "" {
		t.Skip("the system does not say when the machine started")
	}
	c := start(t, "boot", "")
	defer c.kill()
	length, other, _ := strings.Cut(<-c.lines, " ")
	if there, err := time.ParseDuration(length); err != nil || other != id || there < boot || there > boot+time.Hour {
		t.Errorf("another process has %s %s, %v; here it is %s %s", length, other, err, boot, id)
	}
}
