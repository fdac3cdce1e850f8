package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

const entry = "app/job"

// A world is a job whose outcomes a test makes, and the store that all replicas share.
type world struct {
	t     *testing.T
	store *local.Memory
	rec   store.Record
	all   []store.Outcome
	every time.Duration // between two runs
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		w := &world{t: t, store: new(local.Memory), every: 20 * time.Second, rec: store.Record{App: "app", Job: "job", Created: now, Watermark: now, Token: 1000, Run: store.Run{Status: store.Idle}}}
		b, err := w.rec.Encode()
		if err == nil {
			_, err = w.store.Create(t.Context(), entry, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

// run lets the job run once, some time after the last time, and returns the event.
func (w *world) run(status store.Status) event.Event {
	w.t.Helper()
	return w.ends(store.Outcome{Status: status, Attempt: 1})
}

// ends is run with more of the outcome. Without an attempt it is settled without a run.
func (w *world) ends(o store.Outcome) event.Event {
	w.t.Helper()
	time.Sleep(w.every)
	o.Tick = time.Now().UTC()
	kind := event.Settled
	if o.Attempt > 0 {
		w.rec.Token++
		kind, o.Token, o.Replica, o.Start, o.End = event.Ended, w.rec.Token, "replica", o.Tick, o.Tick.Add(time.Second)
		w.rec.Run = store.Run{Tick: o.Tick, Request: o.Request, Attempt: 1, Status: o.Status, Claimed: o.Tick, Finished: o.End}
	}
	w.rec.History = append([]store.Outcome{o}, w.rec.History...)
	w.keep()
	w.all = append(w.all, o)
	return event.Event{Kind: kind, Job: "job", Run: event.Run{Token: o.Token}, Outcome: o}
}

// keep writes the record.
func (w *world) keep() {
	w.t.Helper()
	b, err := w.rec.Encode()
	e, _ := w.store.Read(w.t.Context(), entry)
	l := w.store.Lease(entry, "0a1b2c3d-0000-4000-8000-000000000000")
	if err == nil {
		_, err = l.Acquire(w.t.Context(), time.Minute, e.ETag)
	}
	if err == nil {
		_, err = l.Write(w.t.Context(), e.ETag, b)
	}
	if err = errors.Join(err, l.Release(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
}

// holds checks that the history has each outcome once, in order, and no gap.
func (w *world) holds(rec *store.Record) {
	w.t.Helper()
	lines, err := history.Read(w.t.Context(), w.store, entry, time.Time{}, rec)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(lines) != len(w.all) {
		w.t.Errorf("the history has %d outcomes, want %d", len(lines), len(w.all))
	}
	for i := range min(len(lines), len(w.all)) {
		if lines[i].Outcome != w.all[i] || lines[i].Gap {
			w.t.Errorf("outcome %d: got %+v, want %+v", i, lines[i], w.all[i])
			return
		}
	}
}

// A faulty store is one replica's way to the store. After a death nothing goes through.
type faulty struct {
	*local.Memory
	dice *rand.Rand // nil: nothing fails
	mu   sync.Mutex
	dead bool
	late sync.WaitGroup
}

var errNetwork = errors.New("the network")

func (f *faulty) roll(n int) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dice == nil {
		return 6, f.dead
	}
	return f.dice.IntN(n), f.dead
}

func (f *faulty) Append(ctx context.Context, name string, size int64, b []byte) error {
	n, dead := f.roll(100)
	switch {
	case dead || n < 2:
		return errNetwork
	case n < 4: // applied, and the answer is lost
		return errors.Join(errNetwork, f.Memory.Append(ctx, name, size, b))
	case n < 6: // applied later
		b = slices.Clone(b)
		f.late.Go(func() {
			time.Sleep(time.Duration(n+1) * 17 * time.Second)
			_ = f.Memory.Append(context.Background(), name, size, b)
		})
		return errNetwork
	}
	time.Sleep(time.Duration(n) * 100 * time.Millisecond)
	if _, dead := f.roll(1); dead && n%2 == 0 {
		return errNetwork
	}
	return f.Memory.Append(ctx, name, size, b)
}

func (f *faulty) Read(ctx context.Context, name string) (store.Entry, error) {
	if err := f.reading(); err != nil {
		return store.Entry{}, err
	}
	return f.Memory.Read(ctx, name)
}

func (f *faulty) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	if err := f.reading(); err != nil {
		return nil, err
	}
	return f.Memory.ReadLog(ctx, name, offset, n)
}

func (f *faulty) Logs(ctx context.Context, entry string, each func(string, int64) bool) error {
	if err := f.reading(); err != nil {
		return err
	}
	return f.Memory.Logs(ctx, entry, each)
}

// reading takes the time of a call that reads, and fails some, also of living replicas.
func (f *faulty) reading() error {
	n, dead := f.roll(100)
	if time.Sleep(time.Duration(n) * 20 * time.Millisecond); dead || n < 4 {
		return errNetwork
	}
	return nil
}

// A replica writes the logs of what it runs.
type replica struct {
	history.Writer
	way  *faulty
	stop context.CancelFunc
	done chan struct{}
}

// replica starts a replica; nothing fails for one without dice.
func (w *world) replica(dice *rand.Rand) *replica {
	r := &replica{way: &faulty{Memory: w.store, dice: dice}, done: make(chan struct{})}
	r.Failed = func(job string, err error) {
		if dice == nil {
			w.t.Errorf("log of %s: %v", job, err)
		}
	}
	r.Writer.Store, r.Writer.App = r.way, "app"
	r.run(&r.Writer)
	return r
}

// run runs a writer until r stops.
func (r *replica) run(w *history.Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		defer close(r.done)
		w.Run(ctx)
	}()
}

// kill ends a replica as kill -9 does; end lets it end by itself.
func (r *replica) kill() {
	r.way.mu.Lock()
	r.way.dead = true
	r.way.mu.Unlock()
	r.end()
}

func (r *replica) end() {
	r.stop()
	<-r.done
	r.way.late.Wait()
}

// Replicas die at any instant, calls and answers get lost and calls arrive late: the log
// has each of thousands of outcomes once.
func TestKilledWritersLeaveEachOutcomeOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		dice := rand.New(rand.NewPCG(1, 2))
		seeded := func(seed int) *replica { return w.replica(rand.New(rand.NewPCG(uint64(seed), 1))) }
		replicas := []*replica{seeded(1), seeded(2), seeded(3)}
		now, kills, runs := 0, 0, 1000
		if nightly.Runs() {
			runs = 10000
		}
		for i := range runs {
			if dice.IntN(8) == 0 {
				now = dice.IntN(len(replicas))
			}
			replicas[now].Take(w.run(store.Succeeded))
			if dice.IntN(30) == 0 {
				time.Sleep(time.Duration(dice.IntN(5000)) * time.Millisecond)
				victim := dice.IntN(len(replicas))
				replicas[victim].kill()
				replicas[victim] = seeded(i + 10)
				kills++
			}
			if i%500 == 0 {
				w.holds(&w.rec)
			}
		}
		for range 30 { // the last ones mend what the dead have left
			replicas[0].Take(w.run(store.Succeeded))
		}
		for _, r := range replicas {
			r.end()
		}
		last := w.replica(nil)
		last.Take(w.run(store.Succeeded))
		time.Sleep(time.Minute)
		last.end()
		w.holds(nil)
		t.Logf("%d outcomes, %d kills", len(w.all), kills)
	})
}

// What came while no replica wrote, and is not in the record any more, is a gap.
func TestGapIsShown(t *testing.T) {
	inWorld(t, func(w *world) {
		write := func() {
			r := w.replica(nil)
			r.Take(w.run(store.Failed))
			time.Sleep(time.Minute)
			r.end()
		}
		write()
		for range 18 { // these are in the record still
			w.run(store.Succeeded)
		}
		write()
		w.holds(nil)
		for range 60 { // and of these some are not
			w.run(store.Succeeded)
		}
		write()
		lost := 60 + 1 - len(w.rec.History)
		lines, err := history.Read(w.t.Context(), w.store, entry, time.Time{}, &w.rec)
		var gaps []int
		for i, l := range lines {
			if l.Gap {
				gaps = append(gaps, i)
			}
		}
		if err != nil || lost < 20 || len(lines) != len(w.all)-lost || !slices.Equal(gaps, []int{20}) {
			t.Errorf("got %d of %d outcomes, gaps at %d, %v", len(lines), len(w.all), gaps, err)
		}
	})
}

// An append creates the blob first. A writer that ended between the two has left an empty
// log, before which nothing can have been lost.
func TestEmptyLogIsNoGap(t *testing.T) {
	inWorld(t, func(w *world) {
		broken := &creating{Memory: w.store}
		r := w.replica(nil)
		r.end()
		r.Writer.Store, r.done = broken, make(chan struct{})
		var failed []error
		r.Failed = func(_ string, err error) { failed = append(failed, err) }
		r.run(&r.Writer)
		r.Take(w.run(store.Succeeded))
		time.Sleep(time.Second)
		synctest.Wait()
		if len(failed) != 1 || broken.empty == "" {
			t.Fatalf("got %v, want one append that ended half way", failed)
		}
		if lines, err := history.Read(t.Context(), broken, entry, time.Time{}, &w.rec); err != nil || len(lines) != 1 || lines[0].Gap {
			t.Errorf("read with the record: %+v, %v, want one outcome and no gap", lines, err)
		}
		time.Sleep(2 * time.Minute)
		r.end()
		w.holds(nil)
	})
}

