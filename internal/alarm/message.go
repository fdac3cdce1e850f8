package alarm

import (
	"crypto/rand"
	"encoding/json"
	"time"
)

// margin is how far the times of a message may be from what a replica takes for the service's time: the service dates
// messages in whole seconds, and a replica knows the time no better. A message has come for certain once it is over by
// that much, and is still to come only while more than that is left.
const margin = 5 * time.Second

// A message is the body of a Message, as JSON. Whatever it says, a replica that finds it does what is due: the times only
// show for how long it was visible.
type message struct {
	Schema int       `json:"schema"`
	App    string    `json:"app"`
	ID     string    `json:"id"`
	At     time.Time `json:"at"`              // when it becomes visible
	Tick   time.Time `json:"tick"`            // what it is for, for people
	PutOff int       `json:"putOff,omitzero"` // how often it was visible before its time
	Work   string    `json:"work,omitzero"`   // of Wake: the work of the version that was deployed
	Put    time.Time `json:"put,omitzero"`    // of a message of Wake that was put again: when the queue took it first
}

func newMessage(app string, at, tick time.Time) message {
	return message{Schema: schema, App: app, ID: rand.Text(), At: at.Round(0).UTC(), Tick: tick.Round(0).UTC()}
}

// encode returns the message as JSON. No schedule has a tick beyond the years that JSON can write.
func (m message) encode() []byte {
	b, _ := json.Marshal(m)
	return b
}

// decodeMessage reads the body of a message that was received, and reports whether it is an alarm, of whichever app. A
// newer program may have written it.
func decodeMessage(received *Message) (m message, ok bool) {
	if json.Unmarshal(received.Body, &m) != nil || m.Schema < 1 || m.App == "" {
		return message{}, false
	}
	// No queue hides a message for so long that it becomes visible at At.
	if !received.Inserted.IsZero() && m.At.Sub(received.Inserted) > Longest+24*time.Hour {
		return message{}, false
	}
	return m, true
}

// taken is when the queue took a message of Wake first. It took this one at an instant, zero if that is not known.
func (m *message) taken(inserted time.Time) time.Time {
	switch {
	case !m.Put.IsZero():
		return m.Put
	case !inserted.IsZero():
		return inserted.UTC()
	}
	return m.At
}
