package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A ledger is what a session knows of the record: what it has written, and what it may
// have written. Its fields belong to the holder of turn: the run's Save, the watchdog's
// notices and the runner's claim and outcome all write, one at a time, each on the ETag
// of the write before.
type ledger struct {
	turn chan struct{} // has room for one writer; a channel, so that a writer can give up waiting

	mu   sync.Mutex     // for those who ask without the turn
	rec  record.Record  // as last written, or perhaps written: the next draft starts from it, so it repeats what was lost
	last store.Revision // of the entry, by the last answer that is known

	runs    bool        // the record under last shows a run that may be under way
	unclear bool        // the entry may have another ETag: a write has failed since, perhaps after it was applied
	gaveUp  bool        // WriteOutcome has ended the renewals
	revived bool        // and has revived the lease once since then
	closed  error       // the outcome is written or being written, so nothing may follow it; nil: it is not
	doubt   bool        // a write on last was sent and not refused: the store may still apply it
	ours    []signature // of our writes that the entry may hold now, oldest first
	open    undecided   // what a transaction may have written; zero: nothing

	unclaimed string // the ETag with which an acquisition of another session may yet write a claim; empty: none may
}

// A page is one write, ready to be sent: the encoded record, and perhaps a checkpoint.
type page struct {
	signature
	record     []byte
	checkpoint []byte // nil: it stays as it is

	send func(ctx context.Context, etag string) (store.Revision, error) // writes it together with another step; nil: it is written alone
}

// A signature identifies a write of this session when the entry is read back. The nonce
// alone would not do: a person who edits the record leaves the nonce in it.
type signature struct {
	nonce  string // Writer of the record
	digest uint64
	beat   time.Duration // of the record; see record.Record.Beats
	runs   bool          // the record shows a run that may be under way
	sent   time.Duration // elapsed: when it was sent for the first time
}

// seed is the digests' seed, drawn once by each process.
var seed = maphash.MakeSeed()

// maxUnclear limits how many writes of unclear outcome a session remembers, since a run
// may save often during an outage. If a forgotten one is applied late, it looks like
// another replica's write and ends the session, which is safe.
const maxUnclear = 100

// newLedger returns the ledger of a session that has written nothing yet.
func newLedger(etag string, rec *record.Record) *ledger {
	return &ledger{turn: make(chan struct{}, 1), last: store.Revision{ETag: etag}, rec: *rec, runs: rec.MayRun()}
}

// remember keeps the signature of a page that is about to be sent: after that its answer
// may be lost. Of a page that is sent again, the first sending counts.
func (l *ledger) remember(p *page, sent time.Duration) {
	if l.knows(p.nonce, p.digest) {
		return
	}
	p.sent = sent
	l.ours = append(l.ours, p.signature)
	if extra := len(l.ours) - maxUnclear; extra > 0 {
		l.ours = slices.Delete(l.ours, 0, extra)
	}
}

// wrote reports whether this session has sent the record.
func (l *ledger) wrote(record []byte) bool {
	return l.knows(writer(record), maphash.Bytes(seed, record))
}

// Sent returns the nonces of the records of this session that the entry may hold. No other goroutine may use the session.
func (l *ledger) Sent() (nonces []string) {
	for _, m := range l.ours {
		nonces = append(nonces, m.nonce)
	}
	return nonces
}

// knows reports whether a write has this signature that the entry may hold.
func (l *ledger) knows(nonce string, digest uint64) bool {
	return slices.ContainsFunc(l.ours, func(m signature) bool { return m.nonce == nonce && m.digest == digest })
}

// moved notes that the write with the nonce was applied, and the answer that showed the
// ETag which it got. The store refuses all other writes that were sent before: they name an older ETag. So they
// need not be remembered, and none of them is in doubt. It returns the signature of the write.
func (l *ledger) moved(answer store.Revision, nonce string) signature {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.unclear, l.doubt = answer, false, false
	if nonce != l.open.nonce {
		l.open = undecided{}
	}
	l.ours = slices.DeleteFunc(l.ours, func(m signature) bool { return m.nonce != nonce })
	l.runs = l.ours[0].runs
	return l.ours[0]
}

// MustExpire reports whether the lease has to expire and must not be released: a record that the entry may hold, by the last
// answer, shows a run that may be under way. A follower that sees the lease expired knows that the trust of all its holders has
// ended. A follower that sees it free has to believe the record, and holds off for the length of a lease. Only the goroutine that
// writes claim and outcome may call it, after Stop.
func (l *ledger) MustExpire() bool {
	return l.runs || l.unclear && slices.ContainsFunc(l.ours, func(m signature) bool { return m.runs })
}

// take waits until no other write is under way, or ctx ends. The caller calls end after its write.
func (l *ledger) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := context.Cause(ctx) // ctx may have ended while other writes had their turn
	if l.closed != nil {
		err = l.closed
	}
	if err != nil {
		l.end()
	}
	return err
}

// end lets the next write begin.
func (l *ledger) end() { <-l.turn }

// Reopen lets another claim follow the outcome that was written. What the run before has
// left behind writes nothing more: its own context has ended.
func (l *ledger) Reopen() {
	l.turn <- struct{}{}
	l.closed = nil
	l.end()
}

// page returns the page of the record that is written next, and keeps that even if the write fails: it may have been
// applied, so what is written then must include it. The caller has the turn.
func (l *ledger) page(next record.Record, checkpoint []byte) (*page, error) {
	next.Writer = rand.Text()
	b, err := next.Encode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotEncoded, err)
	}
	l.draft(next)
	mark := signature{nonce: next.Writer, digest: maphash.Bytes(seed, b), beat: next.Beats(), runs: next.MayRun()}
	return &page{signature: mark, record: b, checkpoint: checkpoint}, nil
}

// draft notes a record as the one that the next starts from. The caller has the turn.
func (l *ledger) draft(next record.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec = next
}

// Record returns the record that was last written, or perhaps written. A beat may be under way, which
// changes nothing of it but its writer.
func (l *ledger) Record() record.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec
}

// Revision returns what the last write got whose answer is known, with the service's date in the answer that has shown it. At
// first it has the ETag of the entry as it was acquired, and no date; also later if the store gives none.
func (l *ledger) Revision() store.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// writer returns the nonce of the write that left the record b, or nothing if b is no
// record of ours.
func writer(b []byte) string {
	var r struct{ Writer string }
	if json.Unmarshal(b, &r) != nil {
		return ""
	}
	return r.Writer
}
