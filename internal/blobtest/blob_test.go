package blobtest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
)

const (
	idA = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	idB = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
)

// service is a Blob service with a clock that the test moves.
type service struct {
	*blobtest.Blob
	t   *testing.T
	now time.Time
}

func newService(t *testing.T) *service {
	s := &service{t: t, now: time.Date(2026, 3, 29, 1, 0, 0, 400e6, time.UTC)}
	s.Blob = &blobtest.Blob{Now: func() time.Time { return s.now }}
	return s
}

// do sends a request; headers come as "name: value".
func (s *service) do(method, path string, headers ...string) (code string, resp *http.Response) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "https://sim.blob.core.windows.net/"+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header[name] = []string{value} // not canonical, as the client library sets them
	}
	resp, err = s.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.Header.Get("x-ms-error-code"), resp
}

func (s *service) must(method, path string, headers ...string) *http.Response {
	s.t.Helper()
	code, resp := s.do(method, path, headers...)
	if code != "" {
		s.t.Fatalf("%s %s %q: %d %s", method, path, headers, resp.StatusCode, code)
	}
	return resp
}

func (s *service) lease(action string, headers ...string) (string, *http.Response) {
	s.t.Helper()
	return s.do("PUT", "box/app/job?comp=lease", append(headers, "x-ms-lease-action: "+action)...)
}

func (s *service) state() string {
	s.t.Helper()
	return s.must("HEAD", "box/app/job").Header.Get("x-ms-lease-state")
}

// withBlob makes the container and the blob.
func withBlob(t *testing.T) *service {
	s := newService(t)
	s.must("PUT", "box?restype=container")
	s.must("PUT", "box/app/job", "x-ms-blob-type: BlockBlob", "x-ms-meta-record: one")
	return s
}

// in brings the lease of A into a state.
func in(t *testing.T, state string) *service {
	s := withBlob(t)
	take := func(span string) {
		s.lease("acquire", "x-ms-lease-duration: "+span, "x-ms-proposed-lease-id: "+idA)
	}
	switch state {
	case "leased":
		take("60")
	case "infinite":
		take("-1")
	case "breaking":
		take("60")
		s.lease("break", "x-ms-lease-break-period: 50")
	case "broken":
		take("60")
		s.lease("break", "x-ms-lease-break-period: 0")
	case "expired":
		take("15")
		s.now = s.now.Add(15 * time.Second)
	}
	want := state
	if state == "infinite" {
		want = "leased"
	}
	if got := s.state(); got != want {
		t.Fatalf("state %s, want %s", got, want)
	}
	return s
}

