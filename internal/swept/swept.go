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
	"time"

	"github.com/soloist-go/soloist/internal/document"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/store"
)

const limit = 10 * time.Second // of one call

type note struct {
	Before time.Time `json:"before"` // what was seen before that counts as never seen; by the service's clock
}

func file(s store.Documenter, app string) document.Document {
	return document.Document{Store: s, Name: app + "/.swept", Limit: limit}
}

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
	c := document.Copy{Document: file(docs, app)}
	return c.Update(ctx, func(body []byte, _ time.Time) ([]byte, error) {
		if last := parse(body); !last.Before.Before(before) {
			return nil, nil
		}
		return json.Marshal(note{before})
	})
}

// Forgets reports whether what was seen last of an entry of an app, at that time of the service, counts as never seen.
func Forgets(ctx context.Context, s any, app, entry string, seen time.Time) bool {
	docs, ok := s.(store.Documenter)
	if !ok || !Removes(entry) {
		return false
	}
	got, err := file(docs, app).Read(ctx, "")
	last := parse(got.Body)
	return err == nil && seen.Before(last.Before)
}

// parse reads a note. A document that cannot be read as one is as good as none.
func parse(body []byte) (n note) {
	if json.Unmarshal(body, &n) != nil {
		return note{}
	}
	return n
}
