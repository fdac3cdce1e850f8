package states_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/soloist-go/soloist/internal/blobtest"
)

// ids are those of clients, in their canonical form.
var ids = []string{
	"aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
	"bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb",
	"cccccccc-cccc-4ccc-8ccc-cccccccccccc",
}

// A service is the simulated one, called by plain HTTP, beside the blob that it
// should have.
type service struct {
	blob
	sim *blobtest.Blob
	t   *rapid.T
}

func newService(t *rapid.T, tab table) *service {
	s := &service{t: t, blob: newBlob(tab)}
	s.sim = &blobtest.Blob{Now: func() time.Time { return s.now }}
	s.must(http.StatusCreated, s.send("PUT", "?restype=container", "", nil))
	return s
}

// An answer is a response whose body is read.
type answer struct {
	*http.Response
	body string
}

func (a answer) code() string { return a.Header.Get("x-ms-error-code") }

// send makes one request of the blob, or of its container if what says so.
func (s *service) send(method, what, body string, header map[string]string) answer {
	path := "box/app/job" + what
	if strings.Contains(what, "restype") {
		path = "box" + what
	}
	r, err := http.NewRequest(method, "https://sim.blob.core.windows.net/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := s.sim.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp, string(text)}
}

func (s *service) must(status int, a answer) {
	s.t.Helper()
	if a.StatusCode != status {
		s.t.Fatalf("%s %s: got %d %s, want %d", a.Request.Method, a.Request.URL.RequestURI(), a.StatusCode, a.code(), status)
	}
}

// refused checks that the answer is one of the cells, each a refusal.
func (s *service) refused(a answer, what string, cells ...cell) {
	s.t.Helper()
	for _, c := range cells {
		if a.StatusCode == c.status && (a.code() == c.code || c.code == "" && strings.HasPrefix(a.code(), "Lease")) {
			return
		}
	}
	s.t.Fatalf("%s while %s: got %d %s, want one of %v", what, s.state, a.StatusCode, a.code(), cells)
}

// The refusals that do not come from the table.
var (
	notMet   = cell{status: http.StatusPreconditionFailed, code: "ConditionNotMet"}
	notFound = cell{status: http.StatusNotFound, code: "BlobNotFound"}
	exists   = cell{status: http.StatusConflict, code: "BlobAlreadyExists"}
	missing  = cell{status: http.StatusBadRequest, code: "MissingRequiredHeader"}
	invalid  = cell{status: http.StatusBadRequest, code: "InvalidHeaderValue"}
)

// judge checks the answer to a try under a condition that holds or does not, and
// applies it to the blob. It reports whether the service should have done it.
func (s *service) judge(t try, holds bool, success int, a answer) bool {
	s.t.Helper()
	what := fmt.Sprintf("%+v (%s)", t, s.row(t))
	if !s.exists {
		s.refused(a, what, notFound)
		return false
	}
	c := s.expect(t)
	switch {
	case c.status > 0 && !holds: // the pages do not say which is judged first
		s.refused(a, what, c, notMet)
		return false
	case c.status > 0:
		s.refused(a, what, c)
		return false
	case !holds:
		s.refused(a, what, notMet)
		return false
	case a.StatusCode != success || a.code() != "":
		s.t.Fatalf("%s while %s: got %d %s, want %d", what, s.state, a.StatusCode, a.code(), success)
	}
	s.apply(t, c, cmp.Or(t.id, strings.ToLower(a.Header.Get("x-ms-lease-id"))))
	return true
}

// check compares what a read tells with what it should.
func (s *service) check(*rapid.T) {
	s.t.Helper()
	a := s.send("GET", "", "", nil)
	if !s.exists {
		s.refused(a, "read", notFound)
		return
	}
	s.must(http.StatusOK, a)
	status, duration := "unlocked", ""
	if s.live() {
		status = "locked"
	}
	if s.state == "leased" {
		if duration = "fixed"; s.span == infinite {
			duration = "infinite"
		}
	}
	for name, want := range map[string]string{
		"x-ms-lease-state": s.state, "x-ms-lease-status": status, "x-ms-lease-duration": duration, "x-ms-lease-id": "",
		"ETag": s.etag, "x-ms-meta-record": s.record, "Date": s.now.Format(http.TimeFormat),
	} {
		if got := a.Header.Get(name); got != want {
			s.t.Fatalf("%s: got %q, want %q", name, got, want)
		}
	}
	if a.body != s.body {
		s.t.Fatalf("content: got %q, want %q", a.body, s.body)
	}
}