// creating is a store whose first append creates a log and gets no further.
type creating struct {
	*local.Memory
	empty string
}

func (c *creating) Append(ctx context.Context, name string, size int64, b []byte) error {
	if c.empty == "" {
		c.empty = name
		return errNetwork
	}
	return c.Memory.Append(ctx, name, size, b)
}

func (c *creating) Logs(ctx context.Context, entry string, f func(string, int64) bool) error {
	some := false
	err := c.Memory.Logs(ctx, entry, func(name string, size int64) bool {
		some = true
		return f(name, size)
	})
	if !some && c.empty != "" {
		f(c.empty, 0)
	}
	return err
}

func (c *creating) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	if name == c.empty && n == 0 {
		return nil, nil
	}
	return c.Memory.ReadLog(ctx, name, offset, n)
}

// Outcomes are written in batches: ten runs of a job that runs each twenty seconds cost
// one append and one read, whichever of the replicas they ran on.
func TestBatches(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint(replicas, " replicas"), func(t *testing.T) {
			inWorld(t, func(w *world) {
				counts := &counting{Memory: w.store}
				var all []*history.Writer
				ctx, cancel := context.WithCancel(w.t.Context())
				var done sync.WaitGroup
				for range replicas {
					one := &history.Writer{Store: counts, App: "app"}
					done.Go(func() { one.Run(ctx) })
					all = append(all, one)
				}
				const runs = 600
				for i := range runs {
					all[i/7%replicas].Take(w.run(store.Succeeded))
				}
				cancel()
				done.Wait()
				w.holds(nil)
				most := map[int]int{1: runs/10 + 3, 3: runs/10*2 + 6}[replicas]
				if counts.appends > most || counts.reads > 2*most {
					t.Errorf("%d runs: %d appends, %d reads, want at most %d and %d", runs, counts.appends, counts.reads, most, 2*most)
				}
				t.Logf("%d runs: %d appends, %d reads, %d looks", runs, counts.appends, counts.reads, counts.looks)
			})
		})
	}
}

// counting counts calls.
type counting struct {
	*local.Memory
	mu                    sync.Mutex
	appends, reads, looks int
}

func (c *counting) add(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

func (c *counting) Append(ctx context.Context, name string, size int64, b []byte) error {
	c.add(&c.appends)
	return c.Memory.Append(ctx, name, size, b)
}

func (c *counting) Read(ctx context.Context, name string) (store.Entry, error) {
	c.add(&c.reads)
	return c.Memory.Read(ctx, name)
}

func (c *counting) Logs(ctx context.Context, entry string, f func(string, int64) bool) error {
	c.add(&c.looks)
	return c.Memory.Logs(ctx, entry, f)
}

func (c *counting) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	c.add(&c.looks)
	return c.Memory.ReadLog(ctx, name, offset, n)
}

// A rare outcome is written within the hour.
func TestOutcomeIsWrittenWithinAnHour(t *testing.T) {
	inWorld(t, func(w *world) {
		one := &history.Writer{Store: w.store, App: "app"}
		ctx, cancel := context.WithCancel(w.t.Context())
		var done sync.WaitGroup
		done.Go(func() { one.Run(ctx) })
		for range 2 { // the first is written at once
			one.Take(w.run(store.Succeeded))
		}
		time.Sleep(time.Hour + time.Minute)
		w.holds(nil)
		cancel()
		done.Wait()
	})
}
