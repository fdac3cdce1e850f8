// Package blobtest is the Azure Blob service in memory, as documented: the part
// of its REST interface that a lease on a blob needs. The real client library runs
// over it, in real or in virtual time. The simulation and the tests of the adapters
// share it; faults are put around it.
package blobtest

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Blob is a Blob service of one account in memory. It is an
// [http.RoundTripper].
//
// It follows the tables of the Lease Blob operation
// (https://learn.microsoft.com/rest/api/storageservices/lease-blob) and the
// list of Blob service error codes
// (https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes).
// Authorization is not looked at. A request that it does not model is refused,
// never guessed.
type Blob struct {
	Now  func() time.Time // the service's clock; nil: time.Now
	Tell func(Op)         // called with each request, one at a time; nil: [Blob.Log] keeps them

	mu         sync.Mutex
	containers map[string]*container
	log        []Op
	requests   int
	etags      int
}

// An Op is one request, in the order in which the service applied them.
type Op struct {
	Time   time.Time
	Op     string // "put", "get", "head", "append", "metadata", "delete", "acquire", "renew", "change", "release", "break", "create container", "delete container", "list", "unknown"
	Blob   string // container/blob
	Lease  string // the lease id in the request; of acquire the proposed one
	ETag   string // of the blob afterwards
	Status int
	Code   string // the service's error code; empty on success
}

type container struct {
	blobs map[string]*object
	gone  time.Time // deleted then
}

type object struct {
	etag              string
	created, modified time.Time
	meta              map[string]string
	body              []byte
	mediaType         string
	kind              string // BlockBlob or AppendBlob
	blocks            int    // of an AppendBlob
	lease             lease
}

// A Request is an HTTP request as the service sees it.
type Request struct {
	HTTP            *http.Request // nil: it did not come by HTTP
	Op              string        // as in [Op]
	now             time.Time
	Header          map[string]string // by names in lower case: on the wire case means nothing
	container, Blob string
	Body            []byte
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

// deletion is how long the name of a deleted container is refused
// (https://learn.microsoft.com/rest/api/storageservices/delete-container).
const deletion = 30 * time.Second

// Do makes it a transport of the client library.
func (b *Blob) Do(r *http.Request) (*http.Response, error) { return b.RoundTrip(r) }

// RoundTrip applies one request, unless its context has ended.
func (b *Blob) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	req, err := Parse(r)
	if err != nil {
		return nil, err
	}
	return b.Serve(req), nil
}

// Handler is an HTTP server of the service that do reaches: the method of a Blob, or
// of what stands before one. An error of it breaks the connection.
func Handler(do func(*http.Request) (*http.Response, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.URL.Host = r.Host
		resp, err := do(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}
}

// Serve applies one request, also if its caller has given up.
func (b *Blob) Serve(r *Request) *http.Response { return b.Answer(r).Response(r.HTTP) }

// Answer is Serve without HTTP.
func (b *Blob) Answer(r *Request) Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.now = time.Now()
	if b.Now != nil {
		r.now = b.Now()
	}
	a := b.apply(r)
	b.requests++
	a.Date, a.n = r.now, b.requests
	b.tell(Op{
		Time: r.now, Op: r.Op, Blob: r.container + "/" + r.Blob,
		Lease: r.LeaseID(), ETag: a.Header.Get("Etag"), Status: a.Status, Code: a.Code,
	})
	return a
}

func (b *Blob) tell(op Op) {
	if b.Tell != nil {
		b.Tell(op)
	} else {
		b.log = append(b.log, op)
	}
}

// Log returns a copy of all operations so far.
func (b *Blob) Log() []Op {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Op(nil), b.log...)
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

// unmodelled are headers that would change what a request means.
var unmodelled = []string{"if-modified-since", "if-unmodified-since", "range", "x-ms-if-tags", "x-ms-copy-source"}

func (b *Blob) apply(r *Request) Answer {
	for _, name := range unmodelled {
		if r.Header[name] != "" {
			return refuse("UnsupportedHeader")
		}
	}
	switch r.Op {
	case "create container":
		return b.createContainer(r)
	case "delete container":
		return b.deleteContainer(r)
	case "list":
		return b.list(r)
	case "put", "get", "head", "delete", "metadata", "append":
		return b.onBlob(r)
	case "acquire", "renew", "change", "release", "break":
		return b.onLease(r)
	}
	r.Op = "unknown"
	return refuse("NotImplemented")
}

