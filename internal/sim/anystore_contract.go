package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// A contractChecker holds [Config.Store] to its contract. It follows the calls as they
// are applied and so knows what may come of each. The invariants alone would
// not do: what replicas do is safe over some stores that are not.
type contractChecker struct {
	entries map[string]*kept // by job
}

// kept is what a store should have of an entry.
type kept struct {
	there              bool
	etag               string
	etags              []string // all that there were
	record, checkpoint []byte
	id                 string // empty: there is no lease
	span               time.Duration
	until              time.Time
	broken             bool
}

// judge returns what is wrong with the result of a call, which has just been
// applied, and lets it have its effect.
func (r *contractChecker) judge(e *trace.Event, x errand, got result, now time.Time) []string {
	if r.entries == nil {
		r.entries = map[string]*kept{}
	}
	if e.Op == "list" {
		return r.judgeList(got, now)
	}
	k := r.entries[e.Job]
	if k == nil {
		k = &kept{}
		r.entries[e.Job] = k
	}
	var wrong []string
	if e.OfDocument() {
		wrong = k.judgeDocument(e, x, got)
	} else {
		wrong = k.judgeEntry(e, x, got, now)
	}
	if d := got.Date; !d.IsZero() && (d.After(now.Add(rounding)) || d.Before(now.Add(-time.Second))) {
		wrong = append(wrong, fmt.Sprintf("it tells the Date %s at %s", trace.TimeOfDay(d), trace.TimeOfDay(now)))
	}
	return wrong
}

func (k *kept) judgeEntry(e *trace.Event, x errand, got result, now time.Time) (wrong []string) {
	if want := k.outcomes(e, x.etag, now); !slices.ContainsFunc(want, func(err error) bool { return same(got.err, err) }) {
		wrong = append(wrong, fmt.Sprintf("it answers %v, want %v", got.err, want))
	}
	if got.err == nil {
		wrong = append(wrong, k.tells(e, x, got, now)...)
		k.follow(e, x, got, now)
	}
	return wrong
}

func same(got, want error) bool {
	return got == nil && want == nil || want != nil && errors.Is(got, want)
}

// rounding is what a store may cut off its times. Around the end of a lease it
// may therefore be in the state before or in that after.
const rounding = time.Millisecond

func (k *kept) states(now time.Time) []store.LeaseState {
	return []store.LeaseState{k.state(now.Add(-rounding)), k.state(now.Add(rounding))}
}

func (k *kept) state(now time.Time) store.LeaseState {
	switch live := now.Before(k.until); {
	case k.id == "":
		return store.Available
	case k.broken && live:
		return store.Breaking
	case k.broken:
		return store.Broken
	case live:
		return store.Leased
	}
	return store.Expired
}

// outcomes are the errors that a call may come to; of more than one, nil is none.
func (k *kept) outcomes(e *trace.Event, etag string, now time.Time) (all []error) {
	for _, state := range k.states(now) {
		errs := k.refusals(e, etag, state)
		if len(errs) == 0 {
			errs = []error{nil}
		}
		for _, err := range errs {
			if !slices.Contains(all, err) {
				all = append(all, err)
			}
		}
	}
	return all
}

// refusals are the errors that fit a call in a state; none: it has to succeed.
func (k *kept) refusals(e *trace.Event, etag string, state store.LeaseState) (all []error) {
	is := func(wrong bool, err error) {
		if wrong {
			all = append(all, err)
		}
	}
	own := k.id != "" && e.Lease == k.id
	guarded := e.Writes() || e.Op == "load"
	switch {
	case e.Op == "create":
		is(k.there, fs.ErrExist)
		return all
	case !k.there:
		is(true, fs.ErrNotExist)
		is(e.Match, store.ErrChanged)
		is(e.Op == "save" || e.Op == "load", store.ErrLost)
		return all
	case e.Op == "acquire":
		is(state.Live() && (!own || k.broken), store.ErrHeld)
	case e.Op == "renew":
		is(!own || k.broken, store.ErrLost)
	case e.Op == "release":
		is(!own, store.ErrLost)
	case e.Op == "break":
		is(k.id == "", store.ErrLost)
	case e.Op == "delete":
		is(state.Live(), store.ErrLost)
	case guarded:
		is(!own || !state.Live(), store.ErrLost)
	}
	is(e.Match && etag != k.etag, store.ErrChanged)
	return all
}

// tells returns what is wrong with a success.
func (k *kept) tells(e *trace.Event, x errand, got result, now time.Time) (wrong []string) {
	is := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case e.Writes():
		is(got.ETag != "" && !slices.Contains(k.etags, got.ETag), "it gives the ETag %s, which is not new", got.ETag)
	case e.Op == "read" || e.Op == "acquire" || e.Op == "renew":
		is(got.ETag == k.etag, "it tells the ETag %s, want %s", got.ETag, k.etag)
	}
	switch e.Op {
	case "create":
		is(bytes.Equal(got.Record, x.record) && got.State == store.Available, "it tells %s, %s", got.State, got.Record)
	case "read":
		is(bytes.Equal(got.Record, k.record), "it tells the record %s, want %s", got.Record, k.record)
		is(slices.Contains(k.states(now), got.State), "it tells %s, want %s", got.State, k.state(now))
	case "load":
		is(bytes.Equal(got.checkpoint, k.checkpoint), "it tells the checkpoint %q, want %q", got.checkpoint, k.checkpoint)
	}
	return wrong
}

// follow lets a call that the store has granted have its effect.
func (k *kept) follow(e *trace.Event, x errand, got result, now time.Time) {
	switch e.Op {
	case "create":
		*k = kept{there: true, etags: k.etags}
	case "acquire":
		k.id, k.span, k.until, k.broken = e.Lease, e.Span, now.Add(e.Span), false
	case "renew":
		k.until = now.Add(k.span)
	case "release":
		k.id = ""
	case "break":
		if end := now.Add(e.Span); e.Span >= 0 && end.Before(k.until) {
			k.until = end
		}
		k.broken = true
	case "delete":
		*k = kept{etags: k.etags}
	case "save":
		k.checkpoint = x.checkpoint
	}
	if e.Writes() {
		k.record, k.etag, k.etags = x.record, got.ETag, append(k.etags, got.ETag)
	}
}
