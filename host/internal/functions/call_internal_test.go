package functions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

func readPayload(function string, payload []byte) (call, int, error) {
	r := httptest.NewRequest(http.MethodPost, "/"+function, bytes.NewReader(payload))
	r.Header.Set("X-Azure-Functions-InvocationId", "1")
	return readCall(httptest.NewRecorder(), r, function)
}

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
		c, code, err := readPayload(alarmFunction, []byte(`{"Data":{"alarm":"\"{}\""},"Metadata":`+metadata+`}`))
		if err != nil || code != http.StatusOK || c.message != "{}" || !c.inserted.Equal(want) {
			t.Errorf("%s: got %q, inserted at %s, code %d, %v", metadata, c.message, c.inserted, code, err)
		}
	}
}

// A timer's payload says the same in either casing, with its dates in any zone.
func FuzzTimerPayload(f *testing.F) {
	f.Add(int64(946684800), uint32(0), int16(0), "timer", false, false)
	f.Add(int64(1772704800), uint32(21051), int16(60), "myTimer", true, false)
	f.Add(int64(1772704800), uint32(9999999), int16(-720), "req", true, true)
	f.Add(int64(-62135596800), uint32(0), int16(0), "warmupContext", false, true)
	f.Add(int64(1772704800), uint32(0), int16(0), "WarmupContext", true, false)
	f.Add(int64(253402300799), uint32(5000000), int16(840), "", false, false)
	f.Fuzz(func(t *testing.T, sec int64, fraction uint32, offset int16, name string, pastDue, zoneless bool) {
		zone := time.FixedZone("", int(offset%840)*60)
		at := time.Unix(sec, int64(fraction%1e7)*100).In(zone)
		if zoneless {
			at = at.UTC()
		}
		if y := at.Year(); y < 1 || y > 9999 || !at.Equal(at.UTC()) || at.UTC().Year() < 1 {
			return // .NET has no other dates
		}
		layout := "2006-01-02T15:04:05.0000000-07:00"
		if zoneless {
			layout = "2006-01-02T15:04:05.0000000"
		}
		binding, _ := json.Marshal(name)
		pascal := fmt.Sprintf(`{"Data":{%s:{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00","Next":%q},"IsPastDue":%t}},"Metadata":{}}`,
			binding, at.Format(layout), pastDue)
		want := call{id: "1", pastDue: pastDue, tick: at.Round(time.Second).UTC()}
		if at.Year() == 1 { // the first date of .NET stands for none
			want.tick = time.Time{}
		}
		camel := regexp.MustCompile(`"[A-Z]`).ReplaceAllStringFunc(pascal, strings.ToLower)
		for _, payload := range []string{pascal, camel} {
			got, code, err := readPayload("work", []byte(payload))
			if err != nil || code != http.StatusOK || got != want {
				t.Errorf("%s: got %+v, %d, %v, want %+v", payload, got, code, err, want)
			}
		}
	})
}

// What is read of a payload does not depend on blanks, on the order of what it
// has, or on the moment.
func FuzzReadCall(f *testing.F) {
	for _, payload := range []string{
		"", "null", "{}", `{"Data":{"a":null,"b":{"IsPastDue":true},"req":{}}}`, `{"Data":{"a":{"ScheduleStatus":{"Next":"2000-01-01T00:00:00Z"}},"b":{"ScheduleStatus":null}}}`,
		`{"Data":{"a":{"isPastDue":true,"IsPastDue":false}}}`, `{"Data":{"queue":"x","timer":{"Schedule":{}}}}`, `{"data":{},"Data":{"x":1}}`,
	} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, code, err := readPayload("work", payload)
		if (err == nil) != (code == http.StatusOK) {
			t.Errorf("got %d, %v", code, err)
		}
		if err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("the error is %q", err)
		}
		if !got.tick.IsZero() && (got.tick.Nanosecond() != 0 || got.tick.Location() != time.UTC) {
			t.Errorf("got the tick %v", got.tick)
		}
		var spaced bytes.Buffer
		if json.Indent(&spaced, payload, "\r\n", "\t") != nil {
			return
		}
		for range 10 {
			again, c, _ := readPayload("work", spaced.Bytes())
			if c != code || c == http.StatusOK && again != got {
				t.Fatalf("%s: got %+v, %d, then %+v, %d", payload, got, code, again, c)
			}
		}
	})
}
