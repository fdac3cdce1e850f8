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

// statuses are the error codes that the service answers here.
var statuses = map[string]int{
	"ConditionNotMet":                    http.StatusPreconditionFailed,
	"NotModified":                        http.StatusNotModified, // travels as ConditionNotMet
	"InvalidHeaderValue":                 http.StatusBadRequest,
	"MissingRequiredHeader":              http.StatusBadRequest,
	"InvalidMetadata":                    http.StatusBadRequest,
	"EmptyMetadataKey":                   http.StatusBadRequest,
	"MetadataTooLarge":                   http.StatusBadRequest,
	"UnsupportedHeader":                  http.StatusBadRequest,
	"InvalidRange":                       http.StatusRequestedRangeNotSatisfiable,
	"InvalidBlobType":                    http.StatusConflict,
	"BlockCountExceedsLimit":             http.StatusConflict,
	"AppendPositionConditionNotMet":      http.StatusPreconditionFailed,
	"OutOfRangeQueryParameterValue":      http.StatusBadRequest,
	"AuthenticationFailed":               http.StatusForbidden,
	"BlobNotFound":                       http.StatusNotFound,
	"ContainerNotFound":                  http.StatusNotFound,
	"BlobAlreadyExists":                  http.StatusConflict,
	"ContainerAlreadyExists":             http.StatusConflict,
	"ContainerBeingDeleted":              http.StatusConflict,
	"LeaseAlreadyPresent":                http.StatusConflict,
	"LeaseIdMismatchWithLeaseOperation":  http.StatusConflict,
	"LeaseNotPresentWithLeaseOperation":  http.StatusConflict,
	"LeaseIsBreakingAndCannotBeAcquired": http.StatusConflict,
	"LeaseIsBreakingAndCannotBeChanged":  http.StatusConflict,
	"LeaseIsBrokenAndCannotBeRenewed":    http.StatusConflict,
	"LeaseIdMissing":                     http.StatusPreconditionFailed,
	"LeaseIdMismatchWithBlobOperation":   http.StatusPreconditionFailed,
	"LeaseNotPresentWithBlobOperation":   http.StatusPreconditionFailed,
	"LeaseLost":                          http.StatusPreconditionFailed,
	"NotImplemented":                     http.StatusNotImplemented,
}

// An Answer is what the service, or what stands in its place, says to a request. It needs no HTTP.
type Answer struct {
	Status  int
	Code    string // the service's error code; empty on success
	Header  http.Header
	Body    []byte
	Date    time.Time // by the clock of who answers
	Entries []Entry   // of a listing without a delimiter in the part of a page, in place of the body

	n        int  // which request it was
	Stranger bool // it is not the service's
	page     *page
}

func accept(status int) Answer { return Answer{Status: status, Header: http.Header{}} }

func refuse(code string) Answer {
	a := Answer{Status: statuses[code], Code: code, Header: http.Header{}}
	if code == "NotModified" {
		a.Code = "ConditionNotMet"
	}
	return a
}

// of adds what every answer about a blob tells.
func (a Answer) of(o *object) Answer {
	a.Header.Set("Etag", o.etag)
	a.Header.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	return a
}

// Response is the answer to an HTTP request.
func (a Answer) Response(r *http.Request) *http.Response {
	h := a.Header
	h.Set("Date", a.Date.UTC().Format(http.TimeFormat)) // HTTP dates have whole seconds
	if a.page != nil {
		a.Body = a.page.text()
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

// version is that of the service which a request names. The client library writes
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

// conditions evaluates If-Match and If-None-Match on a blob, nil when there is
// none.
func (r *Request) conditions(o *object) string {
	match, none := r.Header["if-match"], r.Header["if-none-match"]
	read := r.Op == "get" || r.Op == "head"
	switch {
	case match != "" && (o == nil || match != "*" && match != o.etag):
		return "ConditionNotMet"
	case none == "" || o == nil:
		return ""
	case none == "*" && r.Op == "put":
		return "BlobAlreadyExists"
	case none == o.etag && read:
		return "NotModified"
	case none == o.etag || none == "*":
		return "ConditionNotMet"
	}
	return ""
}

// maxMetadata limits names and values together
// (https://learn.microsoft.com/rest/api/storageservices/set-blob-metadata).
const maxMetadata = 8 << 10

// metadata reads the metadata of a request. A value that does not survive the
// way through the headers as it is breaks the request's signature.
func (r *Request) metadata() (map[string]string, string) {
	meta, size := map[string]string{}, 0
	for header, value := range r.Header {
		name, ok := strings.CutPrefix(header, "x-ms-meta-")
		if !ok {
			continue
		}
		switch {
		case name == "":
			return nil, "EmptyMetadataKey"
		case !identifier(name):
			return nil, "InvalidMetadata"
		case !plain(value):
			return nil, "AuthenticationFailed"
		}
		meta[name] = value
		size += len(name) + len(value)
	}
	if size > maxMetadata {
		return nil, "MetadataTooLarge"
	}
	return meta, ""
}

func identifier(name string) bool {
	for i, c := range name {
		digit := c >= '0' && c <= '9'
		if c != '_' && (c < 'a' || c > 'z') && (!digit || i == 0) {
			return false
		}
	}
	return true
}

func plain(value string) bool {
	for _, c := range value {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return value == strings.TrimSpace(value)
}

func etag(n int) string { return fmt.Sprintf("\"0x8DE%012X\"", n) }

func invented(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }
