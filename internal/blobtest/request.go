package blobtest

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Request is an HTTP request as the service sees it.
type Request struct {
	HTTP            *http.Request // nil: it did not come by HTTP
	Op              string        // as in [Op]
	now             time.Time
	Header          map[string]string // by names in lower case: on the wire case means nothing
	container, Blob string
	Body            []byte

	Then *Request // about the same blob, and applied at the same instant: both or neither; the service itself has none. Nil: there is none
}

// NewRequest is a request that comes by no HTTP: op as in [Op], headers as pairs of a name in lower case and a value. A
// listing has the prefix of the names in the place of a blob.
func NewRequest(op, container, blob string, body []byte, headers ...string) *Request {
	r := &Request{Op: op, container: container, Blob: blob, Body: body, Header: make(map[string]string, len(headers)/2)}
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = headers[i+1]
	}
	return r
}

// Parse reads a request.
func Parse(r *http.Request) (*Request, error) {
	req := &Request{HTTP: r, Header: make(map[string]string, len(r.Header))}
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if other, ok := req.Header[name]; ok {
			values = append([]string{other}, values...)
		}
		req.Header[name] = strings.Join(values, ",")
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if !strings.Contains(r.URL.Host, ".blob.") { // the account is in the path, as with Azurite
		_, path, _ = strings.Cut(path, "/")
	}
	req.container, req.Blob, _ = strings.Cut(path, "/")
	req.Op = req.operation()
	if r.Body == nil {
		return req, nil
	}
	defer r.Body.Close()
	var err error
	req.Body, err = io.ReadAll(r.Body)
	return req, err
}

// operation names what the request asks for.
func (r *Request) operation() string {
	var restype, comp string
	for parameter := range strings.SplitSeq(r.HTTP.URL.RawQuery, "&") {
		switch name, value, _ := strings.Cut(parameter, "="); name {
		case "restype":
			restype = cmp.Or(restype, value)
		case "comp":
			comp = cmp.Or(comp, value)
		}
	}
	what := r.HTTP.Method + " " + restype + comp
	if r.Blob == "" {
		switch what {
		case "PUT container":
			return "create container"
		case "DELETE container":
			return "delete container"
		case "GET containerlist":
			return "list"
		}
		return ""
	}
	switch what {
	case "PUT ":
		return "put"
	case "GET ":
		return "get"
	case "HEAD ":
		return "head"
	case "DELETE ":
		return "delete"
	case "PUT metadata":
		return "metadata"
	case "PUT appendblock":
		return "append"
	case "PUT lease":
		return strings.ToLower(r.Header["x-ms-lease-action"])
	}
	return ""
}

// conditions evaluates If-Match and If-None-Match on a blob with an ETag, empty when there is no blob.
func (r *Request) conditions(etag string) string {
	match, none := r.Header["if-match"], r.Header["if-none-match"]
	read := r.Op == "get" || r.Op == "head"
	switch {
	case match != "" && (etag == "" || match != "*" && match != etag):
		return "ConditionNotMet"
	case none == "" || etag == "":
		return ""
	case none == "*" && r.Op == "put":
		return "BlobAlreadyExists"
	case none == etag && read:
		return "NotModified"
	case none == etag || none == "*":
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

// leaseHeaders checks what an operation must and may bring.
func (r *Request) leaseHeaders() string {
	span, id := r.Header["x-ms-lease-duration"], r.Header["x-ms-lease-id"]
	proposed, period := r.Header["x-ms-proposed-lease-id"], r.Header["x-ms-lease-break-period"]
	switch r.Op {
	case "acquire":
		id = ""
		if span == "" {
			return "MissingRequiredHeader"
		}
	case "break":
		id = ""
	default:
		if id == "" {
			return "MissingRequiredHeader"
		}
	}
	if id != "" && guid(id) == "" || proposed != "" && guid(proposed) == "" ||
		span != "" && span != "-1" && !within(span, 15, 60) || period != "" && !within(period, 0, 60) {
		return "InvalidHeaderValue"
	}
	return ""
}

// breakPeriod is negative when the request has none.
func (r *Request) breakPeriod() time.Duration {
	seconds, err := strconv.Atoi(r.Header["x-ms-lease-break-period"])
	if err != nil {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// LeaseID is the lease id in the request; of acquire the proposed one.
func (r *Request) LeaseID() string {
	if r.Op == "acquire" {
		return r.Header["x-ms-proposed-lease-id"]
	}
	return r.Header["x-ms-lease-id"]
}

func within(text string, low, high int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= low && n <= high
}
