// Package history_test records what concurrent clients of a store call and are
// answered, and has a checker of linearizability decide whether one store that
// keeps the contract of [store.Store] can have answered so: each call at one
// instant between its begin and its end, or, where the answer was lost, at any
// time after its begin or never.
package history_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist/store"
)

// A call is one call of a store. Times are since the begin of the history.
type call struct {
	op         string
	id         string // of the lease
	etag       tag    // that the entry must have
	record     string
	checkpoint string
	span       time.Duration // of acquire; of break, the period
	from, to   time.Duration // it was applied in between, both inclusive
}

// The calls of a [store.Combiner].
const (
	acquireWrite = "acquire and write"
	writeRelease = "write and release"
)

// A tag is the number of an ETag, in the order in which they were told first;
// zero is none.
type tag int

// maxTags is how many ETags one history may have.
const maxTags = 255

// never is later than all times of a history, even with a lease added.
const never = time.Duration(math.MaxInt64 / 8)

// An answer is what a call has returned.
type answer struct {
	err        error // a sentinel of the contract, or errUnclear; nil: it was done
	etag       tag
	record     string
	checkpoint string
	state      store.LeaseState
}

// word is the answer in short.
func (a answer) word() string {
	if a.err != nil {
		return a.err.Error()
	}
	return cmp.Or(string(a.state), "done")
}

// unclear is the answer of calls whose error is no sentinel.
const unclear = "unclear"

var errUnclear = errors.New(unclear)

// meaning is the sentinel that err is.
func meaning(err error) error {
	if err == nil {
		return nil
	}
	for _, sentinel := range []error{store.ErrHeld, store.ErrChanged, store.ErrLost, fs.ErrExist, fs.ErrNotExist} {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	return errUnclear
}

// A history is what was called and answered of one entry.
type history struct {
	model porcupine.Model // what is to have answered so
	start time.Time
	late  time.Duration // what was answered unclearly may be applied until so long after its begin

	mu   sync.Mutex
	met  map[string]int // by call and answer
	tags map[string]tag
	ops  []porcupine.Operation
}

func newHistory(m porcupine.Model, late time.Duration) *history {
	return &history{model: m, start: time.Now(), late: late, met: map[string]int{}, tags: map[string]tag{"": 0}}
}

// tag numbers an ETag.
func (h *history) tag(etag string) tag {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, ok := h.tags[etag]
	if !ok {
		n = tag(len(h.tags))
		h.tags[etag] = n
	}
	return n
}

// do has a client make a call.
func (h *history) do(client int, c call, f func() (store.Entry, string, error)) error {
	c.from = time.Since(h.start)
	e, checkpoint, err := f()
	c.to = time.Since(h.start)
	a := answer{err: meaning(err), etag: h.tag(e.ETag), record: string(e.Record), checkpoint: checkpoint, state: e.State}
	if a.err == errUnclear {
		c.to = max(c.to, c.from+h.late)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.err == errUnclear {
		h.met[unclear]++
	}
	if h.met[c.op+": "+a.word()]++; a.err == errUnclear && (c.op == "read" || c.op == "load") {
		return err // it has told nothing and changed nothing
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: c, Output: a, Call: int64(c.from), Return: int64(c.to)})
	return err
}

// check has the checker decide whether what the model describes can have answered so.
func (h *history) check(patience time.Duration) porcupine.CheckResult {
	if len(h.tags) > maxTags {
		panic(fmt.Sprintf("%d ETags are more than the model can number", len(h.tags)))
	}
	return porcupine.CheckOperationsTimeout(h.model, h.ops, patience)
}

// text is the history for a reader, in the order of the calls' ends.
func (h *history) text() (lines string) {
	for _, op := range h.ops {
		lines += fmt.Sprintf("client %d: %s\n", op.ClientId, h.model.DescribeOperation(op.Input, op.Output))
	}
	return lines
}

func describe(in, out any) string {
	c, a := in.(call), out.(answer)
	return fmt.Sprintf("%v to %v: %s id %q if %d record %q span %v -> %v etag %d record %q checkpoint %q state %q",
		c.from, c.to, c.op, c.id, c.etag, c.record, c.span, a.err, a.etag, a.record, a.checkpoint, a.state)
}
