package history_test

import (
	"io/fs"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist/store"
)

// A model says what a store may answer: a register with compare-and-set, and a
// lease that guards it.
type model struct {
	slack time.Duration // how far the clocks of store and history may be apart
	anyID bool          // an expired lease is renewed under any id, as Azurite does
}

// A state is what a store is known to be in. It is comparable.
type state struct {
	now time.Duration // it is that late at least

	exists     bool
	etag       tag                    // zero: that of a write whose answer was lost
	spent      [maxTags/64 + 1]uint64 // the tags of former ETags
	record     string
	checkpoint string

	lease  store.LeaseState
	id     string
	span   time.Duration
	lo, hi time.Duration // a live lease ends in between, both inclusive
}

func (m model) porcupine() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) (next []any) {
			for _, n := range m.step(s.(state), in.(call), out.(answer)) {
				next = append(next, n)
			}
			return next
		},
		DescribeOperation: describe,
	}).ToModel()
}

// step returns all that a store in state s may be in after a call with this
// answer; nothing: it cannot have answered so.
func (m model) step(s state, c call, a answer) (next []state) {
	s.now = max(s.now, c.from)
	if s.lease == store.Leased { // by now it has been taken, however late its taker heard of it
		s.hi = min(s.hi, m.plus(c.to, s.span))
	}
	for _, s := range s.worlds(c) {
		refusals := m.refusals(s, c)
		if a.err == errUnclear || slices.Contains(refusals, a.err) {
			next = append(next, s)
		}
		if (a.err == errUnclear || a.err == nil) && len(refusals) == 0 && m.apply(&s, c, a) {
			next = append(next, s)
		}
	}
	return next
}

// worlds are the two that a call may meet while nobody knows whether a lease has
// ended. Its expiry is a step that takes place by itself, not before its time.
func (s state) worlds(c call) (all []state) {
	if !s.lease.Live() {
		return []state{s}
	}
	if s.now < s.hi {
		live := s
		live.lo = max(s.lo, s.now)
		all = append(all, live)
	}
	if c.to >= s.lo {
		over := s
		over.lease = store.Expired
		if s.lease == store.Breaking {
			over.lease = store.Broken
		}
		over.now, over.lo, over.hi = max(s.now, s.lo), 0, 0
		all = append(all, over)
	}
	return all
}

// refusals are the errors of which a call must meet one; none: it is done.
func (m model) refusals(s state, c call) (errs []error) {
	refuse := func(err error, when bool) {
		if when {
			errs = append(errs, err)
		}
	}
	conditional := c.op != "create" && c.op != "read" && c.op != "renew" && c.op != "release" && c.op != "break"
	refuse(fs.ErrNotExist, !s.exists && c.op != "create")
	refuse(store.ErrChanged, conditional && (!s.exists || c.etag == 0 || c.etag != s.etag))
	if !s.exists {
		return errs
	}
	own := c.id == s.id
	switch c.op {
	case "create":
		refuse(fs.ErrExist, true)
	case "acquire", acquireWrite:
		refuse(store.ErrHeld, s.lease == store.Breaking || s.lease == store.Leased && !own)
	case "renew":
		ours := s.lease == store.Leased && own || s.lease == store.Expired && (own || m.anyID)
		refuse(store.ErrLost, !ours)
	case "write", "save", "load", writeRelease:
		refuse(store.ErrLost, !s.lease.Live() || !own)
	case "release":
		refuse(store.ErrLost, s.lease == store.Available || !own)
	case "break", "break unchanged":
		refuse(store.ErrLost, s.lease == store.Available)
	}
	return errs
}

// apply does what nothing refuses. It returns false if the answer is another
// than the state tells.
func (m model) apply(s *state, c call, a answer) bool {
	lost := a.err == errUnclear
	switch c.op {
	case "create":
		s.exists, s.lease = true, store.Available
		return s.write(c, a) && (lost || a.record == c.record && a.state == s.lease)
	case "read":
		return lost || s.tells(a) && a.record == s.record && a.state == s.lease
	case "acquire":
		s.id, s.span = c.id, c.span
		m.begin(s, c)
	case acquireWrite:
		s.id, s.span = c.id, c.span
		m.begin(s, c)
		return s.write(c, a)
	case "renew":
		m.begin(s, c)
	case "write":
		return s.write(c, a)
	case "save":
		s.checkpoint = c.checkpoint
		return s.write(c, a)
	case "load":
		return lost || a.checkpoint == s.checkpoint
	case "release":
		s.release()
		return true
	case writeRelease:
		s.release()
		return s.write(c, a)
	case "break", "break unchanged": // the latter at once: its span is zero
		m.end(s, c)
		return true
	}
	return lost || s.tells(a)
}

// tells reports whether the entry has the ETag of an answer.
func (s *state) tells(a answer) bool {
	if s.etag == 0 && a.etag != 0 && !s.was(a.etag) {
		s.etag = a.etag
	}
	return a.etag != 0 && a.etag == s.etag
}

func (s *state) was(e tag) bool { return s.spent[e/64]&(1<<(e%64)) != 0 }

// write gives the entry a record, and an ETag that it has never had.
func (s *state) write(c call, a answer) bool {
	s.record = c.record
	s.spent[s.etag/64] |= 1 << (s.etag % 64)
	s.etag = 0
	return a.err == errUnclear || s.tells(a)
}

func (s *state) release() { s.lease, s.id, s.span, s.lo, s.hi = store.Available, "", 0, 0, 0 }

// begin starts the time of the lease.
func (m model) begin(s *state, c call) {
	s.lease = store.Leased
	s.lo, s.hi = s.now+s.span-m.slack, m.plus(c.to, s.span)
}

// end breaks the lease.
func (m model) end(s *state, c call) {
	switch {
	case !s.lease.Live() || c.span == 0:
		s.lease, s.lo, s.hi = store.Broken, 0, 0
	case c.span > 0:
		s.lo, s.hi = min(s.lo, s.now+c.span-m.slack), min(s.hi, m.plus(c.to, c.span))
		fallthrough
	default:
		s.lease = store.Breaking
	}
}

func (m model) plus(at, span time.Duration) time.Duration { return at + span + m.slack }
