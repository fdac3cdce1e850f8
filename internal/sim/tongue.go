package sim

import (
	"encoding/json"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
)

// A tongue understands the requests of one replica by their part in a tick.
type tongue struct {
	mu     sync.Mutex
	claims map[string]string // by lease id: the nonce of its claim
}

// event is what a request says of itself.
func (t *tongue) event(r *http.Request) Event {
	e := Event{Job: path.Base(r.URL.Path), Match: header(r, "If-Match") != ""}
	q := r.URL.Query()
	switch {
	case q.Get("restype") == "container":
		e.Op, e.Job = "container", ""
	case q.Get("comp") == "lease":
		e.Op, e.Lease = header(r, "x-ms-lease-action"), header(r, "x-ms-lease-id")
		switch e.Op {
		case "break":
			if e.Span = -1; header(r, "x-ms-lease-break-period") == "0" {
				e.Span = 0
			}
		case "acquire":
			seconds, _ := strconv.Atoi(header(r, "x-ms-lease-duration"))
			e.Lease, e.Span = header(r, "x-ms-proposed-lease-id"), time.Duration(seconds)*time.Second
		}
	case r.Method == http.MethodHead:
		e.Op = "read"
	case r.Method == http.MethodGet:
		e.Op, e.Lease = "load", header(r, "x-ms-lease-id")
	case r.Method == http.MethodDelete:
		e.Op = "delete"
	default:
		e.Lease, e.Record = header(r, "x-ms-lease-id"), record(r)
		e.Op = t.write(&e, r)
	}
	return e
}

// write tells what a write is for.
func (t *tongue) write(e *Event, r *http.Request) string {
	switch {
	case header(r, "If-None-Match") == "*":
		return "create"
	case r.URL.Query().Get("comp") != "metadata":
		return "save"
	}
	return t.part(e)
}

// part tells what a write of nothing but a record is for.
func (t *tongue) part(e *Event) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claims == nil {
		t.claims = map[string]string{}
	}
	claim := t.claims[e.Lease]
	switch rec := e.Record; {
	case rec == nil:
		return "write"
	case rec.Status == soloist.Running && (claim == "" || claim == rec.Writer):
		t.claims[e.Lease] = rec.Writer
		return "claim"
	case claim == "":
		return "settle"
	case rec.Finished.IsZero():
		return "progress"
	}
	return "finish"
}

// record is the record that a request writes, nil if none.
func record(r *http.Request) *soloist.Record {
	text := header(r, "x-ms-meta-record")
	if text == "" {
		return nil
	}
	rec := new(soloist.Record)
	if json.Unmarshal([]byte(text), rec) != nil {
		return nil
	}
	return rec
}

// header looks a header up that the client library may have set in any case.
func header(r *http.Request, name string) string {
	if v := r.Header.Get(name); v != "" {
		return v
	}
	for k, v := range r.Header {
		if strings.EqualFold(k, name) {
			return strings.Join(v, ",")
		}
	}
	return ""
}
