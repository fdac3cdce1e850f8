package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A mailbox is the queue of alarms. What becomes of each message is in the log.
type mailbox struct {
	log   *trace.Log
	whole bool // it tells the time of a message in whole seconds

	mu  sync.Mutex
	n   int
	all []*mail
}

// A mail is a message that is in the queue.
type mail struct {
	id       string
	pops     int // how often it was received: the receipt of each time differs
	body     []byte
	inserted time.Time
	visible  time.Time
}

func (m *mail) pop() string { return fmt.Sprint("pop-", m.pops) }

// put adds a message.
func (b *mailbox) put(from string, body []byte, hidden time.Duration) mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	m := &mail{id: fmt.Sprint("m", b.n), body: body, inserted: time.Now(), visible: time.Now().Add(hidden)}
	b.all = append(b.all, m)
	b.tell(from, trace.MailPut, m)
	return *m
}

// take hides visible messages, the oldest first, and returns them.
func (b *mailbox) take(from string, most int, hide time.Duration) (some []mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if len(some) < most && !m.visible.After(time.Now()) {
			m.pops++
			m.visible = time.Now().Add(hide)
			b.tell(from, trace.MailTaken, m)
			some = append(some, *m)
		}
	}
	return some
}

// drop deletes a message, if the receipt is its last one.
func (b *mailbox) drop(from, id, pop string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 && b.all[i].pop() == pop {
		b.tell(from, trace.MailDeleted, b.all[i])
		b.all = slices.Delete(b.all, i, i+1)
	}
}

// lose has the service lose a message.
func (b *mailbox) lose(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.tell(trace.Platform, trace.MailLost, b.all[i])
		b.all = slices.Delete(b.all, i, i+1)
	}
}

// show has a message become visible at another time than that for which it was put.
func (b *mailbox) show(id string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.all[i].visible = at
		b.tell(trace.Platform, trace.MailMoved, b.all[i])
	}
}

// seen returns the messages that are visible.
func (b *mailbox) seen() (some []mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if !m.visible.After(time.Now()) {
			some = append(some, *m)
		}
	}
	return some
}

// any returns the nth message, by chance; false: there is none.
func (b *mailbox) any(r *draw.Roll) (mail, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return mail{}, false
	}
	return *b.all[r.Below(len(b.all))], true
}

func (b *mailbox) find(id string) int {
	return slices.IndexFunc(b.all, func(m *mail) bool { return m.id == id })
}

func (b *mailbox) tell(who, op string, m *mail) {
	e := trace.Event{What: trace.Mail, Replica: who, Op: op, ID: m.id, End: m.visible}
	var says struct{ Work string }
	if op == trace.MailPut && json.Unmarshal(m.body, &says) == nil {
		e.Note = says.Work // the version for which it is
	}
	b.log.Add(e)
}

// hold hides a message that the platform has taken for longer.
func (b *mailbox) hold(id string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.all[i].visible = time.Now().Add(d)
		b.tell(trace.Platform, trace.MailTaken, b.all[i])
	}
}
