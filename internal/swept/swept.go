// Package swept notes which entries a sweep has removed, in one document of the app.
//
// A replica that finds an entry made anew holds off for a lease, since the holder of the entry that it knew may not have noticed
// that this was deleted. A sweep removes only what nobody has held for much longer than a lease, so after it there is no such
// holder. That the entry was free when the replica last saw it would prove nothing: another replica may have leased it since.
//
// The note is written after the removal, with the date of creation of what was removed. So it is never wrong: an entry of that
// date is gone. Where there is no note, because the sweep has died or its note is cut, the replica holds off.
package swept

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

const (
	most  = 2000 // entries that the document has: the last that were removed
	tries = 5    // to write it, beside another sweep
)

// An Entry is one that was removed.
type Entry struct {
	Name    string    `json:"name"` // without the app
	Created time.Time `json:"created"`
}

type document struct {
	Removed []Entry `json:"removed"` // the newest last
}

func name(app string) string { return app + "/.swept" }

// Note notes entries that were removed. A store without documents has no note.
func Note(ctx context.Context, s any, app string, removed []Entry) error {
	docs, ok := s.(store.Documenter)
	if !ok || len(removed) == 0 {
		return nil
	}
	for n := 1; ; n++ {
		doc, etag, err := read(ctx, docs, app)
		if err != nil {
			return err
		}
		doc.Removed = append(doc.Removed, removed...)
		doc.Removed = doc.Removed[max(0, len(doc.Removed)-most):]
		b, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		if _, err = docs.WriteDocument(ctx, name(app), etag, b); err == nil || n == tries || !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
}

// Has reports whether a sweep is known to have removed the entry of an app.
func Has(ctx context.Context, s any, app string, e Entry) bool {
	docs, ok := s.(store.Documenter)
	if !ok {
		return false
	}
	doc, _, err := read(ctx, docs, app)
	return err == nil && slices.ContainsFunc(doc.Removed, func(r Entry) bool { return r.Name == e.Name && r.Created.Equal(e.Created) })
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
