package storetest_test

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// hurried is a clock that runs a quarter too fast.
func hurried() func() time.Time {
	return func() time.Time {
		start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of each bubble
		return start.Add(time.Since(start) * 5 / 4)
	}
}

// creates replaces what is there.
type creates struct{ *local.Memory }

func (s creates) Create(_ context.Context, name string, record []byte) (store.Entry, error) {
	ctx := context.Background()
	e, err := s.Memory.Create(ctx, name, record)
	if errors.Is(err, fs.ErrExist) {
		_ = s.Memory.Break(ctx, name, 0)
		_ = s.Memory.Delete(ctx, name)
		return s.Memory.Create(ctx, name, record)
	}
	return e, err
}

// deaf does what was asked, whatever the context says.
type deaf struct{ *local.Memory }

func (s deaf) Break(ctx context.Context, name string, period time.Duration) error {
	return s.Memory.Break(context.WithoutCancel(ctx), name, period)
}

func (s deaf) BreakUnchanged(ctx context.Context, name, etag string) error {
	return s.Memory.BreakUnchanged(context.WithoutCancel(ctx), name, etag)
}

func (s deaf) Remove(ctx context.Context, name, etag string) error {
	return s.Memory.Remove(context.WithoutCancel(ctx), name, etag)
}

func (s deaf) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return s.Memory.List(context.WithoutCancel(ctx), app, f)
}

func (s deaf) Read(ctx context.Context, name string) (store.Entry, error) {
	return s.Memory.Read(context.WithoutCancel(ctx), name)
}

// tears reads the state of the lease before all else.
type tears struct{ *local.Memory }

func (s tears) Read(ctx context.Context, name string) (store.Entry, error) {
	before, err := s.Memory.Read(ctx, name)
	if err != nil {
		return before, err
	}
	time.Sleep(time.Millisecond)
	e, err := s.Memory.Read(ctx, name)
	e.State = before.State
	return e, err
}

// squeezes leaves one space of several in a row.
type squeezes struct{ *local.Memory }

func (s squeezes) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return s.Memory.Create(ctx, name, repeated.ReplaceAll(record, []byte(" ")))
}

var repeated = regexp.MustCompile("  +")

// measures tells the length of all that an entry holds.
type measures struct{ *local.Memory }

func (s measures) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	e.Checkpoint += int64(len(e.Record))
	return e, err
}

// cuts keeps 64 bytes of each name, as a column of a table may.
type cuts struct{ *local.Memory }

func cut(name string) string { return name[:min(len(name), 64)] }

func (s cuts) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return s.Memory.Create(ctx, cut(name), record)
}

func (s cuts) Read(ctx context.Context, name string) (store.Entry, error) {
	return s.Memory.Read(ctx, cut(name))
}

func (s cuts) Lease(name, id string) store.Lease { return s.Memory.Lease(cut(name), id) }

// firm cannot be broken, but says it can.
type firm struct{ *local.Memory }

func (s firm) Break(context.Context, string, time.Duration) error { return nil }

// marks shows in the ETag what happened to the lease.
type marks struct{ *local.Memory }

func (s marks) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	if e.State != store.Available {
		e.ETag += string(e.State)
	}
	return e, err
}

// vague does not say that an entry is missing.
type vague struct{ *local.Memory }

func blur(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("something went wrong")
	}
	return err
}

func (s vague) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	return e, blur(err)
}

func (s vague) Break(ctx context.Context, name string, period time.Duration) error {
	return blur(s.Memory.Break(ctx, name, period))
}

func (s vague) BreakUnchanged(ctx context.Context, name, etag string) error {
	return blur(s.Memory.BreakUnchanged(ctx, name, etag))
}

func (s vague) Delete(ctx context.Context, name string) error {
	return blur(s.Memory.Delete(ctx, name))
}

func (s vague) Remove(ctx context.Context, name, etag string) error {
	return blur(s.Memory.Remove(ctx, name, etag))
}

