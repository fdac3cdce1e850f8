package world

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// An AnyStore makes a service of [Config.Store], so that the same clients and the same network
// are over it. An operator can do with it what the store has a method for.
type AnyStore struct{ store.Store }

// deleter is a store in which an operator can delete an entry that nobody holds.
type deleter interface {
	Delete(ctx context.Context, name string) error
}

// Answer implements service.
func (s AnyStore) Answer(r *blobtest.Request) blobtest.Answer {
	ctx := context.Background()
	document := strings.Contains(r.Blob, "/.") && (r.Op == "get" || r.Op == "put" && r.Header[MetaKey] == "")
	switch {
	case r.Op == "list":
		return s.list(ctx, strings.TrimSuffix(r.Blob, "/"))
	case r.Op == "create container":
		return answered(store.Entry{}, nil)
	case document:
		return s.onDocument(ctx, r)
	case r.LeaseID() != "":
		return s.onLease(ctx, r)
	}
	return s.onEntry(ctx, r)
}

func (s AnyStore) list(ctx context.Context, app string) blobtest.Answer {
	lister, ok := s.Store.(store.Lister)
	if !ok {
		return answered(store.Entry{}, errors.ErrUnsupported)
	}
	var all []blobtest.Entry
	err := lister.List(ctx, app, func(name string, e store.Entry) bool {
		all = append(all, blobtest.Entry{Name: name, Answer: answered(e, nil)})
		return true
	})
	a := answered(store.Entry{}, err)
	a.Entries = all
	return a
}

func (s AnyStore) onDocument(ctx context.Context, r *blobtest.Request) blobtest.Answer {
	keeper, ok := s.Store.(store.Documenter)
	switch {
	case !ok:
		return answered(store.Entry{}, errors.ErrUnsupported)
	case r.Op == "get":
		d, err := keeper.ReadDocument(ctx, r.Blob, r.Header[NoneMatch])
		a := answered(store.Entry{Revision: d.Revision}, err)
		a.Body = d.Body
		return a
	}
	rev, err := keeper.WriteDocument(ctx, r.Blob, r.Header[IfMatch], r.Body)
	return answered(store.Entry{Revision: rev}, err)
}

// onLease does what names the id of a lease.
func (s AnyStore) onLease(ctx context.Context, r *blobtest.Request) blobtest.Answer {
	l, etag, record := s.Store.Lease(r.Blob, r.LeaseID()), r.Header[IfMatch], []byte(r.Header[MetaKey])
	keeper, keeps := l.(store.Checkpointer)
	var e store.Entry
	var body []byte
	err := errors.ErrUnsupported
	switch {
	case r.Op == "acquire":
		seconds, _ := strconv.Atoi(r.Header["x-ms-lease-duration"])
		e.Revision, err = l.Acquire(ctx, time.Duration(seconds)*time.Second, etag)
	case r.Op == "renew":
		e.Revision, err = l.Renew(ctx)
	case r.Op == "release":
		err = l.Release(ctx)
	case r.Op == "metadata":
		e.Revision, err = l.Write(ctx, etag, record)
	case r.Op == "put" && keeps:
		e.Revision, err = keeper.Save(ctx, etag, record, r.Body)
	case r.Op == "get" && keeps:
		body, err = keeper.Load(ctx, etag)
	}
	a := answered(e, err)
	a.Body = body
	return a
}

// onEntry does what needs no lease.
func (s AnyStore) onEntry(ctx context.Context, r *blobtest.Request) blobtest.Answer {
	breaker, breaks := s.Store.(store.LeaseBreaker)
	conditional, _ := s.Store.(store.ConditionalBreaker)
	remover, removes := s.Store.(store.Remover)
	deleter, deletes := s.Store.(deleter)
	var e store.Entry
	err := errors.ErrUnsupported
	switch etag := r.Header[IfMatch]; {
	case r.Op == "head":
		e, err = s.Store.Read(ctx, r.Blob)
	case r.Op == "put":
		e, err = s.Store.Create(ctx, r.Blob, []byte(r.Header[MetaKey]))
	case r.Op == "break" && etag != "" && conditional != nil:
		err = conditional.BreakUnchanged(ctx, r.Blob, etag)
	case r.Op == "break" && etag == "" && breaks:
		period := -time.Second
		if seconds, none := strconv.Atoi(r.Header["x-ms-lease-break-period"]); none == nil {
			period = time.Duration(seconds) * time.Second
		}
		err = breaker.Break(ctx, r.Blob, period)
	case r.Op == "delete" && etag != "" && removes:
		err = remover.Remove(ctx, r.Blob, etag)
	case r.Op == "delete" && etag == "" && deletes:
		err = deleter.Delete(ctx, r.Blob)
	}
	return answered(e, err)
}

// codes are the answers of the service that a client takes for the errors of the contract.
var codes = []struct {
	err    error
	status int
	code   string
}{
	{fs.ErrExist, http.StatusConflict, "BlobAlreadyExists"},
	{fs.ErrNotExist, http.StatusNotFound, "BlobNotFound"},
	{store.ErrHeld, http.StatusConflict, "LeaseAlreadyPresent"},
	{store.ErrChanged, http.StatusPreconditionFailed, "ConditionNotMet"},
	{store.ErrLost, http.StatusConflict, "LeaseLost"},
	{store.ErrUnchanged, http.StatusNotModified, "ConditionNotMet"},
}

// answered is the answer of a service for that of a store.
func answered(e store.Entry, err error) blobtest.Answer {
	a := blobtest.Answer{Status: http.StatusOK, Header: http.Header{}, Date: e.Date}
	a.Header.Set("Etag", e.ETag)
	a.Header.Set("X-Ms-Lease-State", string(e.State))
	a.Header.Set("X-Ms-Meta-Record", string(e.Record))
	if err == nil {
		return a
	}
	a.Status, a.Code = http.StatusInternalServerError, err.Error()
	for _, c := range codes {
		if errors.Is(err, c.err) {
			a.Status, a.Code = c.status, c.code
		}
	}
	return a
}
