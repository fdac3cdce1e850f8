package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

const (
	// Every is how often a replica reads the document. It is the cost of orders (17,280 reads a
	// day for each replica) against how long a person waits for one.
	Every = 5 * time.Second

	// Fresh is how old the last successful read may be when a run starts. So a pause binds
	// Fresh after it was written, however the calls of a replica fail.
	Fresh = Every + CallTimeout
)

// A Watch is what one replica knows of the orders. A nil Watch knows none: the store keeps no
// documents.
type Watch struct {
	Client  *Client
	Changed func() // called after each read that has shown something new

	turn chan struct{} // has room for one reader; a channel, since who waits for it may give up
	hint chan struct{} // has room for one hint

	mu    sync.Mutex
	doc   record.Control
	etag  string
	known bool          // doc was read
	good  call          // the last successful read
	ended Moment        // when the last read ended
	tried time.Duration // elapsed: the same
	err   error         // of that read; nil: it succeeded
	now   Moment
	users int    // of the goroutine that reads
	quit  func() // ends that goroutine, and waits for it
}

// A Moment is a place among the begins and ends of a watch's reads. Elapsed time would not tell
// which of two was first, where a clock shows the same for both.
type Moment int

// A call says when a read was sent.
type call struct {
	at   Moment
	sent time.Duration // elapsed
}

// NewWatch returns a watch that reads nothing before it is asked to.
func NewWatch(c *Client, changed func()) *Watch {
	return &Watch{Client: c, Changed: changed, turn: make(chan struct{}, 1), hint: make(chan struct{}, 1)}
}

// Job returns what is in force for a job, as far as it is known.
func (w *Watch) Job(name string) record.JobControl {
	if w == nil {
		return record.JobControl{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.doc.Jobs[name]
}

// Stale returns why no run may start by what is known: it was read too long ago. The order of
// an operator may be newer. It is asked again just before a run begins, since a claim may take
// long.
func (w *Watch) Stale() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fresh() {
		return nil
	}
	return fmt.Errorf("the orders of operators cannot be read, so nothing starts: %w", w.err)
}

// fresh reports whether what is known is not too old for a run to start. The caller holds mu.
func (w *Watch) fresh() bool { return w.known && w.Client.Clock.Elapsed()-w.good.sent <= Fresh }

// Refresh reads the document if what is known is too old, and returns what Stale does then. In
// an outage it makes one call a second at most, however many jobs ask.
func (w *Watch) Refresh(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.readUnless(ctx, func() bool { return w.fresh() || w.err != nil && w.Client.Clock.Elapsed()-w.tried < Again })
	return w.Stale()
}

// Again is how soon a read is repeated that has failed.
const Again = Every / 5

// Now returns the present moment.
func (w *Watch) Now() Moment {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Read reads the document, unless that was done since a moment. The callers of one call share a
// read. It returns whether what is known was read since then.
func (w *Watch) Read(ctx context.Context, since Moment) (known bool) {
	if w == nil {
		return true
	}
	// A read that has failed since then would fail again.
	w.readUnless(ctx, func() bool { return w.good.at > since || w.err != nil && w.ended > since })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.good.at > since
}

// Awake reads the document if what is known is too old although no read has failed: the
// machine was suspended. In an outage it makes no call.
func (w *Watch) Awake(ctx context.Context) {
	if w != nil {
		w.readUnless(ctx, func() bool { return w.fresh() || w.err != nil })
	}
}

// readUnless reads the document unless enough says, with mu held, that there is no need, also after the reads
// of others that it has waited for.
func (w *Watch) readUnless(ctx context.Context, enough func() bool) {
	w.mu.Lock()
	done := enough()
	w.mu.Unlock()
	if done {
		return
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return
	}
	w.mu.Lock()
	if enough() {
		w.mu.Unlock()
		return
	}
	w.now++
	c, etag := call{w.now, w.Client.Clock.Elapsed()}, w.etag
	w.mu.Unlock()
	doc, etag, err := w.Client.read(ctx, etag)
	if w.take(doc, etag, c, err) {
		w.Changed()
	}
}

// take keeps what a read has shown, and reports whether that is new.
func (w *Watch) take(doc record.Control, etag string, c call, err error) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now++
	w.err, w.ended, w.tried = err, w.now, w.Client.Clock.Elapsed()
	switch {
	case errors.Is(err, store.ErrUnchanged):
		w.good, w.err = c, nil
	case err == nil:
		changed = etag != w.etag
		w.doc, w.etag, w.good, w.known = doc, etag, c, true
	}
	return changed
}

// Order writes an order, and returns it with its number and time; see Client.order. Then the
// watch knows the document as it was written. It reads the document only where what it knows is
// too old, or another order came in between.
func (w *Watch) Order(ctx context.Context, o record.Order, r *record.Record) (record.Order, error) {
	known := w.Stale() == nil
	w.mu.Lock()
	w.now++
	c, v := call{w.now, w.Client.Clock.Elapsed()}, version{doc: w.doc, etag: w.etag}
	v.doc.Jobs = maps.Clone(v.doc.Jobs) // Apply changes it
	w.mu.Unlock()
	o, err := w.Client.order(ctx, o, r, &v, known)
	if err == nil && !w.follow(ctx, &v, c) {
		w.Read(ctx, w.Now())
	}
	return o, err
}

// follow keeps a version that was written by a call if it has replaced the one that is known, and
// reports whether it has. It waits for a read that is under way, since the answer may be older.
func (w *Watch) follow(ctx context.Context, v *version, c call) bool {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return false
	}
	w.mu.Lock()
	if w.good.at > c.at { // that read has shown what v has replaced
		c = w.good
	}
	ok := w.known && v.written && v.etag != "" && v.base == w.etag
	w.mu.Unlock()
	if ok && w.take(v.doc, v.etag, c, nil) {
		w.Changed()
	}
	return ok
}

