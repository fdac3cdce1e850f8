package postgres

import (
	"context"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist/store"
)

var _ store.Documenter = (*Store)(nil)

// ReadDocument implements [store.Documenter].
func (s *Store) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	var d store.Document
	var got *string
	var size *int64
	args := []any{name, etag, store.MaxDocument}
	if err := s.row(ctx, readDocument, name, s.sql.readDocument, args, &d.Date, &got, &size, &d.Body); err != nil {
		return store.Document{}, err
	}
	if got == nil {
		return d, refuse(readDocument, name, fs.ErrNotExist)
	}
	switch d.ETag = *got; {
	case d.ETag == etag:
		return d, refuse(readDocument, name, store.ErrUnchanged)
	case *size > store.MaxDocument:
		return d, refuse(readDocument, name, store.ErrTooLarge)
	}
	return d, nil
}

// WriteDocument implements [store.Documenter].
func (s *Store) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if len(body) > store.MaxDocument {
		return store.Revision{}, tooLong(writeDocument, name, "document", len(body), store.MaxDocument)
	}
	statement, args := s.sql.createDocument, []any{name, notNil(body)}
	if etag != "" {
		statement, args = s.sql.writeDocument, append(args, etag)
	}
	var r store.Revision
	err := s.row(ctx, writeDocument, name, statement, args, &r.ETag, &r.Date)
	if errors.Is(err, pgx.ErrNoRows) {
		err = refuse(writeDocument, name, store.ErrChanged)
	}
	if err != nil {
		return store.Revision{}, err
	}
	return r, nil
}
