package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// overwrites replaces the document whatever its ETag is.
type overwrites struct{ *local.Memory }

func (s overwrites) WriteDocument(ctx context.Context, name, _ string, body []byte) (store.Revision, error) {
	for {
		d, err := s.ReadDocument(ctx, name, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return store.Revision{}, err
		}
		r, err := s.Memory.WriteDocument(ctx, name, d.ETag, body)
		if !errors.Is(err, store.ErrChanged) {
			return r, err
		}
	}
}

// looksFirst compares, and then writes in a second step.
type looksFirst struct{ *local.Memory }

func (s looksFirst) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	d, err := s.ReadDocument(ctx, name, "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return store.Revision{}, err
	}
	if d.ETag != etag {
		return store.Revision{}, store.ErrChanged
	}
	time.Sleep(time.Millisecond) // of the bubble
	return overwrites(s).WriteDocument(ctx, name, etag, body)
}

// transfers sends the document also to a reader who has it.
type transfers struct{ *local.Memory }

func (s transfers) ReadDocument(ctx context.Context, name, _ string) (store.Document, error) {
	return s.Memory.ReadDocument(ctx, name, "")
}

// writesChanges makes no new ETag for the same document.
type writesChanges struct{ *local.Memory }

func (s writesChanges) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	d, err := s.ReadDocument(ctx, name, "")
	if err == nil && d.ETag == etag && bytes.Equal(d.Body, body) {
		return d.Revision, nil
	}
	return s.Memory.WriteDocument(ctx, name, etag, body)
}

// similar lists all apps, and the logs of all entries, whose names begin like this one.
type similar struct{ *local.Memory }

func (s similar) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	return errors.Join(s.Memory.List(ctx, app, f), s.Memory.List(ctx, app+"-2", f))
}

func (s similar) Logs(ctx context.Context, entry string, f func(string, int64) bool) error {
	return errors.Join(s.Memory.Logs(ctx, entry, f), s.Memory.Logs(ctx, entry+"-2", f))
}

// noneIsAnError has no listing of an app without entries.
type noneIsAnError struct{ *local.Memory }

func (s noneIsAnError) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	n := 0
	err := s.Memory.List(ctx, app, func(name string, e store.Entry) bool { n++; return f(name, e) })
	if err == nil && n == 0 {
		err = errors.New("no such app")
	}
	return err
}

// atTheEnd appends whatever size is named.
type atTheEnd struct{ *local.Memory }

func (s atTheEnd) Append(ctx context.Context, name string, size int64, b []byte) error {
	parts := strings.Split(name, "/") // app/.log/job/part
	for {
		err := s.Memory.Append(ctx, name, size, b)
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
		size = 0
		_ = s.Logs(ctx, parts[0]+"/"+parts[2], func(log string, n int64) bool {
			if log == name {
				size = n
			}
			return true
		})
	}
}

// inParts appends what fits.
type inParts struct{ *local.Memory }

func (s inParts) Append(ctx context.Context, name string, size int64, b []byte) error {
	return s.Memory.Append(ctx, name, size, b[:min(len(b), store.MaxAppend)])
}

// asLines appends text.
type asLines struct{ *local.Memory }

func (s asLines) Append(ctx context.Context, name string, size int64, b []byte) error {
	return s.Memory.Append(ctx, name, size, bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
}
