package host

import (
	"context"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
)

const (
	readTime = 2 * time.Second // bounds the reads of all records
	freshFor = 2 * time.Second // so long they are not read again, however many ask
	waitTime = time.Second     // for them: a page with old news is better than none
)

// A board keeps what the records told last. At most one reading is under way,
// so that a page under load asks the store no more often than an idle one.
type board struct {
	read func(context.Context) ([]soloist.JobStatus, error)

	readings sync.WaitGroup

	mu      sync.Mutex
	last    news
	met     bool          // the store has answered, once
	pending chan struct{} // closed when the reading under way is over; nil: none is
}

// news is one reading. Zero: none yet.
type news struct {
	at  time.Time
	all []soloist.JobStatus
}

// old says how old the news is, if that is worth a word.
func (n news) old() string {
	switch age := time.Since(n.at); {
	case n.at.IsZero():
		return "The store has not answered yet."
	case age > freshFor+waitTime:
		return "The store does not answer: this is what it told " + roughly(age) + " ago."
	}
	return ""
}

func (a *app) newBoard() *board { return &board{read: a.sched.Status} }

// look returns the last reading, after a wait for a new one if that is due.
func (b *board) look(ctx context.Context) news {
	if pending := b.refresh(); pending != nil {
		t := time.NewTimer(waitTime)
		defer t.Stop()
		select {
		case <-pending:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// refresh returns the reading to wait for, or nil if the last one will do.
func (b *board) refresh() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil && (b.last.at.IsZero() || time.Since(b.last.at) >= freshFor) {
		b.pending = make(chan struct{})
		b.readings.Go(b.reading)
	}
	return b.pending
}

// reading outlives the request that began it: others wait for it too.
func (b *board) reading() {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	all, err := b.read(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := err == nil && answered(all)
	if ok || err == nil && b.last.at.IsZero() {
		b.last = news{at: time.Now(), all: all}
	}
	b.met = b.met || ok
	close(b.pending)
	b.pending = nil
}

// answered reports whether the store gave at least one answer, if it was asked.
func answered(all []soloist.JobStatus) bool {
	asked := false
	for _, st := range all {
		if reached(st) {
			return true
		}
		asked = asked || !st.EveryReplica
	}
	return !asked
}

// fresh reports whether the store answers now.
func (b *board) fresh(ctx context.Context) bool {
	n := b.look(ctx)
	return n.old() == "" && answered(n.all)
}

// ready reports whether the store has ever answered; from then on the
// scheduler knows better. It asks until then.
func (b *board) ready(ctx context.Context) bool {
	b.mu.Lock()
	met := b.met
	b.mu.Unlock()
	if met {
		return true
	}
	b.look(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.met
}

// wait returns when no reading is under way; no new one may be begun.
func (b *board) wait() { b.readings.Wait() }