// Use has the document read, every few seconds, until done is called: several callers share the goroutine that
// reads. Calls of done wait for its end, so that nothing goes on after the last of them.
func (w *Watch) Use() (done func()) {
	if w == nil {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users++; w.users == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() {
			defer close(over)
			w.loop(ctx)
		}()
		w.quit = func() { cancel(); <-over }
	}
	return sync.OnceFunc(w.leave)
}

// Hint has the document read soon, since it may have changed. Any goroutine may call it, also on nil.
func (w *Watch) Hint() {
	if w == nil {
		return
	}
	select {
	case w.hint <- struct{}{}:
	default:
	}
}

// leave ends the goroutine that reads, with the last of its users.
func (w *Watch) leave() {
	w.mu.Lock()
	w.users--
	quit := w.quit
	last := w.users == 0
	w.mu.Unlock()
	if last {
		quit()
	}
}

// loop reads each time that Every has passed since the last successful read was sent. It does
// not read at once: a step that has something to decide does. After a failure it waits as long:
// such a step tries again before that.
func (w *Watch) loop(ctx context.Context) {
	for wait := Again; ctx.Err() == nil; wait = w.rest() {
		if lease.Sleep(ctx, wait); ctx.Err() != nil {
			return
		}
		hinted := false
		for left := Every; left > 0 && !hinted && ctx.Err() == nil; {
			w.mu.Lock()
			left = w.left()
			w.mu.Unlock()
			hinted = w.nap(ctx, left)
		}
		w.readUnless(ctx, func() bool { return !hinted && w.left() > 0 })
		if hinted {
			lease.Sleep(ctx, hintPace)
		}
	}
}

// hintPace is the least time between two reads that hints have caused.
const hintPace = 250 * time.Millisecond

// nap returns after d, or when ctx ends, or when a hint comes: then it returns true.
func (w *Watch) nap(ctx context.Context, d time.Duration) (hinted bool) {
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.hint:
		return true
	case <-ctx.Done():
	}
	return false
}

// rest returns how long the loop waits after a read that has failed. After one that has
// succeeded left says when the next one is due.
func (w *Watch) rest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return Every
	}
	return 0
}

// left returns how long it is until the next read. It counts from when the last one was sent:
// what an answer shows may be as old as that. The caller holds mu.
func (w *Watch) left() time.Duration {
	if !w.known {
		return 0
	}
	return Every - (w.Client.Clock.Elapsed() - w.good.sent)
}
