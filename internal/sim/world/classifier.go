package world

import (
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A Classifier understands the requests of one replica by their part in a tick.
type Classifier struct {
	mu     sync.Mutex
	claims map[string]*record.Record // by lease id: what its claim wrote
	last   map[string]*record.Record // by lease id: what was written last
}

// Event is what a request says of itself.
func (t *Classifier) Event(r *blobtest.Request) trace.Event {
	e := trace.Event{Op: r.Op, Job: path.Base(r.Blob), Lease: r.LeaseID(), Match: r.Header["if-match"] != ""}
	switch document := strings.HasPrefix(e.Job, "."); r.Op {
	case "": // not for the service: a fetch of a token
		e.Op, e.Job = "token", ""
	case "create container", "delete container":
		e.Op, e.Job = "container", ""
	case "list":
		e.Job = ""
	case "break":
		if e.Match {
			e.Op = "replace"
			break
		}
		if e.Span = -1; r.Header["x-ms-lease-break-period"] == "0" {
			e.Span = 0
		}
	case "acquire":
		seconds, _ := strconv.Atoi(r.Header["x-ms-lease-duration"])
		e.Span = time.Duration(seconds) * time.Second
	case "head":
		e.Op = "read"
	case "get":
		if e.Op = "load"; document {
			e.Op, e.Match = "read document", r.Header["if-none-match"] != ""
		}
	case "put", "metadata":
		if document {
			e.Op = "write document"
			break
		}
		e.Record = decode(r.Header[MetaKey])
		e.Op = t.write(&e, r)
	}
	return e
}

// write returns what a write is for.
func (t *Classifier) write(e *trace.Event, r *blobtest.Request) string {
	switch {
	case r.Header["if-none-match"] == "*":
		return "create"
	case r.Op == "put":
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.last[e.Lease] != nil { // the claim came first
			t.last[e.Lease] = e.Record
		}
		return "save"
	}
	return t.part(e)
}

// part returns what a write of only a record is for.
func (t *Classifier) part(e *trace.Event) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claims == nil {
		t.claims, t.last = map[string]*record.Record{}, map[string]*record.Record{}
	}
	claim, last := t.claims[e.Lease], t.last[e.Lease]
	t.last[e.Lease] = e.Record
	switch rec := e.Record; {
	case rec == nil:
		return "write"
	// A lease that is kept for the next tick has several claims.
	case rec.Run.Status == event.Running && (claim == nil || claim.Writer == rec.Writer || rec.Token > claim.Token):
		t.claims[e.Lease] = rec
		return "claim"
	case claim == nil:
		return "settle"
	case rec.Beats() > 0 && tellsNothing(rec, last):
		return "beat"
	case tellsBefore(rec, claim):
		return "take back"
	case rec.Run.Finished.IsZero():
		return "progress"
	}
	return "finish"
}

// tellsNothing reports whether a write says nothing but that its writer is alive.
func tellsNothing(rec, last *record.Record) bool {
	if last == nil {
		return false
	}
	same := *last
	same.Writer = rec.Writer
	return reflect.DeepEqual(*rec, same)
}

// tellsBefore reports whether a write repeats the run before a claim. The outcome of a run
// that was claimed before its tick shows the tick as the time of the claim.
func tellsBefore(rec, claim *record.Record) bool {
	if claim.Run.Armed {
		return !rec.Run.Tick.Equal(claim.Run.Tick) || rec.Run.Attempt != claim.Run.Attempt
	}
	return !rec.Run.Claimed.Equal(claim.Run.Claimed)
}

// decode returns the record in a text, even if no replica may use it, or nil.
func decode(text string) *record.Record {
	rec, _ := record.Decode([]byte(text), "", "")
	if rec.App == "" {
		return nil
	}
	return &rec
}
