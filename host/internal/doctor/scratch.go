package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// deleter is a store that can remove an entry whose lease is free.
type deleter interface {
	Delete(ctx context.Context, name string) error
}

// A scratch is an entry on which doctor does what a run does. Its name has a
// dot, which no job's has.
type scratch struct {
	doctor *doctor
	name   string
	once   bool // the store can remove it
	made   bool // it is there, by us
	last   bool // there is no other name to try
	taken  bool // another doctor has it
	lease  store.Lease
	etag   string
}

// mostDoctors is how many doctors can be at work at once in a store that cannot
// remove an entry. A doctor that was killed counts until its lease has expired.
const mostDoctors = 9

// checkScratch reports whether a run could do all that it has to. Where the store
// can remove an entry, each doctor makes one of its own. Otherwise the same few
// serve again and again, lest each call leave something behind: a doctor that
// finds another one at work takes the next.
func checkScratch(d *doctor) bool {
	s := &scratch{doctor: d, name: d.app.Settings.App + "/.doctor"}
	if _, s.once = d.app.Store.(deleter); s.once {
		s.name += "-" + strings.ToLower(rand.Text()[:12])
	}
	defer s.tidy()
	for n := 2; !s.pass(); n++ {
		if !s.taken {
			d.skip("records", "nothing to learn before that works")
			return false
		}
		s.name, s.last = fmt.Sprintf("%s/.doctor-%d", d.app.Settings.App, n), n == mostDoctors
	}
	s.checkVersions()
	return true
}

// pass does all acts on the entry, as far as the first failure.
func (s *scratch) pass() bool {
	s.lease, s.etag = s.doctor.app.Store.Lease(s.name, randomID()), ""
	for _, a := range s.acts() {
		if !s.try(a) || s.taken {
			return false
		}
		s.made = true
	}
	return true
}

// versioner is a store that may keep what it overwrites.
type versioner interface {
	Versioned() bool
}

// checkVersions looks at the versions in the answers to the writes.
func (s *scratch) checkVersions() {
	if v, ok := s.doctor.app.Store.(versioner); ok && v.Versioned() {
		s.doctor.add(warns, "versions", "the account keeps a version of the blob for each write, which is two or more for each run",
			"use an account without blob versioning, or a lifecycle rule that deletes previous versions after a day")
	}
}

// try does one act. What it learns counts once it has answered in time.
func (s *scratch) try(a act) bool {
	etag, next, taken := s.etag, "", false
	ok := s.doctor.step(a.name, stepTime, func(ctx context.Context) Finding {
		sent := time.Now()
		stamp, err := a.do(ctx, etag)
		if taken = a.name == "acquire" && s.isTaken(err); taken {
			return Finding{Result: skips, Text: s.name + " is in use by another doctor: trying the next entry"}
		}
		if err != nil {
			return failure(s.doctor.app.Explain(err))
		}
		next = cmp.Or(stamp.ETag, etag)
		return s.judge(time.Since(sent))
	})
	if ok {
		s.etag, s.taken = next, taken
	}
	return ok
}

// isTaken reports whether err says that another doctor has leased the entry, or
// has written it since it was read, and there is another entry to try.
func (s *scratch) isTaken(err error) bool {
	return !s.once && !s.last && (errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrChanged))
}

// judge warns where a renewal could come too late: it has a sixth of the lease.
func (s *scratch) judge(took time.Duration) Finding {
	text := fmt.Sprintf("%s, %s", s.name, took.Round(time.Millisecond))
	if took > s.doctor.app.Settings.Lease/12 {
		return warning(text, "that is slow: a renewal that takes a sixth of the lease is none; see the network, or choose a longer SOLOIST_LEASE")
	}
	return success(text)
}

type act struct {
	name string
	do   func(ctx context.Context, etag string) (store.Revision, error)
}

// acts are the calls of a run, in its order.
func (s *scratch) acts() []act {
	all := []act{
		{"create", s.create},
		{"read", s.read},
		{"acquire", func(ctx context.Context, etag string) (store.Revision, error) {
			shortest, longest := s.doctor.app.Store.Limits()
			return s.lease.Acquire(ctx, min(max(30*time.Second, shortest), longest), etag)
		}},
		{"claim", s.write("claimed")},
	}
	if k, ok := s.lease.(store.Checkpointer); ok {
		checkpoint := []byte(`{"doctor":"é"}`)
		all = append(all,
			act{"save", func(ctx context.Context, etag string) (store.Revision, error) {
				return k.Save(ctx, etag, s.text("saved"), checkpoint)
			}},
			act{"load", func(ctx context.Context, etag string) (none store.Revision, err error) {
				got, err := k.Load(ctx, etag)
				if err == nil && !bytes.Equal(got, checkpoint) {
					err = errors.New("the checkpoint is not what was saved: something on the way changes contents")
				}
				return none, err
			}})
	}
	return append(all,
		act{"renew", func(ctx context.Context, _ string) (store.Revision, error) { return s.lease.Renew(ctx) }},
		act{"finish", s.write("finished")},
		act{"release", func(ctx context.Context, _ string) (store.Revision, error) {
			return store.Revision{}, s.lease.Release(ctx)
		}})
}

func (s *scratch) text(what string) []byte { return fmt.Appendf(nil, `{"doctor":%q}`, what) }

func (s *scratch) create(ctx context.Context, _ string) (store.Revision, error) {
	e, err := s.doctor.app.Store.Create(ctx, s.name, s.text("created"))
	if !s.once && errors.Is(err, fs.ErrExist) { // the read reports the rest
		err = nil
	}
	return e.Revision, err
}

func (s *scratch) read(ctx context.Context, _ string) (store.Revision, error) {
	e, err := s.doctor.app.Store.Read(ctx, s.name)
	if err == nil && s.once && !bytes.Equal(e.Record, s.text("created")) {
		err = errors.New("the record is not what was written: something on the way changes headers")
	}
	return e.Revision, err
}

func (s *scratch) write(what string) func(context.Context, string) (store.Revision, error) {
	return func(ctx context.Context, etag string) (store.Revision, error) {
		return s.lease.Write(ctx, etag, s.text(what))
	}
}

// tidy removes the entry, also when time is up. After a failed create the entry
// may exist or not: that is not worth reporting.
func (s *scratch) tidy() {
	if !s.once {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.doctor.ctx), tidyTime)
	defer cancel()
	err, answered := within(ctx, s.remove)
	if !answered {
		err = fmt.Errorf("no answer within %s", tidyTime)
	}
	switch {
	case !s.made:
	case err == nil:
		s.doctor.add(passes, "delete", s.name, "")
	default:
		text, advice := s.doctor.app.Explain(err)
		s.doctor.add(warns, "delete", s.name+" is left behind: "+text, cmp.Or(advice, "delete it when you like: no job uses it"))
	}
}

// remove ends the lease where a failure has left it.
func (s *scratch) remove(ctx context.Context) error {
	backend := s.doctor.app.Store.(deleter)
	err := backend.Delete(ctx, s.name)
	if errors.Is(err, store.ErrLost) && s.lease.Release(ctx) == nil {
		err = backend.Delete(ctx, s.name)
	}
	return err
}

// randomID is an id for a lease.
func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
