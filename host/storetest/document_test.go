package storetest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// desk is a Memory whose documents have a fault: read and write stand before those of
// the Memory. Nil: no fault.
type desk struct {
	*local.Memory
	read  func(ctx context.Context, m *local.Memory, name, etag string) (store.Document, error)
	write func(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error)
}

func (d desk) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	if d.read == nil {
		return d.Memory.ReadDocument(ctx, name, etag)
	}
	return d.read(ctx, d.Memory, name, etag)
}

func (d desk) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if d.write == nil {
		return d.Memory.WriteDocument(ctx, name, etag, body)
	}
	return d.write(ctx, d.Memory, name, etag, body)
}

// desks is a harness for a store with such a fault.
func desks(d desk) storetest.Harness {
	return virtual(func() store.Store { d.Memory = new(local.Memory); return d })
}

// overwrites replaces the document whatever its ETag is.
func overwrites(ctx context.Context, m *local.Memory, name, _ string, body []byte) (store.Revision, error) {
	for {
		d, err := m.ReadDocument(ctx, name, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return store.Revision{}, err
		}
		r, err := m.WriteDocument(ctx, name, d.ETag, body)
		if !errors.Is(err, store.ErrChanged) {
			return r, err
		}
	}
}

// looksFirst compares, and then writes in a second step.
func looksFirst(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	d, err := m.ReadDocument(ctx, name, "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return store.Revision{}, err
	}
	if d.ETag != etag {
		return store.Revision{}, store.ErrChanged
	}
	time.Sleep(time.Millisecond) // of the bubble
	return overwrites(ctx, m, name, etag, body)
}

// transfers sends the document also to a reader who has it.
func transfers(ctx context.Context, m *local.Memory, name, _ string) (store.Document, error) {
	return m.ReadDocument(ctx, name, "")
}

// takesForOld says that nothing has changed, whatever ETag the reader has.
func takesForOld(ctx context.Context, m *local.Memory, name, etag string) (store.Document, error) {
	d, err := m.ReadDocument(ctx, name, "")
	if err == nil && etag != "" {
		return store.Document{Revision: d.Revision}, store.ErrUnchanged
	}
	return d, err
}

// emptyForNone takes a document that is not there for one that is empty.
func emptyForNone(ctx context.Context, m *local.Memory, name, etag string) (store.Document, error) {
	d, err := m.ReadDocument(ctx, name, etag)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return d, err
}

// undated gives no Date where there is no new document.
func undated(ctx context.Context, m *local.Memory, name, etag string) (store.Document, error) {
	d, err := m.ReadDocument(ctx, name, etag)
	if err != nil {
		return store.Document{}, err
	}
	return d, nil
}

// asText keeps what is text.
func asText(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	return m.WriteDocument(ctx, name, etag, bytes.ToValidUTF8(body, []byte("?")))
}

// cutShort cuts what is too long in silence.
func cutShort(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	return m.WriteDocument(ctx, name, etag, body[:min(len(body), store.MaxDocument)])
}

// writesChanges makes no new ETag for the same document.
func writesChanges(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	d, err := m.ReadDocument(ctx, name, "")
	if err == nil && d.ETag == etag && bytes.Equal(d.Body, body) {
		return d.Revision, nil
	}
	return m.WriteDocument(ctx, name, etag, body)
}

// unheededWrite does what was asked whatever the context says.
func unheededWrite(ctx context.Context, m *local.Memory, name, etag string, body []byte) (store.Revision, error) {
	return m.WriteDocument(context.WithoutCancel(ctx), name, etag, body)
}

// oneForAll keeps one document for all apps.
type oneForAll struct{ *local.Memory }

func (s oneForAll) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return s.Memory.ReadDocument(ctx, "app/"+path.Base(name), etag)
}

func (s oneForAll) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return s.Memory.WriteDocument(ctx, "app/"+path.Base(name), etag, body)
}

// hashes takes a hash of the document for its ETag.
type hashes struct{ *local.Memory }

func hashOf(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }

func (s hashes) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d, err := s.Memory.ReadDocument(ctx, name, "")
	if err != nil {
		return d, err
	}
	if d.ETag = hashOf(d.Body); d.ETag == etag {
		return store.Document{Revision: d.Revision}, store.ErrUnchanged
	}
	return d, nil
}

func (s hashes) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	d, err := s.Memory.ReadDocument(ctx, name, "")
	if etag != "" && (err != nil || hashOf(d.Body) != etag) {
		return store.Revision{}, store.ErrChanged
	}
	if etag != "" {
		etag = d.ETag
	}
	r, err := s.Memory.WriteDocument(ctx, name, etag, body)
	r.ETag = hashOf(body)
	return r, err
}

// borrows keeps the caller's bytes for its own.
type borrows struct {
	*local.Memory
	bytes *sync.Map // by ETag
}

func (s borrows) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d, err := s.Memory.ReadDocument(ctx, name, etag)
	if body, ok := s.bytes.Load(d.ETag); ok && err == nil {
		d.Body = body.([]byte)
	}
	return d, err
}

func (s borrows) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	r, err := s.Memory.WriteDocument(ctx, name, etag, body)
	if err == nil {
		s.bytes.Store(r.ETag, body)
	}
	return r, err
}

// recites remembers the documents that it has read.
type recites struct {
	*local.Memory
	seen *sync.Map // by name
}

func (s recites) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d, err := s.Memory.ReadDocument(ctx, name, etag)
	if err != nil || etag != "" {
		return d, err
	}
	old, _ := s.seen.LoadOrStore(name, d)
	return old.(store.Document), nil
}

func (s recites) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	s.seen.Delete(name)
	return s.Memory.WriteDocument(ctx, name, etag, body)
}

// dotless confuses "app/.name" with "app/name".
type dotless struct{ *local.Memory }

func (s dotless) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return s.Memory.ReadDocument(ctx, strings.Replace(name, "/.", "/", 1), etag)
}

func (s dotless) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return s.Memory.WriteDocument(ctx, strings.Replace(name, "/.", "/", 1), etag, body)
}
