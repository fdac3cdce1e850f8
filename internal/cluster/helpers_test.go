package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// wantRuns checks how many calls of Do there were.
func (c *cluster) wantRuns(want int) {
	c.t.Helper()
	if got := c.all(); len(got) != want {
		c.t.Errorf("%d runs, want %d: %+v", len(got), want, got)
	}
}

// wantInTime checks that no run began later than late after its tick.
func (c *cluster) wantInTime(late time.Duration) {
	c.t.Helper()
	for _, r := range c.all() {
		if got := r.start.Sub(r.Tick); got > late {
			c.t.Errorf("tick %s started %s late", r.Tick.Format(time.TimeOnly), got)
		}
	}
}

// wantOutcomes checks the history of a job: these outcomes and no others, oldest first.
func (c *cluster) wantOutcomes(job string, want ...string) {
	c.t.Helper()
	if got := c.outcomes(job); !slices.Equal(got, want) {
		c.t.Errorf("outcomes of %s:\ngot  %q\nwant %q", job, got, want)
	}
}

// wantAllSucceeded checks that each outcome of the job "work" is a success.
func (c *cluster) wantAllSucceeded() {
	c.t.Helper()
	for _, outcome := range c.outcomes("work") {
		if !strings.HasPrefix(outcome, "succeeded") {
			c.t.Errorf("got %s", outcome)
		}
	}
}

// outcomes returns the history of a job as text, oldest first: "succeeded
// 00:00:10", "missed 00:00:20-00:00:50 (4) reason".
func (c *cluster) outcomes(job string) []string {
	c.t.Helper()
	var out []string
	for _, f := range c.record(job).History {
		out = append([]string{outcomeText(f)}, out...)
	}
	return out
}

func outcomeText(f event.Outcome) string {
	b := &bytes.Buffer{}
	b.WriteString(string(f.Status) + " ")
	if !f.From.IsZero() {
		b.WriteString(f.From.Format("15:04:05") + "-")
	}
	b.WriteString(f.Tick.Format("15:04:05"))
	if f.Reason != "" {
		b.WriteString(" " + f.Reason)
	}
	return b.String()
}

// wantLines checks how many lines of a replica's log contain all of parts.
func (r *replica) wantLines(want int, parts ...string) {
	r.tap.t.Helper()
	if got := r.log.lines(parts...); len(got) != want {
		r.tap.t.Errorf("%s logs %q %d times, want %d: %q", r.Replica, parts, len(got), want, got)
	}
}

// wantWell checks that a replica's health tells of no trouble.
func (r *replica) wantWell() {
	r.tap.t.Helper()
	if h := r.Health(); h.Storage != nil || len(h.Broken) > 0 {
		r.tap.t.Errorf("health of %s: %+v", r.Replica, h)
	}
}

// wantError checks that there is an error that contains all of parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want %q", err, parts)
			return
		}
	}
}

// number reads a number with commas.
func number(t *testing.T, text string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

// ok checks that there is no error.
func (c *cluster) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

// once checks that each tick ran once, and returns how many ran.
func once(t *testing.T, runs []ran) int {
	t.Helper()
	seen := map[time.Time]int{}
	for _, r := range runs {
		if seen[r.Tick]++; seen[r.Tick] > 1 {
			t.Errorf("tick %s ran %d times", r.Tick, seen[r.Tick])
		}
	}
	return len(seen)
}

// afterTheFirst leaves out what came due in the first two seconds: the first claim
// of an entry waits for its token meanwhile.
func afterTheFirst(runs []ran) []ran {
	begin := time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC)
	return slices.DeleteFunc(runs, func(r ran) bool { return !r.Tick.After(begin) })
}

// succession returns the runs, which have to be n, one after the other.
func (c *cluster) succession(n int) []ran {
	c.t.Helper()
	runs := c.all()
	if len(runs) != n {
		c.t.Fatalf("%d runs, want %d: %+v", len(runs), n, runs)
	}
	disjoint(c.t, runs)
	for i := 1; i < n; i++ {
		if runs[i-1].end.Equal(runs[i].start) {
			c.t.Errorf("run %d begins at the instant at which the one before ends: %s", i+1, runs[i].start)
		}
	}
	return runs
}

