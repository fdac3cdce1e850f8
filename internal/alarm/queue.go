package alarm

import (
	"context"
	"fmt"
	"time"
)

// Longest is the longest that an alarm is invisible. One for a later tick becomes visible after Longest, and the pass that
// it starts sets the next one. Queues of Azure take seven days at most
// (https://learn.microsoft.com/rest/api/storageservices/put-message).
const Longest = 6 * 24 * time.Hour

const callTimeout = 10 * time.Second

// A Queue keeps messages, each of them invisible until its time. Methods may be called by many goroutines at once. A call
// that fails may nevertheless have been applied. A String method of the queue says where it is, which distinguishes two
// queues.
type Queue interface {
	// Put adds a message that becomes visible after hidden, which is zero to seven days. It never expires by itself.
	Put(ctx context.Context, body []byte, hidden time.Duration) (Receipt, error)

	// Receive returns visible messages, at most so many, 1 to 32, and hides them for so long, 1 s to seven days. None is
	// no error.
	Receive(ctx context.Context, most int, hide time.Duration) ([]Message, error)

	// Delete removes a message. It is no error if the message is gone, or was received since the receipt was made.
	Delete(ctx context.Context, r Receipt) error
}

// nameOf returns what a queue says of where it is. Empty: it has no String.
func nameOf(q Queue) string {
	if s, ok := q.(fmt.Stringer); ok {
		return s.String()
	}
	return ""
}

// A Receipt is what it takes to delete a message. It gets old when the message is received again.
type Receipt struct {
	ID  string `json:"id"`
	Pop string `json:"pop"`
}

// A Message is a received message.
type Message struct {
	Receipt
	Body     []byte
	Inserted time.Time // by the service's clock, perhaps cut to whole seconds
	Dequeued int       // how often it was received, this time included
}
