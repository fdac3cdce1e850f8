package lease

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/soloist-go/soloist/store"
)

// A ledger is the record as one session writes it: one write at a time, each on
// the ETag of the one before.
type ledger struct {
	turn    chan struct{} // has room for one writer
	rec     store.Record  // as last written, or perhaps written: what follows says the same
	etag    string        // of the entry
	unclear bool          // etag may be that of the write before
	closed  bool          // the outcome has been written, or given up: nothing follows
	doubt   bool          // a write on etag was sent and not answered: it may still be applied
	ours    []signature   // the writes of this session that may be what the entry holds, oldest first
}

// A page is one write: the record, encoded, and perhaps a checkpoint with it.
type page struct {
	nonce      string
	record     []byte
	checkpoint []byte // nil: it stays as it is
}

// A signature tells a write of this session from others. The digest is of the
// whole record, since somebody may change that and leave the nonce in it.
type signature struct {
	nonce  string
	digest [sha256.Size]byte
}

// maxUnclear limits the writes of unclear outcome that a session remembers. One
// that is forgotten and applied later counts as another replica's, which ends the
// session.
const maxUnclear = 100

func newLedger(etag string, rec *store.Record) ledger {
	return ledger{turn: make(chan struct{}, 1), etag: etag, rec: *rec}
}

// remember keeps the signature of a page that is about to be sent.
func (l *ledger) remember(p *page) {
	m := signature{p.nonce, sha256.Sum256(p.record)}
	if slices.Contains(l.ours, m) {
		return
	}
	l.ours = append(l.ours, m)
	if extra := len(l.ours) - maxUnclear; extra > 0 {
		l.ours = slices.Delete(l.ours, 0, extra)
	}
}

// wrote reports whether a write of this session left the record.
func (l *ledger) wrote(record []byte) bool {
	return slices.Contains(l.ours, signature{writer(record), sha256.Sum256(record)})
}

// moved takes the ETag that the write with the nonce got. Other writes asked for
// an older ETag, so the store refuses them from now on.
func (l *ledger) moved(etag, nonce string) {
	l.etag, l.unclear, l.doubt = etag, false, false
	l.ours = slices.DeleteFunc(l.ours, func(m signature) bool { return m.nonce != nonce })
}

// writer returns the nonce of the write that left record b.
func writer(b []byte) string {
	var r struct{ Writer string }
	if json.Unmarshal(b, &r) != nil {
		return ""
	}
	return r.Writer
}