// forces deletes what is leased.
type forces struct{ *local.Memory }

func (s forces) Delete(ctx context.Context, name string) error {
	_ = s.Break(ctx, name, 0)
	return s.Memory.Delete(ctx, name)
}

// forcesOut removes what is leased, and what has changed.
type forcesOut struct{ *local.Memory }

func (s forcesOut) Remove(ctx context.Context, name, _ string) error {
	_ = s.Break(ctx, name, 0)
	return s.Memory.Delete(ctx, name)
}

// spares removes nothing that was ever leased.
type spares struct{ *local.Memory }

func (s spares) Remove(ctx context.Context, name, etag string) error {
	if e, err := s.Memory.Read(ctx, name); err == nil && e.State != store.Available {
		return store.ErrLost
	}
	return s.Memory.Remove(ctx, name, etag)
}

// silent does not say what it created.
type silent struct{ *local.Memory }

func (s silent) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	e, err := s.Memory.Create(ctx, name, record)
	e.Record = nil
	return e, err
}

// shortens creates what fits.
type shortens struct{ *local.Memory }

func (s shortens) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return s.Memory.Create(ctx, name, record[:min(len(record), 1000)])
}

// shares keeps the caller's bytes for its own.
type shares struct {
	*mutant
	bytes *sync.Map // by name when created, by ETag when written
}

func newShares() store.Store {
	var kept sync.Map
	return shares{mutate(new(local.Memory), func(ctx context.Context, c *call) (store.Revision, error) {
		r, err := c.run(ctx)
		if err == nil {
			kept.Store(r.ETag, c.record)
		}
		return r, err
	}, "write"), &kept}
}

func (s shares) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	s.bytes.Store(name, record)
	return s.Memory.Create(ctx, name, record)
}

func (s shares) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Memory.Read(ctx, name)
	for _, key := range []string{name, e.ETag} {
		if record, ok := s.bytes.Load(key); ok && len(record.([]byte)) == len(e.Record) {
			e.Record = record.([]byte)
		}
	}
	return e, err
}

// limited has limits of its own.
type limited struct {
	*mutant
	shortest, longest time.Duration
}

func newLimited(shortest, longest time.Duration) store.Store {
	return limited{mutate(new(local.Memory), func(ctx context.Context, c *call) (store.Revision, error) {
		if c.length < shortest || c.length > longest {
			return store.Revision{}, errors.New("no such length")
		}
		return c.run(ctx)
	}, "acquire"), shortest, longest}
}

func (s limited) Limits() (shortest, longest time.Duration) { return s.shortest, s.longest }

// half has a conditional break and no other.
type half struct {
	store.Store
	store.ConditionalBreaker
}

// breaksAny asks for no ETag.
type breaksAny struct{ *local.Memory }

func (s breaksAny) BreakUnchanged(ctx context.Context, name, _ string) error {
	return s.Break(ctx, name, 0)
}

// breaksNone says that it did.
type breaksNone struct{ *local.Memory }

func (breaksNone) BreakUnchanged(context.Context, string, string) error { return nil }

// comparesFirst looks at the ETag, and then breaks the lease of whatever is there.
type comparesFirst struct{ *local.Memory }

func (s comparesFirst) BreakUnchanged(ctx context.Context, name, etag string) error {
	if e, err := s.Read(ctx, name); err != nil || e.ETag != etag {
		return s.Memory.BreakUnchanged(ctx, name, etag)
	}
	time.Sleep(time.Millisecond)
	return s.Break(ctx, name, 0)
}

// breaksLive refuses what has ended by itself or by an earlier break.
type breaksLive struct{ *local.Memory }

func (s breaksLive) BreakUnchanged(ctx context.Context, name, etag string) error {
	if e, err := s.Read(ctx, name); err == nil && e.ETag == etag && !e.State.Live() {
		return store.ErrLost
	}
	return s.Memory.BreakUnchanged(ctx, name, etag)
}
