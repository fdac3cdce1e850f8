package functions

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A call of the queue of alarms says when that took the message, as JSON or as JSON within JSON. What cannot be read is not known.
func TestInsertionOfMessage(t *testing.T) {
	at := time.Date(2019, 10, 9, 17, 58, 31, 0, time.UTC)
	for metadata, want := range map[string]time.Time{
		`{"InsertionTime":"2019-10-09T17:58:31+00:00"}`:     at,
		`{"InsertionTime":"\"2019-10-09T19:58:31+02:00\""}`: at,
		`{"InsertionTime":"soon"}`:                          {},
		`{"InsertionTime":7}`:                               {},
		`{"DequeueCount":"1"}`:                              {},
		`7`:                                                 {},
	} {
		r := httptest.NewRequest("POST", "/alarm", strings.NewReader(`{"Data":{"alarm":"\"{}\""},"Metadata":`+metadata+`}`))
		c, code, err := readCall(httptest.NewRecorder(), r, alarmFunction)
		if err != nil || code != 200 || c.message != "{}" || !c.inserted.Equal(want) {
			t.Errorf("%s: got %q, inserted at %s, code %d, %v", metadata, c.message, c.inserted, code, err)
		}
	}
}
