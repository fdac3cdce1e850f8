package states_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// name is that of the one entry.
const name = "app/job"

// A keeper is a store beside the blob that its entry should be like.
type keeper struct {
	blob
	store breakable
	t     *rapid.T
}

type breakable interface {
	store.Store
	store.LeaseBreaker
	store.ConditionalBreaker
}

// stores are all of them, by a clock that is given.
func stores(t *testing.T) map[string]func(now func() time.Time) store.Store {
	return map[string]func(now func() time.Time) store.Store{
		"memory": func(now func() time.Time) store.Store { return &local.Memory{Now: now} },
		"dir":    func(now func() time.Time) store.Store { return local.Dir{Path: t.TempDir(), Now: now} },
		"azure": func(now func() time.Time) store.Store {
			s, err := azure.Open(azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sig=x", Transport: &blobtest.Blob{Now: now}})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

// kept runs a store through its actions.
func kept(tab table, open func(now func() time.Time) store.Store) func(*rapid.T) {
	return func(t *rapid.T) {
		k := &keeper{t: t, blob: newBlob(tab)}
		k.store = open(func() time.Time { return k.now }).(breakable)
		k.create(t)
		t.Repeat(map[string]func(*rapid.T){
			"": k.check, "time": k.time, "create": k.create, "acquire": k.acquire, "renew": k.renew,
			"write": k.write, "load": k.load, "release": k.release, "break": k.end, "break unchanged": k.endUnchanged,
		})
	}
}

func TestStores(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			if name == "dir" { // each call of it syncs a file
				set(t, "rapid.checks", "30")
			}
			rapid.Check(t, kept(parse(documented), open))
		})
	}
}

// judge checks the error of a try, and applies it to the blob. The refusal of
// the table is that one, of an ETag ErrChanged; where both are due, either.
func (k *keeper) judge(t try, holds bool, refusal, err error) (done bool) {
	k.t.Helper()
	var want []error
	c := k.expect(t)
	switch {
	case !k.exists:
		want = append(want, fs.ErrNotExist)
	case c.status > 0:
		want = append(want, refusal)
	}
	if !holds {
		want = append(want, store.ErrChanged)
	}
	if len(want) == 0 && err == nil {
		k.apply(t, c, t.id)
		return true
	}
	if err == nil || !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		k.t.Fatalf("%+v (%s) while %s: got %v, want one of %v", t, k.row(t), k.state, err, want)
	}
	return false
}

// stamped checks that an answer tells the ETag.
func (k *keeper) stamped(stamp store.Revision) {
	k.t.Helper()
	if stamp.ETag != k.etag {
		k.t.Fatalf("got the ETag %q, want %q", stamp.ETag, k.etag)
	}
}

func (k *keeper) check(*rapid.T) {
	k.t.Helper()
	e, err := k.store.Read(context.Background(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	if e.ETag != k.etag || string(e.Record) != k.record || string(e.State) != k.state || e.Date.Sub(k.now).Abs() >= time.Second {
		k.t.Fatalf("got %q with %s, %s at %s, want %q with %s, %s at %s", e.Record, e.ETag, e.State, e.Date, k.record, k.etag, k.state, k.now)
	}
}

func (k *keeper) time(t *rapid.T) { k.pass(pause(t, &k.blob)) }

// lease draws a lease id, and an ETag that is that of the entry or not.
func (k *keeper) lease(t *rapid.T) (l store.Lease, id, etag string, holds bool) {
	id, etag, holds = k.blob.drawID(t, "id"), k.etag, true
	if rapid.IntRange(0, 7).Draw(t, "other ETag") == 0 {
		etag, holds = `"0x1"`, false
	}
	return k.store.Lease(name, id), id, etag, holds
}

func (k *keeper) create(t *rapid.T) {
	record := rapid.StringMatching(`[A-Z]{1,4}`).Draw(t, "record")
	e, err := k.store.Create(context.Background(), name, []byte(record))
	if k.exists {
		if !errors.Is(err, fs.ErrExist) {
			t.Fatalf("create: got %v, want ErrExist", err)
		}
		return
	}
	if err != nil || string(e.Record) != record || e.State != store.Available {
		t.Fatalf("create: got %+v, %v", e, err)
	}
	k.exists, k.record = true, record
	k.written(t, e.ETag)
}

func (k *keeper) acquire(t *rapid.T) {
	l, id, etag, holds := k.lease(t)
	one := try{op: "acquire", id: id, span: time.Duration(rapid.IntRange(15, 60).Draw(t, "span")) * time.Second}
	stamp, err := l.Acquire(context.Background(), one.span, etag)
	if k.judge(one, holds, store.ErrHeld, err) {
		k.stamped(stamp)
	}
}

func (k *keeper) renew(t *rapid.T) {
	l, id, _, _ := k.lease(t)
	stamp, err := l.Renew(context.Background())
	if k.judge(try{op: "renew", id: id}, true, store.ErrLost, err) {
		k.stamped(stamp)
	}
}

// write replaces the record, or the checkpoint with it.
func (k *keeper) write(t *rapid.T) {
	l, id, etag, holds := k.lease(t)
	record, body := rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "record"), k.body
	var stamp store.Revision
	var err error
	if rapid.Bool().Draw(t, "save") {
		body = rapid.String().Draw(t, "checkpoint")
		stamp, err = l.(store.Checkpointer).Save(context.Background(), etag, []byte(record), []byte(body))
	} else {
		stamp, err = l.Write(context.Background(), etag, []byte(record))
	}
	if k.judge(try{op: "write", id: id}, holds, store.ErrLost, err) {
		k.record, k.body = record, body
		k.written(t, stamp.ETag)
	}
}

func (k *keeper) load(t *rapid.T) {
	l, id, etag, holds := k.lease(t)
	body, err := l.(store.Checkpointer).Load(context.Background(), etag)
	if k.judge(try{op: "read", id: id}, holds, store.ErrLost, err) && string(body) != k.body {
		t.Fatalf("load: got %q, want %q", body, k.body)
	}
}

func (k *keeper) release(t *rapid.T) {
	l, id, _, _ := k.lease(t)
	k.judge(try{op: "release", id: id}, true, store.ErrLost, l.Release(context.Background()))
}

func (k *keeper) end(t *rapid.T) {
	period := time.Duration(rapid.SampledFrom([]int{-1, 0, 1, 10, 60}).Draw(t, "period")) * time.Second
	k.judge(try{op: "break", period: period}, true, store.ErrLost, k.store.Break(context.Background(), name, period))
}

func (k *keeper) endUnchanged(t *rapid.T) {
	_, _, etag, holds := k.lease(t)
	k.judge(try{op: "break"}, holds, store.ErrLost, k.store.BreakUnchanged(context.Background(), name, etag))
}
