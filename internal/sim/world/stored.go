package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/store"
)

// A Service applies requests.
type Service interface {
	Answer(*blobtest.Request) blobtest.Answer
}

// A Store is all that a simulation makes use of. Its leases are those of a [store.Combiner].
type Store interface {
	store.Store
	store.LeaseBreaker
	store.ConditionalBreaker
	store.Lister
	store.Documenter
	store.Remover
}

// Stored is a service over a store: each request of a [Client] is one call, whose errors become the codes of a blob service.
// So the network of a simulation lies before the calls, and its log has what the store has answered, in that order.
type Stored struct{ Store }

// Answer implements [Service]. An error that is none of the contract's sentinels has the status 400, and its text as the code.
func (s Stored) Answer(r *blobtest.Request) blobtest.Answer {
	a := blobtest.Answer{Status: http.StatusOK, Header: http.Header{}}
	err := s.apply(context.Background(), r, &a)
	for _, refusal := range []struct {
		err    error
		status int
		code   string
	}{
		{fs.ErrNotExist, http.StatusNotFound, "BlobNotFound"},
		{fs.ErrExist, http.StatusConflict, "BlobAlreadyExists"},
		{store.ErrHeld, http.StatusConflict, "LeaseAlreadyPresent"},
		{store.ErrLost, http.StatusPreconditionFailed, "LeaseLost"},
		{store.ErrUnchanged, http.StatusNotModified, "ConditionNotMet"},
		{store.ErrChanged, http.StatusPreconditionFailed, "ConditionNotMet"},
	} {
		if errors.Is(err, refusal.err) {
			return blobtest.Refused(a.Date, refusal.status, refusal.code)
		}
	}
	if err != nil {
		return blobtest.Refused(a.Date, http.StatusBadRequest, err.Error())
	}
	return a
}

// apply makes the call that a request stands for.
func (s Stored) apply(ctx context.Context, r *blobtest.Request, a *blobtest.Answer) (err error) {
	var rev store.Revision
	defer func() { revised(a, rev) }()
	etag, record := r.Header[IfMatch], []byte(r.Header[MetaKey])
	switch l := s.lease(r); r.Op {
	case "create container":
	case "list":
		return s.List(ctx, strings.TrimSuffix(r.Blob, "/"), func(name string, e store.Entry) bool {
			a.Entries = append(a.Entries, blobtest.Entry{Name: name, Answer: shown(e)})
			return true
		})
	case "head":
		var e store.Entry
		e, err = s.Read(ctx, r.Blob)
		*a, rev = shown(e), e.Revision
	case "get":
		if r.LeaseID() != "" { // a document has none
			a.Body, err = l.Load(ctx, etag)
			return err
		}
		var d store.Document
		d, err = s.ReadDocument(ctx, r.Blob, r.Header[NoneMatch])
		a.Body, rev = d.Body, d.Revision
	case "put":
		rev, err = s.put(ctx, r)
	case "metadata":
		switch {
		case r.LeaseID() == "":
			rev, err = s.overwrite(ctx, r)
		case r.Then != nil:
			rev, err = l.WriteRelease(ctx, etag, record)
		default:
			rev, err = l.Write(ctx, etag, record)
		}
	case "acquire":
		seconds, _ := strconv.Atoi(r.Header["x-ms-lease-duration"])
		d := time.Duration(seconds) * time.Second
		if r.Then != nil {
			rev, err = l.AcquireWrite(ctx, d, etag, []byte(r.Then.Header[MetaKey]))
		} else if etag, err = s.etag(ctx, r); err == nil {
			rev, err = l.Acquire(ctx, d, etag)
		}
	case "renew":
		rev, err = l.Renew(ctx)
	case "release":
		return l.Release(ctx)
	case "break":
		if etag != "" {
			return s.BreakUnchanged(ctx, r.Blob, etag)
		}
		period := time.Duration(-1)
		if seconds, err := strconv.Atoi(r.Header["x-ms-lease-break-period"]); err == nil {
			period = time.Duration(seconds) * time.Second
		}
		return s.Break(ctx, r.Blob, period)
	case "delete":
		if etag, err = s.etag(ctx, r); err == nil {
			return s.Remove(ctx, r.Blob, etag)
		}
	default:
		return errors.ErrUnsupported
	}
	return err
}

// A wholeLease is all of a lease.
type wholeLease interface {
	store.Lease
	store.Combiner
}

func (s Stored) lease(r *blobtest.Request) wholeLease {
	return s.Lease(r.Blob, r.LeaseID()).(wholeLease)
}

func (s Stored) put(ctx context.Context, r *blobtest.Request) (store.Revision, error) {
	etag := r.Header[IfMatch]
	record, ofEntry := r.Header[MetaKey]
	switch {
	case !ofEntry:
		return s.WriteDocument(ctx, r.Blob, etag, r.Body)
	case r.LeaseID() != "":
		return s.lease(r).Save(ctx, etag, []byte(record), r.Body)
	}
	e, err := s.Create(ctx, r.Blob, []byte(record))
	return e.Revision, err
}

// etag is the ETag that a request names, or that of now: an operator's requests name none.
func (s Stored) etag(ctx context.Context, r *blobtest.Request) (string, error) {
	if etag := r.Header[IfMatch]; etag != "" {
		return etag, nil
	}
	e, err := s.Read(ctx, r.Blob)
	return e.ETag, err
}

// overwrite is a write of an operator, who has no lease. Like one of a blob it leaves none.
func (s Stored) overwrite(ctx context.Context, r *blobtest.Request) (store.Revision, error) {
	l := s.Lease(r.Blob, fmt.Sprintf("00000000-0000-4000-8000-%012x", uint64(time.Now().UnixNano())>>16)).(wholeLease)
	rev, err := l.AcquireWrite(ctx, draw.Fence, r.Header[IfMatch], []byte(r.Header[MetaKey]))
	if err == nil {
		err = l.Release(ctx)
	}
	return rev, err
}

// shown is the answer to a read of an entry.
func shown(e store.Entry) blobtest.Answer {
	a := blobtest.Answer{Status: http.StatusOK, Header: http.Header{}, Body: make([]byte, e.Checkpoint)}
	a.Header.Set("X-Ms-Lease-State", string(e.State))
	a.Header.Set("X-Ms-Meta-Record", string(e.Record))
	revised(&a, e.Revision)
	return a
}

func revised(a *blobtest.Answer, r store.Revision) {
	a.Date = r.Date
	a.Header.Set("Etag", r.ETag)
}