// successor checks that there are two runs, one after the other, and how long after since the second one began.
func (c *cluster) successor(since time.Time, least, most time.Duration) (first, next ran) {
	c.t.Helper()
	runs := c.succession(2)
	if took := runs[1].start.Sub(since); took < least || took > most {
		c.t.Errorf("%s follows after %s, want %s to %s", runs[1].replica, took, least, most)
	}
	return runs[0], runs[1]
}

// disjoint checks that no two terms overlap and that tokens grow.
func disjoint(t *testing.T, runs []ran) {
	t.Helper()
	for i := 1; i < len(runs); i++ {
		if runs[i-1].end.IsZero() || runs[i-1].end.After(runs[i].start) {
			t.Errorf("term %d ends at %s, the next begins at %s", i, runs[i-1].end, runs[i].start)
		}
		if runs[i].Token <= runs[i-1].Token {
			t.Errorf("token %d after %d", runs[i].Token, runs[i-1].Token)
		}
	}
}

// A logBook keeps what a replica logs.
type logBook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines returns the lines that contain all of parts.
func (l *logBook) lines(parts ...string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.b.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}

// finishBy is a job whose runs have to have succeeded so long after their tick.
func finishBy(d time.Duration, job soloist.Job) soloist.Job {
	job.Late.Finish = d
	return job
}

var errLate = errors.New("boom")

// failsAt fails at these hours, or at all if none is named.
func failsAt(hours ...int) func(context.Context, *soloist.Run) error {
	return func(_ context.Context, run *soloist.Run) error {
		if len(hours) == 0 || slices.Contains(hours, run.Tick.Hour()) {
			return errLate
		}
		return nil
	}
}

// locked returns a lock of that name with the lease of these tests, as a replica sees it.
func (r *replica) locked(name string) *soloist.Lock {
	l := r.Lock(name)
	l.Lease = D
	return l
}

// guard returns the lock of these tests, as a replica sees it.
func (r *replica) guard() *soloist.Lock { return r.locked("guard") }

// pool returns the same lock with slots.
func (r *replica) pool(slots int) *soloist.Lock {
	l := r.guard()
	l.Slots = slots
	return l
}

// guardEntry is the entry of its first slot.
const guardEntry = "soloist/0-lock-guard"

// A doer is a method that takes a lock.
type doer = func(*soloist.Lock, context.Context, function) error

var doers = map[string]doer{"Do": (*soloist.Lock).Do, "TryDo": (*soloist.Lock).TryDo}

// meanwhile calls f in the background. The end of the test waits for it.
func (c *cluster) meanwhile(f func()) {
	var over sync.WaitGroup
	over.Go(f)
	c.t.Cleanup(over.Wait)
}

// hold holds a lock for d, or until the context of its function ends. The test sees it as a run of
// that replica.
func (c *cluster) hold(ctx context.Context, r *replica, l *soloist.Lock, d time.Duration) error {
	return l.Do(ctx, c.watch(r.Replica, func(ctx context.Context, _ *soloist.Run) error {
		if pause(ctx, d) != nil {
			return context.Cause(ctx)
		}
		return nil
	}))
}

// held has a replica hold a lock for d in the background, and returns once it does.
func (c *cluster) held(r *replica, l *soloist.Lock, d time.Duration) (end <-chan error) {
	begun, done := make(chan struct{}), make(chan error, 1)
	c.meanwhile(func() {
		done <- l.Do(c.t.Context(), c.watch(r.Replica, func(ctx context.Context, _ *soloist.Run) error {
			close(begun)
			return pause(ctx, d)
		}))
	})
	<-begun
	return done
}

