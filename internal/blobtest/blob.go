// Package blobtest is the Azure Blob service in memory, as documented: the part
// of its REST interface that a lease on a blob needs. The real client library runs
// over it, in real or in virtual time. The simulation and the tests of the adapters
// share it; faults are put around it.
package blobtest

import (
	"io"
	"maps"
	"net/http"
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
	Now     func() time.Time // the service's clock; nil: time.Now
	Forgets bool             // it keeps no log

	mu         sync.Mutex
	containers map[string]*container
	log        []Op
	requests   int
	etags      int
}

// An Op is one request, in the order in which the service applied them.
type Op struct {
	Op     string // "put", "get", "head", "append", "metadata", "delete", "acquire", "renew", "release", "break", "create container", "delete container", "list", "unknown"
	Blob   string // container/blob
	Status int
	Code   string // the service's error code; empty on success
}

type container struct {
	blobs map[string]*object
	gone  time.Time // deleted then
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
	a := b.applyAll(r)
	b.requests++
	a.Date, a.n = r.now, b.requests
	if !b.Forgets {
		b.log = append(b.log, Op{r.Op, r.container + "/" + r.Blob, a.Status, a.Code})
	}
	return a
}

// Log returns a copy of all operations so far.
func (b *Blob) Log() []Op {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Op(nil), b.log...)
}

// unmodelled are headers that would change what a request means.
var unmodelled = []string{"if-modified-since", "if-unmodified-since", "range", "x-ms-if-tags", "x-ms-copy-source"}

// applyAll applies a request and the one that belongs to it. It returns the answer to the last one, or the refusal.
func (b *Blob) applyAll(r *Request) Answer {
	if r.Then == nil {
		return b.apply(r)
	}
	var was object
	_, o := b.find(r)
	if o != nil {
		was = *o
	}
	a := b.apply(r)
	if a.Code != "" {
		return a
	}
	r.Then.now = r.now
	if a = b.apply(r.Then); a.Code != "" && o != nil {
		*o = was
	}
	return a
}

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
	case "acquire", "renew", "release", "break":
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