func (b *Blob) createContainer(r *Request) Answer {
	if c := b.containers[r.container]; c != nil && c.gone.IsZero() {
		return refuse("ContainerAlreadyExists")
	} else if c != nil && r.now.Before(c.gone.Add(deletion)) {
		return refuse("ContainerBeingDeleted")
	}
	if b.containers == nil {
		b.containers = map[string]*container{}
	}
	b.containers[r.container] = &container{blobs: map[string]*object{}}
	return accept(http.StatusCreated)
}

// deleteContainer succeeds whatever leases its blobs are under.
func (b *Blob) deleteContainer(r *Request) Answer {
	c := b.containers[r.container]
	if c == nil || !c.gone.IsZero() {
		return refuse("ContainerNotFound")
	}
	c.gone = r.now
	return accept(http.StatusAccepted)
}

// find returns the container and, when there is one, the blob of a request.
func (b *Blob) find(r *Request) (*container, *object) {
	c := b.containers[r.container]
	if c == nil || !c.gone.IsZero() {
		return nil, nil
	}
	o := c.blobs[r.Blob]
	if o != nil {
		o.lease.settle(r.now)
	}
	return c, o
}

// onBlob does what the state of a lease allows or forbids. The lease is judged
// before the conditions: an If-None-Match on a leased blob ends in
// LeaseIdMissing (https://github.com/Azure/Azurite/issues/2637).
func (b *Blob) onBlob(r *Request) Answer {
	c, o := b.find(r)
	switch {
	case c == nil:
		return refuse("ContainerNotFound")
	case o == nil && r.Op != "put":
		return refuse("BlobNotFound")
	}
	write := r.Op != "get" && r.Op != "head"
	var l lease
	if o != nil {
		l = o.lease
	} else {
		l.state = available
	}
	if id := r.LeaseID(); id != "" && guid(id) == "" {
		return refuse("InvalidHeaderValue")
	} else if code := l.guard(guid(id), write); code != "" {
		return refuse(code)
	}
	if code := r.conditions(o); code != "" {
		return refuse(code)
	}
	switch r.Op {
	case "put":
		return b.put(r, c, o)
	case "append":
		return b.append(r, o)
	case "metadata":
		return b.setMetadata(r, o)
	case "delete":
		delete(c.blobs, r.Blob)
		return accept(http.StatusAccepted)
	}
	return read(r, o)
}

// put makes or replaces a blob, its metadata included, under the lease it has.
func (b *Blob) put(r *Request, c *container, o *object) Answer {
	switch r.Header["x-ms-blob-type"] {
	case "":
		return refuse("MissingRequiredHeader")
	case "BlockBlob":
	case "AppendBlob":
		if len(r.Body) > 0 {
			return refuse("InvalidHeaderValue")
		}
	default:
		return refuse("InvalidHeaderValue")
	}
	meta, code := r.metadata()
	if code != "" {
		return refuse(code)
	}
	if o == nil {
		o = &object{created: r.now, lease: lease{state: available}}
		c.blobs[r.Blob] = o
	}
	o.kind, o.blocks = r.Header["x-ms-blob-type"], 0
	o.meta, o.body, o.mediaType = meta, r.Body, cmp.Or(r.Header["x-ms-blob-content-type"], "application/octet-stream")
	b.touch(r, o)
	return accept(http.StatusCreated).of(o)
}

// setMetadata keeps the content.
func (b *Blob) setMetadata(r *Request, o *object) Answer {
	meta, code := r.metadata()
	if code != "" {
		return refuse(code)
	}
	o.meta = meta
	b.touch(r, o)
	return accept(http.StatusOK).of(o)
}

// touch marks a blob as written.
func (b *Blob) touch(r *Request, o *object) {
	b.etags++
	o.etag = etag(b.etags)
	o.modified = r.now
	o.lease.written()
}

func read(r *Request, o *object) Answer {
	a := accept(http.StatusOK).of(o)
	a.Body = o.body
	if code := a.part(r.Header["x-ms-range"]); code != "" {
		return refuse(code)
	}
	a.Header.Set("Content-Type", o.mediaType)
	a.Header.Set("X-Ms-Blob-Type", o.kind)
	a.Header.Set("X-Ms-Creation-Time", o.created.UTC().Format(http.TimeFormat))
	o.lease.describe(a.Header)
	for name, value := range o.meta {
		a.Header.Set("X-Ms-Meta-"+name, value)
	}
	return a
}
