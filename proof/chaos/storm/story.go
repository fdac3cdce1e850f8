//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A Story is what happened, as the sink, the service and the parent of the
// processes saw it: all that is judged.
type Story struct {
	Effects  []Effect
	Requests []*trace.Event // that the service has accepted, except reads
	Faults   []Fault
	Exits    []Exit
	Alive    []Exit   // the processes that had not ended
	Reasons  []Reason // that were told

	Unwell []string // what had not recovered in time
}

// What an effect is.
type What string

const (
	Started What = "started"
	Beat    What = "beat"
	Blind   What = "blind" // an effect of a run that has not asked whether it may
	Done    What = "done"  // the effect that a tick is for
	Loaded  What = "loaded"

	// These are no effects: the sink only notes them.
	Blocks What = "blocks" // the run is about to ignore its context
	Late   What = "late"   // a run began that may not believe in its lease
	Ended  What = "ended"
)

// note reports whether w has no effect that could be refused.
func (w What) note() bool { return w == Blocks || w == Late || w == Ended }

// An Effect is what a run reported to the sink.
type Effect struct {
	What     What
	Replica  string
	Job      string
	Tick     time.Time `json:",omitzero"` // zero for a singleton
	Previous time.Time `json:",omitzero"` // what the run was given as the last tick that had succeeded
	Attempt  int
	Try      int
	Token    int64
	Position int       `json:",omitzero"` // of the checkpoint
	Asked    time.Time `json:",omitzero"` // the run believed in its lease after this
	Failed   bool      `json:",omitzero"` // of the end: with an error
	Cause    string    `json:",omitzero"` // of the end

	Got   time.Time // when it came, by the sink
	Stale bool      // refused: the sink had seen a larger token of the job
}

// began reports whether e is the start of a run.
func (e *Effect) began() bool { return e.What == Started || e.What == Late }

// String says whose effect it is.
func (e *Effect) String() string {
	if e.Tick.IsZero() {
		return fmt.Sprintf("%s token %d on %s", e.Job, e.Token, e.Replica)
	}
	return fmt.Sprintf("%s@%s attempt %d try %d token %d on %s", e.Job, e.Tick.UTC().Format(time.TimeOnly), e.Attempt, e.Try, e.Token, e.Replica)
}

// A Fault is an injected fault.
type Fault struct {
	Kind       string
	Replica    string // empty: all, or the service
	Begin, End time.Time
}

// An Exit is the end of a process.
type Exit struct {
	Replica  string
	Start    time.Time
	Listened bool // it got as far as that
	At       time.Time
	Thawed   time.Time `json:",omitzero"` // when a SIGSTOP of it was over last
	Asked    string    `json:",omitzero"` // the signal that was sent, as the fault is called
	AskedAt  time.Time `json:",omitzero"`
	Code     int       // -1: a signal ended it
}

// A scribe writes the story, and a line of JSON for each event.
type scribe struct {
	mu         sync.Mutex
	story      Story
	lines      *json.Encoder
	classifier *world.Classifier
	last       map[string]*record.Record // by job
	told       map[string]Effect         // the last that was accepted, by job
	fence      proctest.Fence
}

func newScribe(w io.Writer) *scribe {
	return &scribe{classifier: new(world.Classifier), lines: json.NewEncoder(w), last: map[string]*record.Record{}, told: map[string]Effect{}, fence: proctest.Fence{}}
}

// effect notes what came to the sink, which accepts it unless it is stale.
func (s *scribe) effect(e Effect) (accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Got = time.Now()
	if !e.What.note() {
		e.Stale = !s.fence.Pass(e.Job, e.Token)
	}
	if !e.Stale && !e.What.note() {
		s.told[e.Job] = e
	}
	s.story.Effects = append(s.story.Effects, e)
	s.lines.Encode(e)
	return !e.Stale
}

// recent is how many outcomes of a record are kept: more than one write adds.
const recent = 10

// heardHTTP notes a request that the service has accepted.
func (s *scribe) heardHTTP(replica string, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := blobtest.Parse(r)
	if err != nil {
		panic(err) // its body is in memory
	}
	s.request(replica, time.Now(), q)
}

// A change is a request that the service has accepted, and when.
type change struct {
	replica string
	at      time.Time
	*blobtest.Request
}

// hear notes all changes since the begin, in place of those that were noted before.
func (s *scribe) hear(all []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.classifier, s.story.Requests = new(world.Classifier), nil
	for _, c := range all {
		s.request(c.replica, c.at, c.Request)
	}
}

// request notes what the service has accepted, except reads and documents.
func (s *scribe) request(replica string, at time.Time, q *blobtest.Request) {
	if strings.HasPrefix(q.Blob, app+"/.log/") {
		return // of outcomes, which records have first
	}
	e := s.classifier.Event(q)
	e.What, e.Replica, e.Status, e.Time = trace.Request, replica, http.StatusOK, at
	switch {
	case e.Job == "", e.OfDocument(), e.Op == "read", e.Op == "load":
		return
	case e.Op == "save":
		e.Note = position(q.Body)
	}
	if e.Record != nil {
		s.last[e.Job] = e.Record
		short := *e.Record
		short.History = short.History[:min(recent, len(short.History))]
		e.Record = &short
	}
	s.story.Requests = append(s.story.Requests, &e)
	s.lines.Encode(e)
}

// position is what a checkpoint says.
func position(checkpoint []byte) string {
	var at struct{ Next int }
	if err := json.Unmarshal(checkpoint, &at); err != nil {
		panic(fmt.Sprintf("a checkpoint that is none: %v: %q", err, checkpoint))
	}
	return fmt.Sprint(at.Next)
}

// record is the one of a job that the service accepted last; zero: none.
func (s *scribe) record(job string) record.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.last[job]; r != nil {
		return *r
	}
	return record.Record{}
}

// heard is the effect of a job that the sink accepted last.
func (s *scribe) heard(job string) Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[job]
}

func (s *scribe) fault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.End = time.Now()
	s.story.Faults = append(s.story.Faults, f)
	s.lines.Encode(f)
}

func (s *scribe) exit(e Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story.Exits = append(s.story.Exits, e)
	s.lines.Encode(e)
}

// sofar is the story up to now.
func (s *scribe) sofar() Story {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.story
}

// end closes the story: what comes later is not in it.
func (s *scribe) end(unwell []string, alive []Exit, reasons []Reason) Story {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.story.Unwell, s.story.Alive, s.story.Reasons = unwell, alive, reasons
	for _, r := range reasons {
		s.lines.Encode(r)
	}
	s.lines = json.NewEncoder(io.Discard)
	story := s.story
	s.story = Story{}
	return story
}