func TestRequests(t *testing.T) {
	tests := []struct {
		name, method, path string
		headers            []string
		status             int
		code               string
	}{
		{"read", "HEAD", "box/app/job", nil, 200, ""},
		{"content", "GET", "box/app/job", nil, 200, ""},
		{"content of this etag", "GET", "box/app/job", []string{"If-Match: <etag>"}, 200, ""},
		{"content of another etag", "GET", "box/app/job", []string{"If-Match: \"0x0\""}, 412, "ConditionNotMet"},
		{"content of no blob", "GET", "box/app/none", []string{"If-Match: \"0x0\""}, 404, "BlobNotFound"},
		{"unchanged", "HEAD", "box/app/job", []string{"If-None-Match: <etag>"}, 304, "ConditionNotMet"},
		{"no blob", "HEAD", "box/app/none", nil, 404, "BlobNotFound"},
		{"no container", "HEAD", "none/app/job", nil, 404, "ContainerNotFound"},
		{"create in no container", "PUT", "none/app/job", []string{"x-ms-blob-type: BlockBlob"}, 404, "ContainerNotFound"},
		{"container exists", "PUT", "box?restype=container", nil, 409, "ContainerAlreadyExists"},
		{"create", "PUT", "box/app/new", []string{"x-ms-blob-type: BlockBlob", "If-None-Match: *"}, 201, ""},
		{"exists", "PUT", "box/app/job", []string{"x-ms-blob-type: BlockBlob", "If-None-Match: *"}, 409, "BlobAlreadyExists"},
		{"overwrite", "PUT", "box/app/job", []string{"x-ms-blob-type: BlockBlob"}, 201, ""},
		{"without type", "PUT", "box/app/job", nil, 400, "MissingRequiredHeader"},
		{"page blob", "PUT", "box/app/job", []string{"x-ms-blob-type: PageBlob"}, 400, "InvalidHeaderValue"},
		{"metadata", "PUT", "box/app/job?comp=metadata", []string{"x-ms-meta-record: two", "If-Match: <etag>"}, 200, ""},
		{"metadata of another etag", "PUT", "box/app/job?comp=metadata", []string{"If-Match: \"0x0\""}, 412, "ConditionNotMet"},
		{"largest metadata", "PUT", "box/app/job?comp=metadata", []string{"x-ms-meta-record: " + strings.Repeat("x", 8<<10-6)}, 200, ""},
		{"too much metadata", "PUT", "box/app/job?comp=metadata", []string{"x-ms-meta-record: " + strings.Repeat("x", 8<<10-5)}, 400, "MetadataTooLarge"},
		{"metadata name", "PUT", "box/app/job?comp=metadata", []string{"x-ms-meta-a-b: x"}, 400, "InvalidMetadata"},
		{"accent", "PUT", "box/app/job?comp=metadata", []string{"x-ms-meta-record: caf\u00e9"}, 403, "AuthenticationFailed"},
		{"trailing space", "PUT", "box/app/job?comp=metadata", []string{"x-ms-meta-record: x "}, 403, "AuthenticationFailed"},
		{"lease on another etag", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 15", "If-Match: \"0x0\""}, 412, "ConditionNotMet"},
		{"lease on this etag", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 15", "If-Match: <etag>"}, 201, ""},
		{"lease on no blob", "PUT", "box/app/none?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 15"}, 404, "BlobNotFound"},
		{"lease in no container", "PUT", "none/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 15"}, 404, "ContainerNotFound"},
		{"no action", "PUT", "box/app/job?comp=lease", nil, 501, "NotImplemented"},
		{"no duration", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire"}, 400, "MissingRequiredHeader"},
		{"14 s", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 14"}, 400, "InvalidHeaderValue"},
		{"no time", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 0"}, 400, "InvalidHeaderValue"},
		{"-2 s", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: -2"}, 400, "InvalidHeaderValue"},
		{"15s", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 15s"}, 400, "InvalidHeaderValue"},
		{"61 s", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 61"}, 400, "InvalidHeaderValue"},
		{"infinite", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: -1"}, 201, ""},
		{"not a GUID", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: acquire", "x-ms-lease-duration: 15", "x-ms-proposed-lease-id: me"}, 400, "InvalidHeaderValue"},
		{"change", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: change", "x-ms-lease-id: " + idA}, 501, "NotImplemented"}, // no program uses it
		{"renew without id", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: renew"}, 400, "MissingRequiredHeader"},
		{"release without id", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: release"}, 400, "MissingRequiredHeader"},
		{"break after 61 s", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: break", "x-ms-lease-break-period: 61"}, 400, "InvalidHeaderValue"},
		{"break after -1 s", "PUT", "box/app/job?comp=lease", []string{"x-ms-lease-action: break", "x-ms-lease-break-period: -1"}, 400, "InvalidHeaderValue"},
		{"delete", "DELETE", "box/app/job", nil, 202, ""},
		{"delete container", "DELETE", "box?restype=container", nil, 202, ""},
		{"list", "GET", "box?restype=container&comp=list", nil, 200, ""},
		{"list of no container", "GET", "none?restype=container&comp=list", nil, 404, "ContainerNotFound"},
		{"list with snapshots", "GET", "box?restype=container&comp=list&include=snapshots", nil, 400, "OutOfRangeQueryParameterValue"},
		{"list of no results", "GET", "box?restype=container&comp=list&maxresults=0", nil, 400, "OutOfRangeQueryParameterValue"},
		{"append blob", "PUT", "box/app/log", []string{"x-ms-blob-type: AppendBlob"}, 201, ""},
		{"append to a block blob", "PUT", "box/app/job?comp=appendblock", nil, 409, "InvalidBlobType"},
		{"append to no blob", "PUT", "box/app/none?comp=appendblock", nil, 404, "BlobNotFound"},
		{"part beyond the end", "GET", "box/app/job", []string{"x-ms-range: bytes=100-101"}, 416, "InvalidRange"},
		{"no part", "GET", "box/app/job", []string{"x-ms-range: some"}, 400, "InvalidHeaderValue"},
		{"tags", "PUT", "box/app/job?comp=tags", nil, 501, "NotImplemented"},
		{"part", "GET", "box/app/job", []string{"Range: bytes=0-1"}, 400, "UnsupportedHeader"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := withBlob(t)
			etag := s.must("HEAD", "box/app/job").Header.Get("ETag")
			for i := range tt.headers {
				tt.headers[i] = strings.ReplaceAll(tt.headers[i], "<etag>", etag)
			}
			code, resp := s.do(tt.method, tt.path, tt.headers...)
			if resp.StatusCode != tt.status || code != tt.code {
				t.Errorf("got %d %s, want %d %s", resp.StatusCode, code, tt.status, tt.code)
			}
			log := s.Log()
			if last := log[len(log)-1]; last.Status != tt.status || last.Code != tt.code {
				t.Errorf("log says %+v", last)
			}
		})
	}
}

func TestADeletedContainerKeepsItsName(t *testing.T) {
	s := withBlob(t)
	s.must("DELETE", "box?restype=container")
	if code, _ := s.do("HEAD", "box/app/job"); code != "ContainerNotFound" {
		t.Errorf("read: %s", code)
	}
	s.now = s.now.Add(30*time.Second - 1)
	if code, _ := s.do("PUT", "box?restype=container"); code != "ContainerBeingDeleted" {
		t.Errorf("create before 30 s: %s", code)
	}
	s.now = s.now.Add(1)
	if code, _ := s.do("PUT", "box?restype=container"); code != "" {
		t.Errorf("create after 30 s: %s", code)
	}
	if code, _ := s.do("HEAD", "box/app/job"); code != "BlobNotFound" {
		t.Errorf("its blobs came back: %s", code)
	}
}
