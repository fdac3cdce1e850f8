// Package document reads and writes the documents that the replicas of an app share. What is in one, and who
// may change it when, is for the room that it belongs to.
package document

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A Document is one of a store.
type Document struct {
	Store store.Documenter
	Name  string
	Limit time.Duration // of one call
}

// errNoETag is an unclear answer: something other than the store may have answered, a proxy for example.
var errNoETag = errors.New("the answer has no ETag: it is not from the store")

// Read returns the document, without ETag and body if there is none. store.ErrUnchanged: its ETag is etag. That error has
// the date of the answer, too.
func (d Document) Read(ctx context.Context, etag string) (store.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Limit)
	defer cancel()
	got, err := d.Store.ReadDocument(ctx, d.Name, etag)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return store.Document{Revision: store.Revision{Date: got.Date}}, nil
	case err == nil && got.ETag == "":
		err = errNoETag
	}
	return got, err
}

// Write replaces the document that has the ETag; if that is empty, there has to be none. It returns the new one. An error
// other than store.ErrChanged says nothing of what the store has now.
func (d Document) Write(ctx context.Context, etag string, body []byte) (store.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Limit)
	defer cancel()
	written, err := d.Store.WriteDocument(ctx, d.Name, etag, body)
	if err == nil && written.ETag == "" {
		return store.Revision{}, fmt.Errorf("%s: %w", d.Name, errNoETag)
	}
	return written, err
}
