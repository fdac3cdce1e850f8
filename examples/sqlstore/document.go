package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A document is a row without a record; its checkpoint is the document. Each call is one
// statement, which is atomic by itself: a document has no lease to be judged.
const (
	insertDocument = `INSERT INTO soloist (name, version, etag, record, checkpoint, id, length, ends, broken)
VALUES ($1, $2, $2, '', $3, '', 0, 0, FALSE) ON CONFLICT (name) DO NOTHING`

	replaceDocument = `UPDATE soloist SET version = $3, etag = $3, checkpoint = $4 WHERE name = $1 AND etag = $2`

	selectDocument = `SELECT etag, CASE WHEN etag = $2 THEN NULL ELSE checkpoint END FROM soloist WHERE name = $1`
)

// ReadDocument returns the document, unless its ETag is etag.
func (s *Store) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d := store.Document{Revision: store.Revision{Date: time.UnixMicro(now())}}
	err := s.DB.QueryRowContext(ctx, selectDocument, name, etag).Scan(&d.ETag, &d.Body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = fs.ErrNotExist
	case err == nil && d.ETag == etag:
		err = store.ErrUnchanged
	}
	return d, err
}

// WriteDocument replaces the document if its ETag is etag, or makes it if etag is empty.
func (s *Store) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if len(body) > store.MaxDocument {
		return store.Revision{}, fmt.Errorf("a document of %d bytes: allowed are %d", len(body), store.MaxDocument)
	}
	next := rand.Text()
	body = append([]byte{}, body...) // not nil
	var done bool
	var err error
	if etag == "" {
		done, err = one(s.DB.ExecContext(ctx, insertDocument, name, next, body))
	} else {
		done, err = one(s.DB.ExecContext(ctx, replaceDocument, name, etag, next, body))
	}
	if err == nil && !done {
		err = store.ErrChanged
	}
	if err != nil {
		return store.Revision{}, err
	}
	return store.Revision{ETag: next, Date: time.UnixMicro(now())}, nil
}
