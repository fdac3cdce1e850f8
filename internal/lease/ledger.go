package lease

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A ledger is what a session knows of the record: what it has written, and what it may
// have written. Its fields belong to the holder of turn: the run's Save, the watchdog's
// notices and the runner's claim and outcome all write, one at a time, each on the ETag
// of the write before.
type ledger struct {
	turn    chan struct{} // has room for one writer; a channel, so that a writer can give up waiting
	rec     store.Record  // as last written, or perhaps written: the next draft starts from it, so it repeats what was lost
	etag    string        // of the entry, by the last answer that is known
	date    time.Time     // the service's, in that answer; zero: it had none
	runs    bool          // the record under etag shows a run that may be under way
	unclear bool          // the entry may have another ETag: a write has failed since, perhaps after it was applied
	gaveUp  bool          // WriteOutcome has ended the renewals
	revived bool          // and has revived the lease once since then
	closed  bool          // the outcome is written or being written: nothing may follow it
	doubt   bool          // a write on etag was sent and not refused: the store may still apply it
	ours    []signature   // of our writes that the entry may hold now, oldest first
}

// A page is one write, ready to be sent: the encoded record, and perhaps a checkpoint.
type page struct {
	nonce      string        // Writer of the record
	beat       time.Duration // of the record; see store.Record.Beats
	runs       bool          // see store.Record.MayRun
	record     []byte
	checkpoint []byte // nil: it stays as it is
}

// newPage returns the page of a record that is encoded.
func newPage(rec *store.Record, encoded, checkpoint []byte) *page {
	return &page{rec.Writer, rec.Beats(), rec.MayRun(), encoded, checkpoint}
}

// A signature identifies a write of this session when the entry is read back. The nonce
// alone would not do: a person who edits the record leaves the nonce in it.
type signature struct {
	nonce  string
	digest uint64
	beat   time.Duration // of its record
	runs   bool          // its record shows a run that may be under way
	sent   time.Duration // elapsed: when it was sent for the first time
}

// seed is the digests' seed, drawn once by each process.
var seed = maphash.MakeSeed()

// maxUnclear limits how many writes of unclear outcome a session remembers, since a run
// may save often during an outage. If a forgotten one is applied late, it looks like
// another replica's write and ends the session, which is safe.
const maxUnclear = 100

// newLedger returns the ledger of a session that has written nothing yet.
func newLedger(etag string, rec *store.Record) ledger {
	return ledger{turn: make(chan struct{}, 1), etag: etag, rec: *rec, runs: rec.MayRun()}
}

// remember keeps the signature of a page that is about to be sent: after that its answer
// may be lost. Of a page that is sent again, the first sending counts.
func (l *ledger) remember(p *page, sent time.Duration) {
	digest := maphash.Bytes(seed, p.record)
	if _, known := l.find(p.nonce, digest); known {
		return
	}
	l.ours = append(l.ours, signature{p.nonce, digest, p.beat, p.runs, sent})
	if extra := len(l.ours) - maxUnclear; extra > 0 {
		l.ours = slices.Delete(l.ours, 0, extra)
	}
}

// wrote reports whether this session has sent the record.
func (l *ledger) wrote(record []byte) bool {
	_, ours := l.find(writer(record), maphash.Bytes(seed, record))
	return ours
}

// sent returns the nonces of the writes that the entry may hold.
func (l *ledger) sent() (nonces []string) {
	for _, m := range l.ours {
		nonces = append(nonces, m.nonce)
	}
	return nonces
}

// find returns the signature of a write that the entry may hold.
func (l *ledger) find(nonce string, digest uint64) (m signature, ok bool) {
	i := slices.IndexFunc(l.ours, func(m signature) bool { return m.nonce == nonce && m.digest == digest })
	if i < 0 {
		return signature{}, false
	}
	return l.ours[i], true
}

// moved notes that the write with the nonce was applied, and the answer that showed the
// ETag which it got. The store refuses all other writes that were sent before: they name an older ETag. So they
// need not be remembered, and none of them is in doubt. It returns the signature of the write.
func (l *ledger) moved(answer store.Revision, nonce string) signature {
	l.etag, l.date, l.unclear, l.doubt = answer.ETag, answer.Date, false, false
	l.ours = slices.DeleteFunc(l.ours, func(m signature) bool { return m.nonce != nonce })
	l.runs = l.ours[0].runs
	return l.ours[0]
}

// mayRun reports whether a record that the entry may hold, by the last answer, shows a run that may be under way.
func (l *ledger) mayRun() bool {
	return l.runs || l.unclear && slices.ContainsFunc(l.ours, func(m signature) bool { return m.runs })
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
