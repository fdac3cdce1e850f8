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

// A Client is a store over the service without the client library and HTTP: each method makes the same requests
// and returns the same errors as host/azure.
type Client struct {
	Send     Sender
	Combines bool // it takes two steps in one call, as no blob service does
	Brief    bool // its leases may be as short as a second, as no blob service's
}

// ask sends a request. What it is for decides what a refusal means.
func (s Client) ask(ctx context.Context, what, op, name string, body []byte, headers ...string) (blobtest.Answer, store.Revision, error) {
	return s.send(ctx, what, blobtest.NewRequest(op, Container, name, body, headers...))
}

func (s Client) send(ctx context.Context, what string, r *blobtest.Request) (blobtest.Answer, store.Revision, error) {
	a, err := s.Send(ctx, r)
	if err == nil {
		err = meaning(what, &a)
	}
	if err != nil {
		return a.Answer, store.Revision{}, fmt.Errorf("%s %s: %w", what, r.Blob, err)
	}
	return a.Answer, store.Revision{ETag: a.Header.Get("Etag"), Date: a.Date}, nil
}

// Reasons for an unclear answer, and for a call that is not made.
var (
	errNoETag    = errors.New("no ETag is given")
	errTooLong   = errors.New("it is too long")
	errElsewhere = errors.New("the answer is not from the service")
	errCutOff    = errors.New("the answer is cut off")
)

// meaning is what the answer to a request means: nil, a sentinel of the contract, or an error of unclear outcome.
func meaning(what string, a *Reply) error {
	code, refused := a.Code, fmt.Errorf("%d %s", a.Status, a.Code)
	ofLease, document := strings.HasPrefix(code, "Lease"), strings.HasSuffix(what, " document")
	switch status := a.Status; {
	case a.Stranger:
		return errElsewhere
	case a.cutOff && what != "read":
		return errCutOff
	case status == http.StatusNotModified:
		return store.ErrUnchanged
	case status < 300:
		return nil
	case status == http.StatusForbidden:
		return fs.ErrPermission
	case what == "create" && (code == "BlobAlreadyExists" || status == http.StatusPreconditionFailed):
		return fs.ErrExist
	case document && (code == "ConditionNotMet" || code == "BlobAlreadyExists"), what == "write document" && status == http.StatusNotFound:
		return store.ErrChanged
	case status == http.StatusNotFound && what != "create" && what != "create document":
		return fs.ErrNotExist
	case status == http.StatusConflict && what == "acquire" && ofLease:
		return store.ErrHeld
	case code == "ConditionNotMet":
		return store.ErrChanged
	case ofLease && what != "create" && what != "read" && what != "acquire" && !document:
		return store.ErrLost
	}
	return refused
}

// insert makes a blob. If only the container is missing, it makes that first.
func (s Client) insert(ctx context.Context, what, name string, body []byte, headers ...string) (store.Revision, error) {
	headers = append(headers, BlobType, BlockBlob)
	a, rev, err := s.ask(ctx, what, "put", name, body, headers...)
	if a.Code != "ContainerNotFound" || what == "write document" {
		return rev, err
	}
	if a, _, err := s.ask(ctx, "create container", "create container", "", nil); err != nil && a.Code != "ContainerAlreadyExists" {
		return store.Revision{}, err
	}
	_, rev, err = s.ask(ctx, what, "put", name, body, headers...)
	return rev, err
}

func (s Client) Limits() (shortest, longest time.Duration) {
	if s.Brief {
		return time.Second, time.Minute
	}
	return draw.Fence, time.Minute
}

func (s Client) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	rev, err := s.insert(ctx, "create", name, nil, NoneMatch, "*", MetaKey, string(record))
	if err != nil {
		return store.Entry{}, err
	}
	return store.Entry{Revision: rev, Record: []byte(string(record)), State: store.Available}, nil
}

func (s Client) Read(ctx context.Context, name string) (store.Entry, error) {
	a, _, err := s.ask(ctx, "read", "head", name, nil)
	if err != nil {
		return store.Entry{Revision: refusedAt(&a)}, err
	}
	return entryOf(&a), nil
}

// refusedAt is the time of an answer that is an error of the service.
func refusedAt(a *blobtest.Answer) (r store.Revision) {
	if a.Code != "" {
		r.Date = a.Date
	}
	return r
}

// entryOf is the entry that the answer to a read shows.
func entryOf(a *blobtest.Answer) store.Entry {
	e := store.Entry{Revision: store.Revision{ETag: a.Header.Get("Etag"), Date: a.Date},
		State: store.LeaseState(a.Header.Get("X-Ms-Lease-State")), Checkpoint: int64(len(a.Body))}
	if record := a.Header.Get("X-Ms-Meta-Record"); record != "" {
		e.Record = []byte(record)
	}
	return e
}

func (s Client) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	a, _, err := s.ask(ctx, "list", "list", app+"/", nil)
	if a.Code == "ContainerNotFound" {
		return nil
	}
	for i := range a.Entries {
		one := &a.Entries[i]
		if !strings.HasPrefix(one.Name, app+"/.") && !f(one.Name, entryOf(&one.Answer)) {
			return nil
		}
	}
	return err
}

func (s Client) Break(ctx context.Context, name string, period time.Duration) error {
	headers := []string{}
	if period >= 0 {
		headers = append(headers, "x-ms-lease-break-period", strconv.Itoa(int(period/time.Second)))
	}
	_, _, err := s.ask(ctx, "break", "break", name, nil, headers...)
	return err
}

func (s Client) BreakUnchanged(ctx context.Context, name, etag string) error {
	if etag == "" {
		return errNoETag
	}
	_, _, err := s.ask(ctx, "break", "break", name, nil, "x-ms-lease-break-period", "0", IfMatch, etag)
	return err
}

func (s Client) Delete(ctx context.Context, name string) error {
	_, _, err := s.ask(ctx, "delete", "delete", name, nil)
	return err
}

func (s Client) Remove(ctx context.Context, name, etag string) error {
	_, _, err := s.ask(ctx, "delete", "delete", name, nil, IfMatch, etag)
	return err
}

func (s Client) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	headers := []string{NoneMatch, etag}
	if etag == "" {
		headers = nil
	}
	a, rev, err := s.ask(ctx, "read document", "get", name, nil, headers...)
	switch {
	case errors.Is(err, store.ErrUnchanged):
		return store.Document{Revision: store.Revision{ETag: etag, Date: a.Date}}, err
	case err != nil:
		return store.Document{Revision: refusedAt(&a)}, err
	}
	return store.Document{Revision: rev, Body: []byte(string(a.Body))}, nil
}

func (s Client) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if len(body) > store.MaxDocument {
		return store.Revision{}, errTooLong
	}
	what, header, value := "write document", IfMatch, etag
	if etag == "" {
		what, header, value = "create document", NoneMatch, "*"
	}
	return s.insert(ctx, what, name, []byte(string(body)), header, value)
}

func (s Client) Lease(name, id string) store.Lease {
	l := clientLease{s, name, id}
	if s.Combines {
		return combiningLease{l}
	}
	return l
}
