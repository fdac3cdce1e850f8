package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A Mailbox is the queue of alarms. What becomes of each message is in the log.
type Mailbox struct {
	Log   *trace.Log
	Whole bool // it reports the time of a message in whole seconds

	mu  sync.Mutex
	n   int
	all []*Mail
}

// A Mail is a message that is in the queue.
type Mail struct {
	Id       string
	Pops     int // how often it was received: the receipt of each time differs
	Body     []byte
	Inserted time.Time
	Visible  time.Time
}

func (m *Mail) Pop() string { return fmt.Sprint("pop-", m.Pops) }

// Put adds a message.
func (b *Mailbox) Put(from string, body []byte, hidden time.Duration) Mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	m := &Mail{Id: fmt.Sprint("m", b.n), Body: body, Inserted: time.Now(), Visible: time.Now().Add(hidden)}
	b.all = append(b.all, m)
	b.tell(from, trace.MailPut, m)
	return *m
}

// Take hides visible messages, the oldest first, and returns them.
func (b *Mailbox) Take(from string, most int, hide time.Duration) (some []Mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if len(some) < most && !m.Visible.After(time.Now()) {
			m.Pops++
			m.Visible = time.Now().Add(hide)
			b.tell(from, trace.MailTaken, m)
			some = append(some, *m)
		}
	}
	return some
}

// Drop deletes a message, if the receipt is its last one.
func (b *Mailbox) Drop(from, id, pop string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 && b.all[i].Pop() == pop {
		b.tell(from, trace.MailDeleted, b.all[i])
		b.all = slices.Delete(b.all, i, i+1)
	}
}

// Lose has the service lose a message.
func (b *Mailbox) Lose(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.tell(trace.Platform, trace.MailLost, b.all[i])
		b.all = slices.Delete(b.all, i, i+1)
	}
}

// Show has a message become visible at another time than that for which it was put.
func (b *Mailbox) Show(id string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.all[i].Visible = at
		b.tell(trace.Platform, trace.MailMoved, b.all[i])
	}
}

// Seen returns the messages that are visible.
func (b *Mailbox) Seen() (some []Mail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if !m.Visible.After(time.Now()) {
			some = append(some, *m)
		}
	}
	return some
}

// Any returns the nth message, by chance; false: there is none.
func (b *Mailbox) Any(r *draw.Roll) (Mail, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return Mail{}, false
	}
	return *b.all[r.Below(len(b.all))], true
}

func (b *Mailbox) find(id string) int {
	return slices.IndexFunc(b.all, func(m *Mail) bool { return m.Id == id })
}

func (b *Mailbox) tell(who, op string, m *Mail) {
	e := trace.Event{What: trace.Mail, Replica: who, Op: op, ID: m.Id, End: m.Visible}
	var says struct{ Work string }
	if op == trace.MailPut && json.Unmarshal(m.Body, &says) == nil {
		e.Note = says.Work // the version for which it is
	}
	b.Log.Add(e)
}

// Hold hides a message that the platform has taken for longer.
func (b *Mailbox) Hold(id string, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		b.all[i].Visible = time.Now().Add(d)
		b.tell(trace.Platform, trace.MailTaken, b.all[i])
	}
}
