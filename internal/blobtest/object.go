package blobtest

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// An object is a blob.
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

// etagOf is the ETag of an object, empty if there is none.
func etagOf(o *object) string {
	if o == nil {
		return ""
	}
	return o.etag
}

// answer is what every answer about the blob contains.
func (o *object) answer(status int) Answer {
	a := accept(status)
	a.Header.Set("Etag", o.etag)
	a.Header.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	return a
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
	if code := r.conditions(etagOf(o)); code != "" {
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
	return o.answer(http.StatusCreated)
}

// setMetadata keeps the content.
func (b *Blob) setMetadata(r *Request, o *object) Answer {
	meta, code := r.metadata()
	if code != "" {
		return refuse(code)
	}
	o.meta = meta
	b.touch(r, o)
	return o.answer(http.StatusOK)
}

// touch marks a blob as written.
func (b *Blob) touch(r *Request, o *object) {
	b.etags++
	o.etag = fmt.Sprintf("\"0x8DE%012X\"", b.etags)
	o.modified = r.now
	o.lease.written()
}

func read(r *Request, o *object) Answer {
	a := o.answer(http.StatusOK)
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

// MaxBlocks is how many blocks an append blob takes
// (https://learn.microsoft.com/rest/api/storageservices/append-block).
const MaxBlocks = 50_000

// append does Append Block, with the condition on the position.
func (b *Blob) append(r *Request, o *object) Answer {
	position, at := r.Header["x-ms-blob-condition-appendpos"], int64(len(o.body))
	switch {
	case o.kind != "AppendBlob":
		return refuse("InvalidBlobType")
	case len(r.Body) == 0:
		return refuse("InvalidHeaderValue")
	case position != "" && position != strconv.FormatInt(at, 10):
		return refuse("AppendPositionConditionNotMet")
	case o.blocks == MaxBlocks:
		return refuse("BlockCountExceedsLimit")
	}
	o.body = append(o.body, r.Body...)
	o.blocks++
	b.touch(r, o)
	a := o.answer(http.StatusCreated)
	a.Header.Set("X-Ms-Blob-Append-Offset", strconv.FormatInt(at, 10))
	a.Header.Set("X-Ms-Blob-Committed-Block-Count", strconv.Itoa(o.blocks))
	return a
}

// onLease does the Lease Blob operation. Its headers are judged first, then
// its conditions, then the state of the lease.
func (b *Blob) onLease(r *Request) Answer {
	if code := r.leaseHeaders(); code != "" {
		return refuse(code)
	}
	c, o := b.find(r)
	switch {
	case c == nil:
		return refuse("ContainerNotFound")
	case o == nil:
		return refuse("BlobNotFound")
	}
	if code := r.conditions(etagOf(o)); code != "" {
		return refuse(code)
	}
	id := guid(r.Header["x-ms-lease-id"])
	proposed := guid(r.Header["x-ms-proposed-lease-id"])
	var status, code = http.StatusOK, ""
	var left time.Duration
	switch r.Op {
	case "acquire":
		if status = http.StatusCreated; proposed == "" {
			b.etags++
			proposed = invented(b.etags)
		}
		seconds, _ := strconv.Atoi(r.Header["x-ms-lease-duration"])
		code = o.lease.acquire(r.now, proposed, time.Duration(seconds)*time.Second)
	case "renew":
		code = o.lease.renew(r.now, id)
	case "release":
		code = o.lease.release(id)
	case "break":
		status = http.StatusAccepted
		left, code = o.lease.breakUp(r.now, r.breakPeriod())
	}
	if code != "" {
		return refuse(code)
	}
	a := o.answer(status)
	if r.Op == "break" {
		whole := (left + time.Second - 1) / time.Second
		a.Header.Set("X-Ms-Lease-Time", strconv.Itoa(int(whole)))
	} else if o.lease.id != "" {
		a.Header.Set("X-Ms-Lease-Id", o.lease.id)
	}
	return a
}
