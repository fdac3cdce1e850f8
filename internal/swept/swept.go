// Package swept notes up to when the locks of an app were swept, in one document of the app.
//
// A replica that finds an entry made anew holds off for a lease, since the holder of the entry that it knew may not have noticed
// that this was deleted. A sweep removes only what has no holder, but the replica cannot see who deleted the entry. So each sweep
// notes a time: what it removes was not used since then. What a replica saw of a lock or a slot before that time counts as never
// seen, as if the replica had started afterwards. If it has looked since, no sweep has removed what it saw, and it holds off.
//
// The note is written before the first removal, so a replica that misses a removed entry finds it, however the sweep ends. If the
// note cannot be read, the replica holds off.
package swept

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/store"
)

const tries = 5 // to write the document while another sweep does

var errNoETag = errors.New("the answer to the note of a sweep has no ETag: it is not from the store")

type document struct {
	Before time.Time `json:"before"` // what was seen before that counts as never seen; by the service's clock
}

func name(app string) string { return app + "/.swept" }

// Removes reports whether a sweep may remove an entry of that name, which is without the app.
func Removes(name string) bool {
	n, ok := entry.Parse(name)
	return ok && (n.Kind == entry.Lock || n.Kind == entry.Group || n.Kind == entry.Member)
}

// Note notes that entries are about to be removed that were not used since before. A store without documents has no note.
func Note(ctx context.Context, s any, app string, before time.Time) error {
	docs, ok := s.(store.Documenter)
	if !ok {
		return nil
	}
	b, err := json.Marshal(document{before})
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		doc, etag, err := read(ctx, docs, app)
		if err != nil || !doc.Before.Before(before) {
			return err
		}
		written, err := docs.WriteDocument(ctx, name(app), etag, b)
		if err == nil && written.ETag == "" {
			return errNoETag
		}
		if err == nil || n == tries || !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
}

// Forgets reports whether what was seen last of an entry of an app, at that time of the service, counts as never seen.
func Forgets(ctx context.Context, s any, app, entry string, seen time.Time) bool {
	docs, ok := s.(store.Documenter)
	if !ok || !Removes(entry) {
		return false
	}
	doc, _, err := read(ctx, docs, app)
	return err == nil && seen.Before(doc.Before)
}

// read returns the document. One that cannot be read as such is as good as none.
func read(ctx context.Context, s store.Documenter, app string) (doc document, etag string, err error) {
	d, err := s.ReadDocument(ctx, name(app), "")
	if errors.Is(err, fs.ErrNotExist) {
		return doc, "", nil
	}
	if err != nil {
		return doc, "", err
	}
	if json.Unmarshal(d.Body, &doc) != nil {
		doc = document{}
	}
	return doc, d.ETag, nil
}
