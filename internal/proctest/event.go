package proctest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Values of What in events that [Tell] did not print.
const (
	Begins = "begins" // a process of the replica is about to be started
	Log    = "log"    // a line of its log
)

// An Event is a line that a replica has printed: with [Tell], or into its log.
// A log line in JSON sets the fields for which it has attributes.
type Event struct {
	Replica string
	What    string // what the replica reports, as "start", or Log
	Job     string
	Tick    time.Time
	Attempt int
	Token   int64
	Cause   string
	Msg     string // of a log
	URL     string // where the replica listens, as its log says
	Text    string // the whole line of a log

	// At is when the replica printed it, or when the line of a log was read. All
	// processes of a machine share the clock.
	At time.Time
}

// parse reads a line. A log may have an attribute of another type: what can be
// read of it counts.
func parse(replica, line string) Event {
	var e Event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.What == "" {
		e.What, e.Text, e.At = Log, line, time.Now()
	}
	e.Replica = replica
	return e
}

func (f *Fleet) note(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
}

// Events returns what was read so far.
func (f *Fleet) Events() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.events) // it only grows
}

// Await returns the first event that ok accepts of those that no call of Await
// has passed over.
func (f *Fleet) Await(what string, patience time.Duration, ok func(Event) bool) (Event, error) {
	return f.search(&f.awaited, what, patience, ok)
}

// Have is [Fleet.Await] that accepts earlier events, too: events of two replicas
// may be read in either order.
func (f *Fleet) Have(what string, patience time.Duration, ok func(Event) bool) (Event, error) {
	return f.search(new(int), what, patience, ok)
}

// search goes through the events after the first n, and moves n on.
func (f *Fleet) search(n *int, what string, patience time.Duration, ok func(Event) bool) (e Event, err error) {
	err = poll(what, patience, func() bool {
		for all := f.Events(); *n < len(all); {
			e = all[*n]
			if *n++; ok(e) {
				return true
			}
		}
		return false
	})
	return e, err
}

// Poll waits until ok reports true, and fails the test when patience ends first.
func Poll(t testing.TB, what string, patience time.Duration, ok func() bool) {
	t.Helper()
	if err := poll(what, patience, ok); err != nil {
		t.Fatal(err)
	}
}

// poll asks again and again: what is waited for happens in other processes.
func poll(what string, patience time.Duration, ok func() bool) error {
	for late := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			return fmt.Errorf("%s did not come within %s", what, patience)
		}
	}
	return nil
}
