package blobtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// status of an error code that the service answers here.
func status(code string) int {
	switch code {
	case "ConditionNotMet", "AppendPositionConditionNotMet", "LeaseIdMissing", "LeaseIdMismatchWithBlobOperation",
		"LeaseNotPresentWithBlobOperation", "LeaseLost":
		return http.StatusPreconditionFailed
	case "NotModified": // travels as ConditionNotMet
		return http.StatusNotModified
	case "InvalidHeaderValue", "MissingRequiredHeader", "InvalidMetadata", "EmptyMetadataKey", "MetadataTooLarge", "UnsupportedHeader",
		"OutOfRangeQueryParameterValue":
		return http.StatusBadRequest
	case "InvalidRange":
		return http.StatusRequestedRangeNotSatisfiable
	case "AuthenticationFailed":
		return http.StatusForbidden
	case "BlobNotFound", "ContainerNotFound":
		return http.StatusNotFound
	case "NotImplemented":
		return http.StatusNotImplemented
	}
	return http.StatusConflict
}

// An Answer is what the service, or what stands in its place, says to a request. It needs no HTTP.
type Answer struct {
	Status  int
	Code    string // the service's error code; empty on success
	Header  http.Header
	Body    []byte
	Date    time.Time // by the clock of who answers
	Entries []Entry   // of a listing without a delimiter in the part of a page, in place of the body

	n        int           // which request it was
	Stranger bool          // it is not the service's
	text     func() []byte // makes the body, if somebody reads it
}

// An Entry is a blob in a listing that comes by no HTTP: an answer to a read of it.
type Entry struct {
	Name string
	Answer
}

func accept(status int) Answer { return Answer{Status: status, Header: http.Header{}} }

func refuse(code string) Answer {
	a := Answer{Status: status(code), Code: code, Header: http.Header{}}
	if code == "NotModified" {
		a.Code = "ConditionNotMet"
	}
	return a
}

// Response is the answer to an HTTP request.
func (a Answer) Response(r *http.Request) *http.Response {
	h := a.Header
	h.Set("Date", a.Date.UTC().Format(http.TimeFormat)) // HTTP dates have whole seconds
	if a.text != nil {
		a.Body = a.text()
	}
	if !a.Stranger {
		h.Set("Server", "soloist/sim")
		h.Set("X-Ms-Request-Id", invented(a.n))
		h.Set("X-Ms-Version", version(r))
	}
	if a.Code != "" {
		h.Set("X-Ms-Error-Code", a.Code)
		h.Set("Content-Type", "application/xml")
		a.Body = fmt.Appendf(nil, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>The simulated service refused.\nRequestId:%s\nTime:%s</Message></Error>",
			a.Code, invented(a.n), a.Date.UTC().Format(time.RFC3339Nano))
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	resp := &http.Response{
		Status: strconv.Itoa(a.Status) + " " + http.StatusText(a.Status), StatusCode: a.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, ContentLength: int64(len(a.Body)), Request: r,
		Body: io.NopCloser(bytes.NewReader(a.Body)),
	}
	if r.Method == http.MethodHead || a.Status == http.StatusNotModified {
		resp.Body = http.NoBody
	}
	return resp
}

// version is the version of the service that a request names. The client library writes
// the names of some headers in lower case.
func version(r *http.Request) string {
	for name, values := range r.Header {
		if strings.EqualFold(name, "x-ms-version") && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// Refused is the answer of a service that refuses a request without having
// applied it: for faults put around [Blob].
func Refused(now time.Time, status int, code string) Answer {
	a := refuse(code)
	a.Status, a.Date = status, now
	return a
}

// Refusal is the response that [Refused] comes to.
func Refusal(r *http.Request, now time.Time, status int, code string) *http.Response {
	return Refused(now, status, code).Response(r)
}

// strangers are the answers of what stands in the place of the service. A web
// server has a page for any request, such as a sign-in page, with an ETag or
// without. A gateway, or a server like S3, has no such route or entry, and says
// so with a code in the body.
var strangers = []struct {
	status           int
	kind, body, etag string
}{
	{http.StatusOK, "text/html; charset=utf-8", "<html>please sign in</html>", ""},
	{http.StatusOK, "text/html; charset=utf-8", "<html>please sign in</html>", `"65b2f1c0-1b"`},
	{http.StatusNotFound, "application/json", `{"error":{"code":"NotFound","message":"no such route"}}`, ""},
	{http.StatusPreconditionFailed, "application/xml", `<?xml version="1.0"?><Error><Code>PreconditionFailed</Code></Error>`, ""},
}

// Strangers is how many answers [ByStranger] has.
var Strangers = len(strangers)

// ByStranger is the answer of what stands in the place of the service, whose clock shows
// now. Each n below [Strangers] is another answer.
func ByStranger(now time.Time, n int) Answer {
	s := strangers[n]
	a := Answer{Status: s.status, Header: http.Header{"Content-Type": {s.kind}, "Server": {"nginx"}}, Body: []byte(s.body), Date: now, Stranger: true}
	if s.etag != "" {
		a.Header.Set("Etag", s.etag)
	}
	return a
}

// part cuts the content to a range, "bytes=FIRST-LAST" or "bytes=FIRST-".
func (a *Answer) part(text string) (code string) {
	if text == "" {
		return ""
	}
	size := len(a.Body)
	first, last := 0, size-1
	n, _ := fmt.Sscanf(text, "bytes=%d-%d", &first, &last)
	switch {
	case n == 0 || first < 0:
		return "InvalidHeaderValue"
	case first >= size:
		return "InvalidRange"
	}
	last = min(last, size-1)
	a.Body, a.Status = a.Body[first:last+1], http.StatusPartialContent
	a.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
	return ""
}

func invented(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }
