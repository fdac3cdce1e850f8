package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// payloads are what the host, other languages and people send.
var payloads = []string{
	"", " \r\n", "null", "[]", "{", `"tick"`, `{"Data":null}`, `{"Data":[]}`, `{"Data":{},"Metadata":{}}`,
	`{"Data":{"timer":{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00.0000000","Next":"2000-01-01T00:01:00+00:00","LastUpdated":"0001-01-01T00:00:00"},"IsPastDue":false}},"Metadata":{"sys":{"MethodName":"tick","UtcNow":"2000-01-01T00:01:00.0123456Z"}}}`,
	`{"data":{"timer":{"schedule":{"adjustForDST":true},"scheduleStatus":{"last":"2000-01-01T00:00:00+00:00","next":"2000-01-01T00:02:00+00:00"},"isPastDue":true}}}`,
	`{"Data":{"timer":{"Schedule":{},"ScheduleStatus":null,"IsPastDue":false}}}`,
	`{"Data":{"timer":{"ScheduleStatus":{"Next":"9999-12-31T23:59:59.9999999+14:00"}}}}`,
	`{"Data":{"timer":{"ScheduleStatus":{"Next":"0002-01-01T00:00:00"},"IsPastDue":"yes"}}}`,
	`{"Data":{"timer":{"ScheduleStatus":{"Next":7}}}}`,
	`{"Data":{"req":{"Url":"http://localhost/api/beat","Method":"POST","Query":{},"Headers":{},"Params":{}}}}`,
	`{"Data":{"queueItem":"\"HelloWorld\""},"Metadata":{"DequeueCount":"4"}}`,
	`{"Data":{"warmupContext":"{}"}}`, `{"Data":{"warmupContext":{}}}`, `{"Data":{"timer":{"isPastDue":true},"req":{"method":"GET","url":""}}}`,
	`{"Data":{"a":{"` + strings.Repeat(`a":{"`, 200) + `"}}`, strings.Repeat(`{"Data":`, 20000), "{\"Data\":{\"\xff\":null}}\x00",
}

// Whatever is sent to a function is answered, and soon. What is refused runs
// nothing and leaves the record as it is, byte for byte.
func FuzzInvocation(f *testing.F) {
	for i, payload := range payloads {
		f.Add(byte(i), "24ad4c06-24ad-4e5b-8294-3da9714877e9", i%2 == 0, []byte(payload))
	}
	f.Add(byte(1), strings.Repeat("é\n", 5000), false, []byte(payloads[15]))
	f.Fuzz(func(t *testing.T, function byte, id string, chunked bool, payload []byte) {
		bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
			s := newSent(t)
			s.send([]string{"tick", "beat", "warmup", "BEAT"}[function%4], id, chunked, payload)
		})
	})
}

func TestLargePayloads(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		s := newSent(t)
		for _, chunked := range []bool{false, true} {
			for _, size := range []int{1 << 20, 1<<20 + 1, 10 << 20} {
				s.send("beat", "", chunked, bytes.Repeat([]byte{' '}, size))
			}
		}
		wantEqual(t, "runs, of the largest payload", len(s.runs), 1)
	})
}

// sent is a program whose one job has a tick due.
type sent struct {
	site
	t     *testing.T
	store *local.Memory
	runs  []time.Duration // how long after its tick each began
}

func newSent(t *testing.T) *sent {
	s := &sent{t: t, store: &local.Memory{}}
	s.site = open(t, host.Program{Store: s.store, Work: []soloist.Work{
		soloist.Job{Name: "beat", Schedule: "@every 1m", Do: func(_ context.Context, r *soloist.Run) error {
			s.runs = append(s.runs, time.Since(r.Tick))
			return nil
		}},
	}})
	if code, _ := s.send("tick", "", false, nil); code != http.StatusOK {
		t.Fatalf("got code %d", code)
	}
	time.Sleep(61 * time.Second)
	return s
}

func (s *sent) record() string {
	e, err := s.store.Read(s.t.Context(), "demo/beat")
	if err != nil {
		return err.Error()
	}
	return string(e.Record)
}

// send makes an invocation and checks what holds for all.
func (s *sent) send(function, id string, chunked bool, payload []byte) (int, string) {
	begin, before, runs := time.Now(), s.record(), len(s.runs)
	var body io.Reader = bytes.NewReader(payload)
	if chunked {
		body = io.MultiReader(body) // its length is not known
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7071/"+function, body)
	r.Header["X-Azure-Functions-Invocationid"] = []string{id}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	s.wait()
	var answer struct {
		Outputs map[string]any
		Logs    []string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Outputs == nil || answer.Logs == nil {
		s.t.Errorf("%d %s, %v: the host would wait for an answer that it understands", w.Code, w.Body, err)
	}
	text := bytes.TrimSpace(payload)
	want := http.StatusBadRequest
	switch {
	case len(payload) > 1<<20:
		want = http.StatusRequestEntityTooLarge
	case len(text) == 0, json.Valid(text) && text[0] == '{' && w.Code == http.StatusOK:
		want = http.StatusOK
	}
	if w.Code != want {
		s.t.Errorf("got code %d, want %d: %s", w.Code, want, w.Body)
	}
	if took := time.Since(begin); took > 2*time.Minute {
		s.t.Errorf("it took %s", took)
	}
	if w.Code != http.StatusOK && (len(s.runs) > runs || s.record() != before) {
		s.t.Errorf("refused, but %d runs began, and of\n%s\nbecame\n%s", len(s.runs)-runs, before, s.record())
	}
	for _, late := range s.runs {
		if late < 0 {
			s.t.Errorf("a run began %s before its tick", -late)
		}
	}
	if len(s.runs) > runs+2 {
		s.t.Errorf("%d runs began", len(s.runs)-runs)
	}
	return w.Code, w.Body.String()
}
