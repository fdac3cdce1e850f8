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
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

const entry = "app/job"

// A world is a job whose outcomes a test makes, and the store that all replicas share.
type world struct {
	t     *testing.T
	store *local.Memory
	rec   record.Record
	all   []event.Outcome
	every time.Duration // between two runs
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		w := &world{t: t, store: new(local.Memory), every: 20 * time.Second, rec: record.Record{App: "app", Job: "job",
			Created: now, Watermark: now, Token: 1000, Run: record.Run{Status: record.Idle}}}
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
func (w *world) run(status event.Status) event.Event {
	w.t.Helper()
	return w.ends(event.Outcome{Status: status, Attempt: 1})
}

// ends is run with more of the outcome. Without an attempt it is settled without a run. Without a tick it is of now.
func (w *world) ends(o event.Outcome) event.Event {
	w.t.Helper()
	time.Sleep(w.every)
	if o.Tick.IsZero() {
		o.Tick = time.Now().UTC()
	}
	kind := event.Settled
	if o.Attempt > 0 {
		w.rec.Token++
		kind, o.Token, o.Replica, o.Start, o.End = event.Ended, w.rec.Token, "replica", o.Tick, o.Tick.Add(time.Second)
		w.rec.Run = record.Run{Tick: o.Tick, Request: o.Request, Attempt: 1, Status: o.Status, Claimed: o.Tick, Finished: o.End}
	}
	w.rec.History = append([]event.Outcome{o}, w.rec.History...)
	w.keep()
	w.all = append(w.all, o)
	return event.Event{Kind: kind, Time: time.Now(), Job: "job", Run: event.Run{Token: o.Token}, Outcome: o}
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

// holds checks that the history has each outcome once, in order, and gaps before these only.
func (w *world) holds(rec *record.Record, gaps ...int) {
	w.t.Helper()
	lines, err := history.Read(w.t.Context(), w.store, entry, time.Time{}, rec)
	if err != nil || len(lines) != len(w.all) {
		w.t.Errorf("the history has %d outcomes, want %d, %v", len(lines), len(w.all), err)
	}
	for i := range min(len(lines), len(w.all)) {
		if lines[i].Outcome != w.all[i] || lines[i].Gap != slices.Contains(gaps, i) {
			w.t.Errorf("outcome %d: got %+v, want %+v, and gaps before %v", i, lines[i], w.all[i], gaps)
			return
		}
	}
}

// ordered lets the job run so often manually. A replica that is given takes the events.
func (w *world) ordered(n int, r *replica) {
	w.t.Helper()
	for range n {
		e := w.ends(event.Outcome{Status: event.Succeeded, Attempt: 1, Request: fmt.Sprint("request-", len(w.all))})
		if r != nil {
			r.Take(e)
		}
	}
}

var errNetwork = errors.New("the network")

// A way is one replica's way to the store. It counts calls. After a death nothing goes through.
type way struct {
	*local.Memory
	dice  *rand.Rand    // nil: nothing fails by chance
	takes time.Duration // for each call
	fails int           // so many of the next reads of the record

	mu                    sync.Mutex
	dead                  bool
	late                  sync.WaitGroup
	appends, reads, looks int
}

// roll counts a call, and returns a number below n and whether the replica is dead.
func (s *way) roll(calls *int, n int) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*calls++
	if s.dice == nil {
		return 6, s.dead
	}
	return s.dice.IntN(n), s.dead
}

// wait takes the time of a call.
func (s *way) wait(ctx context.Context, d time.Duration) error {
	if s.dice == nil {
		d = s.takes
	}
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *way) Append(ctx context.Context, name string, size int64, b []byte) error {
	n, dead := s.roll(&s.appends, 100)
	switch {
	case dead || n < 2:
		return errNetwork
	case n < 4: // applied, and the answer is lost
		return errors.Join(errNetwork, s.Memory.Append(ctx, name, size, b))
	case n < 6: // applied later
		b = slices.Clone(b)
		s.late.Go(func() {
			time.Sleep(time.Duration(n+1) * 17 * time.Second)
			_ = s.Memory.Append(context.Background(), name, size, b)
		})
		return errNetwork
	}
	if err := s.wait(ctx, time.Duration(n)*100*time.Millisecond); err != nil {
		return err
	}
	s.mu.Lock()
	dead = s.dead
	s.mu.Unlock()
	if dead && n%2 == 0 {
		return errNetwork
	}
	return s.Memory.Append(ctx, name, size, b)
}

func (s *way) Read(ctx context.Context, name string) (store.Entry, error) {
	if err := s.reading(ctx, &s.reads); err != nil {
		return store.Entry{}, err
	}
	if s.fails > 0 {
		s.fails--
		return store.Entry{}, errNetwork
	}
	return s.Memory.Read(ctx, name)
}

func (s *way) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	if err := s.reading(ctx, &s.looks); err != nil {
		return nil, err
	}
	return s.Memory.ReadLog(ctx, name, offset, n)
}

func (s *way) Logs(ctx context.Context, entry string, each func(string, int64) bool) error {
	if err := s.reading(ctx, &s.looks); err != nil {
		return err
	}
	return s.Memory.Logs(ctx, entry, each)
}

// reading takes the time of a call that reads, and fails some, also of living replicas.
func (s *way) reading(ctx context.Context, calls *int) error {
	n, dead := s.roll(calls, 100)
	if err := s.wait(ctx, time.Duration(n)*20*time.Millisecond); err != nil {
		return err
	}
	if dead || n < 4 {
		return errNetwork
	}
	return nil
}

// A replica writes the logs of what it runs.
type replica struct {
	history.Writer
	way    *way
	failed []error
	stop   context.CancelFunc
	done   chan struct{}
}

// replica starts a replica for which nothing fails.
func (w *world) replica() *replica {
	r := w.over(&way{})
	r.Failed = func(job string, err error) { w.t.Errorf("log of %s: %v", job, err) }
	return r.run()
}

// over makes a replica with its way to the store. It notes failures, and is not started yet.
func (w *world) over(s *way) *replica {
	s.Memory = w.store
	r := &replica{way: s, done: make(chan struct{})}
	r.Writer.Store, r.App = s, "app"
	r.Failed = func(_ string, err error) { r.failed = append(r.failed, err) }
	return r
}

// run runs the writer until the replica stops.
func (r *replica) run() *replica {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		defer close(r.done)
		r.Run(ctx)
	}()
	return r
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

// write has a new replica write what the record has, beginning with an outcome.
func (w *world) write(status event.Status) {
	w.t.Helper()
	r := w.replica()
	r.Take(w.run(status))
	time.Sleep(time.Minute)
	r.end()
}