// breakGuard ends the lease of the lock at once.
func (c *cluster) breakGuard() {
	c.t.Helper()
	c.ok(c.store.Break(context.Background(), guardEntry, 0))
}

// A slowLog calls block before it writes a line whose message contains the text. Block holds no mutex, which would stop
// virtual time.
type slowLog struct {
	slog.Handler
	text  string
	block func()
}

func (l slowLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, l.text) {
		l.block()
	}
	return l.Handler.Handle(ctx, r)
}

func (l slowLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slowLog{l.Handler.WithAttrs(attrs), l.text, l.block}
}

// blocked makes a replica whose log blocks at lines with text until release.
func (c *cluster) blocked(text string, work ...soloist.Work) (r *replica, release func()) {
	r = c.replica("a", work...)
	open := make(chan struct{})
	r.Logger = slog.New(slowLog{r.Logger.Handler(), text, func() { <-open }})
	return r, func() { close(open) }
}

// A function does the work.
type function = func(context.Context, *soloist.Run) error

// migration returns work that a replica is to do once for a key. The test sees it as a run.
func (c *cluster) migration(r *replica, key string, do function) *soloist.Once {
	o := &soloist.Once{Name: "migrate", Key: key, Lease: D, Do: c.watch(r.Replica, do)}
	r.Bind(o)
	return o
}

// migrate has replicas do work once for a key, all at the same time, and returns their errors.
func (c *cluster) migrate(ctx context.Context, key string, retry soloist.Retry, do function, replicas ...*replica) []error {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour) // work that is never done would be waited for for ever
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(replicas))
	for i, r := range replicas {
		o := c.migration(r, key, do)
		o.Retry = retry
		all.Go(func() { errs[i] = o.Run(ctx) })
	}
	all.Wait()
	return errs
}

// migrated is migrate without an error.
func (c *cluster) migrated(key string, retry soloist.Retry, do function, replicas ...*replica) {
	c.t.Helper()
	c.ok(errors.Join(c.migrate(c.t.Context(), key, retry, do, replicas...)...))
}

// replicas makes some that are not started.
func (c *cluster) replicas(names ...string) (all []*replica) {
	for _, name := range names {
		all = append(all, c.replica(name))
	}
	return all
}

func taking(d time.Duration) function {
	return func(ctx context.Context, _ *soloist.Run) error { return pause(ctx, d) }
}

