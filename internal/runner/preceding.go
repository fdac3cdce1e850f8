package runner

import (
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A preceding is what a follower knows of its predecessors.
type preceding struct {
	clients []*lease.Client
	records []store.Record
	known   []plan.Predecessor // for plan, in the order of clients

	tick    time.Time // that they are read for
	lookAt  time.Time // monotonic: when they are read again
	trouble error     // why one of them cannot be used; nil: none is known
	failing bool      // the store has not answered the last read

	hurried atomic.Bool // this replica has settled ticks of one of them since the last read
}

// newPreceding returns nil for a job that follows none.
func newPreceding(app string, p *plan.Policy, own *lease.Client) *preceding {
	if !p.Follows() {
		return nil
	}
	b := &preceding{}
	for _, name := range p.After {
		c := *own
		c.Name = app + "/" + name
		b.clients = append(b.clients, &c)
		b.known = append(b.known, plan.Predecessor{Job: name})
	}
	b.records = make([]store.Record, len(b.known))
	return b
}

// take keeps what a predecessor's record says, which was read at a time.
func (b *preceding) take(i int, rec store.Record, now time.Time) {
	k := &b.known[i]
	if !k.Watermark.Equal(rec.Watermark) {
		k.Watermark, k.Seen = rec.Watermark, now
	}
	k.History, b.records[i] = rec.History, rec
}
