package functions

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
)

// maxPayload bounds what the host sends: a timer's payload has a few hundred bytes.
const maxPayload = 1 << 20

// A call is what the host has sent.
type call struct {
	id       string    // of the invocation
	tick     time.Time // that a timer has fired for; zero: not known
	pastDue  bool      // the timer says that it is late
	http     bool      // somebody has called an HTTP trigger
	message  string    // of the queue of alarms; empty: none
	inserted time.Time // when that queue took it; zero: not known
}

// readCall reads the body of an invocation. An empty one is a plain ping. What
// is neither that nor from a trigger that a job can have is refused: a message
// from a queue would be lost without a word.
func readCall(w http.ResponseWriter, r *http.Request, function string) (c call, code int, err error) {
	c.id = format.Brief(r.Header.Get("X-Azure-Functions-InvocationId")) // it goes to the log
	if c.id == "" {
		c.id = newRequest()
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return c, http.StatusRequestEntityTooLarge, fmt.Errorf("a payload of up to %d bytes is wanted", maxPayload)
	}
	if err != nil {
		return c, http.StatusBadRequest, fmt.Errorf("the payload ended early: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return c, http.StatusOK, nil
	}
	var payload struct {
		Data     map[string]json.RawMessage
		Metadata json.RawMessage
	}
	if err := json.Unmarshal(text, &payload); err != nil || text[0] != '{' {
		return c, http.StatusBadRequest, errors.New(`the payload is not the JSON object {"Data":{...},"Metadata":{...}}`)
	}
	for _, name := range slices.Sorted(maps.Keys(payload.Data)) { // in one order: the last timer counts
		known := c.read(name, payload.Data[name])
		switch {
		case !known && function == alarmFunction:
			c.message, c.inserted = unwrapped(payload.Data[name]), insertionOf(payload.Metadata)
		case !known:
			return c, http.StatusBadRequest, fmt.Errorf("the binding %.80q is neither of a timer nor of HTTP: jobs have no other trigger", name)
		}
	}
	return c, http.StatusOK, nil
}

// insertionOf is when a queue took the message that a call is for
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue-trigger#message-metadata).
func insertionOf(metadata json.RawMessage) time.Time {
	var m struct{ InsertionTime json.RawMessage }
	if json.Unmarshal(metadata, &m) != nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, unwrapped(m.InsertionTime))
	if err != nil {
		return time.Time{}
	}
	return t
}

// unwrapped is a message of a queue, which comes as JSON within JSON.
func unwrapped(value json.RawMessage) string {
	for len(value) > 0 && value[0] == '"' {
		var text string
		if json.Unmarshal(value, &text) != nil {
			break
		}
		value = json.RawMessage(text)
	}
	return string(value)
}

// read takes what one binding has brought. The host of other languages writes
// timers in camel case.
func (c *call) read(name string, value json.RawMessage) (known bool) {
	if string(value) == "null" {
		return true
	}
	warm := strings.EqualFold(name, "warmupContext") // whatever it is
	var has struct{ Schedule, ScheduleStatus, IsPastDue, Method, URL json.RawMessage }
	if json.Unmarshal(value, &has) != nil {
		return warm
	}
	switch {
	case has.ScheduleStatus != nil, has.IsPastDue != nil, has.Schedule != nil:
		json.Unmarshal(has.IsPastDue, &c.pastDue)
		c.tick = nextOf(has.ScheduleStatus)
	case has.Method != nil && has.URL != nil, strings.EqualFold(name, "req"):
		c.http = true
	default:
		return warm
	}
	return true
}

// nextOf is the tick that a timer has fired for
// (https://github.com/Azure/azure-webjobs-sdk-extensions/blob/dev/src/WebJobs.Extensions/Extensions/Timers/Scheduling/ScheduleStatus.cs).
// There is none where the host does not monitor the schedule.
func nextOf(status json.RawMessage) time.Time {
	var s struct{ Next string }
	if json.Unmarshal(status, &s) != nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} { // the dates of .NET have a zone or none
		if t, err := time.Parse(layout, s.Next); err == nil && t.Year() > 1 {
			return t.Round(time.Second).UTC()
		}
	}
	return time.Time{}
}

// newRequest names a manual run whose caller has given no name.
func newRequest() string { return "http-" + strings.ToLower(rand.Text()[:12]) }