// meeting returns what ends with each of errs in turn, and succeeds then.
func meeting(errs ...error) function {
	return func(context.Context, *soloist.Run) error {
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

// onlyEntry returns the name of the only entry of an app.
func (c *cluster) onlyEntry(app string) string {
	c.t.Helper()
	var names []string
	err := c.store.List(context.Background(), app, func(name string, _ store.Entry) bool {
		names = append(names, strings.TrimPrefix(name, app+"/"))
		return true
	})
	if err != nil || len(names) != 1 {
		c.t.Fatalf("the entries %q, %v", names, err)
	}
	return names[0]
}

// order gives an order for the job "work" at a desk: by a program that runs nothing.
func (c *cluster) order(o soloist.Order, work ...soloist.Work) soloist.Order {
	c.t.Helper()
	if o.Job == "" {
		o.Job = "work"
	}
	o.By = "anna"
	got, err := c.replica("desk", work...).Order(c.t.Context(), o)
	if err != nil {
		c.t.Errorf("%s: %v", o.Kind, err)
	}
	return got
}

// orders gives an order for the job "work" that says no more than what to do.
func (r *replica) orders(kind soloist.OrderKind) error {
	_, err := r.Order(r.tap.t.Context(), soloist.Order{Kind: kind, Job: "work"})
	return err
}

// writeOrders writes the first document of orders.
func (c *cluster) writeOrders(text string) {
	c.t.Helper()
	if _, err := c.store.WriteDocument(c.t.Context(), record.ControlName("soloist"), "", []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// newest returns the newest outcome of the job "work".
func (c *cluster) newest() event.Outcome {
	c.t.Helper()
	h := c.record("work").History
	if len(h) == 0 {
		c.t.Error("there is no outcome")
		return event.Outcome{}
	}
	return h[0]
}

// wantOnce checks that a request has run once.
func (c *cluster) wantOnce(request string) {
	c.t.Helper()
	if n := c.count(func(r ran) bool { return r.Request == request }); n != 1 {
		c.t.Errorf("%s ran %d times", request, n)
	}
}

// runNow has a replica run the job "work" for the request x.
func (r *replica) runNow() (event.Outcome, error) {
	return r.RunNow(r.tap.t.Context(), "work", "x")
}

// runsNow begins a manual run of the job "work", which goes on until the channel is closed.
func (r *replica) runsNow(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		r.RunNow(ctx, "work", "x") // its outcome is asked for by others
	}()
	return done
}

// wantOutcome checks what a call of RunNow returned.
func wantOutcome(t *testing.T, got event.Outcome, err error, status event.Status, reason string) {
	t.Helper()
	if err != nil || got.Status != status || got.Reason != reason {
		t.Errorf("got %s %q, %v, want %s %q", got.Status, got.Reason, err, status, reason)
	}
}

// occupy holds the lease of a job, as a tool does that knows nothing of records,
// until free is called.
func (c *cluster) occupy(job string) (free func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	lease := c.store.Lease("soloist/"+job, "0a1b2c3d-0000-4000-8000-000000000000")
	entry, err := c.store.Read(ctx, "soloist/"+job)
	if err == nil {
		_, err = lease.Acquire(ctx, time.Minute, entry.ETag)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for pause(ctx, 20*time.Second) == nil {
			_, _ = lease.Renew(ctx)
		}
	})
	return func() {
		cancel()
		all.Wait()
		_ = lease.Release(context.Background())
	}
}

// occupiedBy is what a replica's status says of the holder of its first job's lease.
func occupiedBy(r *replica) error {
	all, err := r.Status(r.tap.t.Context())
	return errors.Join(all[0].Occupied, all[0].Err, err)
}

// faraway makes each call take as long as it does within a region. Two calls
// then never meet at one instant, where the order of goroutines would decide.
func faraway(seed uint64) func(op string, apply func() error) error {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 0))
	leg := func() {
		mu.Lock()
		d := 2*time.Millisecond + time.Duration(dice.Int64N(int64(8*time.Millisecond)))
		mu.Unlock()
		time.Sleep(d)
	}
	return func(_ string, apply func() error) error {
		leg()
		defer leg()
		return apply()
	}
}

// A lister counts listings, reads and creations; err ends each listing after so many entries, and errHangs none.
type lister struct {
	*local.Memory
	err                   error
	after                 int
	lists, reads, creates atomic.Int64
}

func (l *lister) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	l.creates.Add(1)
	return l.Memory.Create(ctx, name, record)
}

func (l *lister) calls() string {
	return fmt.Sprintf("%d listings, %d reads, %d creations", l.lists.Load(), l.reads.Load(), l.creates.Load())
}

func (l *lister) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	l.lists.Add(1)
	if l.err == errHangs {
		<-ctx.Done()
		return ctx.Err()
	}
	told := 0
	err := l.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		told++
		return (l.err == nil || told <= l.after) && f(name, e)
	})
	return errors.Join(l.err, err)
}

var errHangs = errors.New("no listing is answered")

func (l *lister) Read(ctx context.Context, name string) (store.Entry, error) {
	l.reads.Add(1)
	return l.Memory.Read(ctx, name)
}

// An overrunLog keeps the calls of Overrun.
type overrunLog struct {
	mu    sync.Mutex
	calls []overrunCall
}

type overrunCall struct {
	job   string
	cause error
	at    time.Time
}

func (l *overrunLog) add(job string, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, overrunCall{job, cause, time.Now()})
}

func (l *overrunLog) all() []overrunCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// readPage reads a page, which is named from the root of the repository.
func readPage(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func allMatches(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}
