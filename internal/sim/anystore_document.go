package sim

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// A documenter is a client of a store that keeps documents.
type documenter struct {
	*client
	inner store.Documenter
}

func (d *documenter) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	got := d.send(ctx, errand{Event: trace.Event{Op: "read document", Job: path.Base(name), Match: etag != ""}, etag: etag,
		do: func(ctx context.Context, got *result) {
			doc, err := d.inner.ReadDocument(ctx, name, etag)
			got.Revision, got.checkpoint, got.err = doc.Revision, doc.Body, err
		}})
	return store.Document{Revision: got.Revision, Body: got.checkpoint}, got.err
}

func (d *documenter) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	body = bytes.Clone(body)
	got := d.send(ctx, errand{Event: trace.Event{Op: "write document", Job: path.Base(name), Match: etag != ""}, etag: etag, checkpoint: body,
		do: func(ctx context.Context, got *result) {
			got.Revision, got.err = d.inner.WriteDocument(ctx, name, etag, body)
		}})
	return got.Revision, got.err
}

// judgeDocument is [contractChecker.judge] for a document, which k keeps like an entry
// that has nothing but a checkpoint.
func (k *kept) judgeDocument(e *trace.Event, x errand, got result) (wrong []string) {
	var want error
	switch write := e.Op == "write document"; {
	case write && x.etag != k.etag: // the empty one, if there is none
		want = store.ErrChanged
	case !write && !k.there:
		want = fs.ErrNotExist
	case !write && x.etag == k.etag:
		want = store.ErrUnchanged
	}
	if !same(got.err, want) {
		wrong = append(wrong, fmt.Sprintf("it answers %v, want %v", got.err, want))
	}
	if got.err != nil {
		return wrong
	}
	if e.Op == "write document" {
		if got.ETag == "" || slices.Contains(k.etags, got.ETag) {
			wrong = append(wrong, fmt.Sprintf("it gives the ETag %s, which is not new", got.ETag))
		}
		k.there, k.etag, k.etags, k.checkpoint = true, got.ETag, append(k.etags, got.ETag), x.checkpoint
		return wrong
	}
	if got.ETag != k.etag || !bytes.Equal(got.checkpoint, k.checkpoint) {
		wrong = append(wrong, fmt.Sprintf("it tells the ETag %s and the document %q, want %s and %q", got.ETag, got.checkpoint, k.etag, k.checkpoint))
	}
	return wrong
}
