package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A document is an entry whose checkpoint is the document: so it is kept, replaced and
// given its ETag like an entry. Its record says what it is.
const documentRecord = "document"

const _ = uint(store.MaxCheckpoint - store.MaxDocument) // or a document could not be read again

var (
	_ store.Documenter = (*Memory)(nil)
	_ store.Documenter = Dir{}
)

// ReadDocument implements [store.Documenter].
func (m *Memory) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return m.all().readDocument(ctx, name, etag)
}

// WriteDocument implements [store.Documenter].
func (m *Memory) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return m.all().writeDocument(ctx, name, etag, body)
}

// ReadDocument implements [store.Documenter]. A document "app/.name" is the file
// <Path>/app/.name.json.
func (d Dir) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return update(d.update).readDocument(ctx, name, etag)
}

// WriteDocument implements [store.Documenter].
func (d Dir) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return update(d.update).writeDocument(ctx, name, etag, body)
}

func (u update) readDocument(ctx context.Context, name, etag string) (store.Document, error) {
	e, now, err := u.do(ctx, "read document", name, func(e *entry, _ time.Time) error {
		if e.ETag == etag {
			return store.ErrUnchanged
		}
		return nil
	})
	doc := store.Document{Revision: store.Revision{ETag: e.ETag, Date: now}}
	if err == nil {
		doc.Body = []byte(e.Checkpoint)
	}
	return doc, err
}

func (u update) writeDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if n := len(body); n > store.MaxDocument {
		return store.Revision{}, fmt.Errorf("write document %q: it has %d bytes: want at most %d", name, n, store.MaxDocument)
	}
	e, now, err := u.try(ctx, name, func(e *entry, now time.Time) error {
		switch {
		case e.ETag != etag: // an entry that does not exist has the empty one
			return store.ErrChanged
		case e.Lease.state(now).Live():
			return errLeased
		}
		*e = entry{ETag: rand.Text(), Record: documentRecord, Checkpoint: content(body)}
		return nil
	})
	if err != nil {
		return store.Revision{}, fmt.Errorf("write document %q: %w", name, err)
	}
	return store.Revision{ETag: e.ETag, Date: now}, nil
}

var errLeased = errors.New("it is leased, and documents have no lease: its name is that of an entry")
