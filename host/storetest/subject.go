package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// first is the record that a subject is created with.
const first = `{"n":0}`

// subject is an entry of its own for one test, with two ids that want it.
type subject struct {
	*check
	store store.Store // the instance that sees it
	name  string
	own   store.Lease
	rest  store.Lease // of the other id
	etag  string      // of the last write that the test knows of
}

// newName returns a name that was never used.
func newName() string { return "storetest/t" + strings.ToLower(rand.Text()) }

// newApp is the name of an app that was never used.
func newApp() string { return strings.Replace(newName(), "/", "-", 1) }

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (c *check) subject() *subject {
	s := &subject{check: c, store: c.store, name: newApp() + "/job"}
	e, err := c.store.Create(c.ctx, s.name, []byte(first))
	c.must("create", err)
	s.etag, s.own, s.rest = e.ETag, s.lease(), s.lease()
	return s
}

// leased returns a subject that own has leased.
func (c *check) leased() *subject {
	s := c.subject()
	s.acquire(s.own, s.longest())
	return s
}

// saved returns a subject that own has leased, with a checkpoint.
func (c *check) saved() *subject {
	s := c.leased()
	c.must("save", s.keep(s.own, "checkpoint"))
	return s
}

// expired returns a subject whose lease under own has run out.
func (c *check) expired() *subject {
	s := c.subject()
	s.expire()
	return s
}

// lease returns a lease under a new id.
func (s *subject) lease() store.Lease { return s.store.Lease(s.name, newID()) }

func (s *subject) read() store.Entry {
	e, err := s.store.Read(s.ctx, s.name)
	s.must("read", err)
	return e
}

func (s *subject) shortest() time.Duration {
	d, _ := s.store.Limits()
	return d
}

func (s *subject) longest() time.Duration {
	_, d := s.store.Limits()
	return d
}

// acquire leases the entry, which has to succeed, and returns when it was sent.
func (s *subject) acquire(l store.Lease, d time.Duration) (sent time.Time) {
	sent = time.Now()
	s.must("acquire", errOf(l.Acquire(s.ctx, d, s.etag)))
	return sent
}

// breakLease asks for what a LeaseBreaker has to take: whole seconds up to a minute,
// none, or fewer than none.
func (s *subject) breakLease(period time.Duration) error {
	if period > 0 {
		period = min(max(period.Truncate(time.Second), time.Second), time.Minute)
	}
	return s.store.(store.LeaseBreaker).Break(s.ctx, s.name, period)
}

// breakUnchanged breaks the lease if the entry still has an ETag.
func (s *subject) breakUnchanged(etag string) error {
	return s.store.(store.ConditionalBreaker).BreakUnchanged(s.ctx, s.name, etag)
}

// write checks the outcome of a write under the ETag that the test knows of.
func (s *subject) write(what string, l store.Lease, want error) {
	stamp, err := l.Write(s.ctx, s.etag, []byte(`{"by":"`+what+`"}`))
	s.want(what, err, want)
	if err == nil {
		s.etag = stamp.ETag
	}
}

// keep saves a checkpoint, with the first record.
func (s *subject) keep(l store.Lease, checkpoint string) error {
	stamp, err := l.(store.Checkpointer).Save(s.ctx, s.etag, []byte(first), []byte(checkpoint))
	if err == nil {
		s.etag = stamp.ETag
	}
	return err
}

func (s *subject) load(l store.Lease) (string, error) {
	checkpoint, err := l.(store.Checkpointer).Load(s.ctx, s.etag)
	return string(checkpoint), err
}

func (s *subject) renew(what string, l store.Lease, want error) {
	s.want(what, errOf(l.Renew(s.ctx)), want)
}

func (s *subject) release(what string, l store.Lease, want error) {
	s.want(what, l.Release(s.ctx), want)
}

func (s *subject) state(what string, want store.LeaseState) {
	if got := s.read().State; got != want {
		s.errorf("state %s: got %q, want %q", what, got, want)
	}
}

// await looks until the lease is in the wanted state. Services may be late.
func (s *subject) await(want store.LeaseState) {
	limit := time.Now().Add(s.longest() + 2*time.Minute)
	for {
		got := s.read().State
		if got == want {
			return
		}
		if time.Now().After(limit) || !s.pause() {
			s.fatalf("the lease is still %q after all its time, want %q", got, want)
		}
	}
}

// stays looks until an instant, before which the lease has to be in a state. A
// look that ended later shows nothing.
func (s *subject) stays(want store.LeaseState, until time.Time) {
	for time.Now().Before(until) {
		got := s.read().State
		if now := time.Now(); got != want && now.Before(until) {
			s.fatalf("the lease is %q %v before its time is up, want %q", got, until.Sub(now), want)
		}
		if !s.pause() {
			s.fatalf("out of time")
		}
	}
}

// expire leases the entry under own and waits until that has run out.
func (s *subject) expire() {
	s.acquire(s.own, s.shortest())
	s.await(store.Expired)
}

// ended returns a context that is over.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// pairs is what one instance sees of another: all that it has done, at once.
var pairs = []property{
	{"Twins/lease", twins, func(c *check) {
		near, far := c.pair()
		near.acquire(near.own, near.longest())
		far.state("leased by the other instance", store.Leased)
		c.want("acquire beside the other instance", errOf(far.own.Acquire(c.ctx, far.longest(), far.etag)), store.ErrHeld)
		near.release("release", near.own, nil)
		far.acquire(far.own, far.longest())
		near.state("leased by the other instance", store.Leased)
		near.write("write under the lease of the other instance", near.own, store.ErrLost)
	}},
}

// pair returns one entry as two instances see it, each with an id of its own.
// Both have read it, so a cache has it.
func (c *check) pair() (near, far *subject) {
	near = c.subject()
	far = &subject{check: c, store: c.other, name: near.name, etag: near.etag}
	far.own = far.lease()
	near.read()
	far.read()
	return near, far
}
