// Package azure keeps entries as blobs of one container of Azure Blob Storage.
//
// The entry "app/job" is the block blob of that name. Its lease is the lock;
// its metadata, under the key "record", is the record; its content is the
// checkpoint. A document is a block blob too: its content, without a record. A log is an
// append blob. The record is metadata, because one HEAD request then returns
// record, ETag, state of the lease and the service's time as one view, and
// because it is billed like a lease operation, about a twelfth of a write, as
// which a checkpoint is billed
// (https://learn.microsoft.com/azure/storage/blobs/map-rest-apis-transaction-categories).
//
// Each method sends one request and repeats nothing. A listing sends one for each page. Only Create and the first
// WriteDocument or Append may send more: a missing container is created. A request by an identity is sent a
// second time if the service asks for a token with more claims.
//
// # What is not promised
//
//   - That a token which the service refuses is replaced before it expires by this
//     machine's clock. The client library has a cache of its own, which would return
//     the same token.
//   - That the service gives an expired lease away at once: the Lease Blob page
//     (https://learn.microsoft.com/rest/api/storageservices/lease-blob) warns of up to
//     a minute.
//   - Anything against somebody who deletes blobs: see [store.Remover].
package azure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/soloist-go/soloist/store"
)

// A Store is a blob container. [Open] makes one.
type Store struct {
	container *container.Client
	name      string // of the container
	url       string // without the query, which may be a signature
	way       credentials
	versions  atomic.Bool // the answer to a write named a version
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Documenter = (*Store)(nil)
)

// key names the record in the metadata. The client library returns it with a
// capital, as HTTP headers are.
const key = "record"

// String says which container it is, for logs. It has no secrets.
func (s *Store) String() string { return s.url }

// Limits returns the limits of a lease that is not infinite: 15 and 60 seconds.
func (s *Store) Limits() (shortest, longest time.Duration) {
	return 15 * time.Second, 60 * time.Second
}

// Create implements [store.Store]. A missing container is created on the
// way; where that is not allowed, the error says what to do.
func (s *Store) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	if err := checkRecord(record); err != nil {
		return store.Entry{}, err
	}
	options := &upload{Metadata: metadata(record), AccessConditions: unless(anything)}
	stamp, err := s.insert(ctx, create, name, nil, options)
	if err != nil {
		return store.Entry{}, err
	}
	return store.Entry{Revision: stamp, Record: bytes.Clone(record), State: store.Available}, nil
}

// upload is what goes with a block blob.
type upload = blockblob.UploadOptions

// anything, as an ETag, is that of any blob.
const anything = string(azcore.ETagAny)

// insert puts a blob, and creates the container if only that is missing.
func (s *Store) insert(ctx context.Context, o op, name string, body []byte, options *upload) (r store.Revision, err error) {
	err = s.inContainer(ctx, func() error {
		r, err = s.put(ctx, o, name, body, options)
		return err
	})
	return r, err
}

// put sends a copy of the body, because a request whose context ends may still be read from
// after the call has returned, when the caller uses its bytes again.
func (s *Store) put(ctx context.Context, o op, name string, body []byte, options *upload) (store.Revision, error) {
	copied := streaming.NopCloser(bytes.NewReader(bytes.Clone(body)))
	resp, err := s.container.NewBlockBlobClient(name).Upload(ctx, copied, options)
	s.noteVersion(resp.VersionID)
	return stamped(o, name, resp.ETag, resp.Date, err)
}

// inContainer makes a call, and once more if it had to create the container.
func (s *Store) inContainer(ctx context.Context, call func() error) error {
	return making(bloberror.ContainerNotFound, func() error { return s.createContainer(ctx) }, call)
}

// createContainer is content with a container that another replica created
// meanwhile.
func (s *Store) createContainer(ctx context.Context) error {
	_, err := s.container.Create(ctx, nil)
	if err == nil || bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil
	}
	return translate(createContainer, s.name, err)
}

// Read implements [store.Store]. The record of a blob without one, made by
// somebody else, is empty.
func (s *Store) Read(ctx context.Context, name string) (store.Entry, error) {
	resp, err := s.container.NewBlobClient(name).GetProperties(ctx, nil)
	if err != nil {
		return store.Entry{Revision: store.Revision{Date: refusedAt(err)}}, translate(read, name, err)
	}
	stamp, err := stamped(read, name, resp.ETag, resp.Date, nil)
	if err == nil && resp.LeaseState == nil {
		err = fmt.Errorf("azure: read %s: the answer has no lease state: it is not from the Blob service", name)
	}
	if err != nil {
		return store.Entry{}, err
	}
	e := store.Entry{Revision: stamp, Record: recordOf(resp.Metadata), State: store.LeaseState(*resp.LeaseState)}
	if resp.ContentLength != nil {
		e.Checkpoint = *resp.ContentLength
	}
	return e, nil
}

// Lease implements [store.Store].
func (s *Store) Lease(name, id string) store.Lease { return newHold(s, name, id) }

// Versioned reports whether the account keeps previous versions of blobs, as far
// as this store has written any: then each write costs the storage of one more
// (https://learn.microsoft.com/azure/storage/blobs/versioning-overview).
func (s *Store) Versioned() bool { return s.versions.Load() }

// noteVersion keeps what the answer to a write says about versions.
func (s *Store) noteVersion(version *string) {
	if version != nil {
		s.versions.Store(true)
	}
}

// metadata carries a record.
func metadata(record []byte) map[string]*string {
	value := string(record)
	return map[string]*string{key: &value}
}

// recordOf is what the metadata carries, nil if there is none.
func recordOf(metadata map[string]*string) []byte {
	for k, v := range metadata {
		if strings.EqualFold(k, key) && v != nil {
			return []byte(*v)
		}
	}
	return nil
}

// checkRecord keeps out what would not come back as it went: a header loses
// the spaces around its value, and the signature of a request does not cover
// other characters reliably.
func checkRecord(record []byte) error {
	n := len(record)
	switch {
	case n == 0:
		return errors.New("azure: the record is empty")
	case n > store.MaxRecord:
		return fmt.Errorf("azure: the record has %d bytes, more than %d", n, store.MaxRecord)
	case record[0] == ' ' || record[n-1] == ' ':
		return errors.New("azure: the record begins or ends with a space")
	}
	for i, c := range record {
		if c < ' ' || c > '~' {
			return fmt.Errorf("azure: byte %d of the record is not printable ASCII", i)
		}
	}
	return nil
}

// Delete removes an entry that has no holder: otherwise [store.ErrLost], and
// fs.ErrNotExist. It is for scratch entries. A job's must stay: a new one
// does not know which ticks were run.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := s.container.NewBlobClient(name).Delete(ctx, nil)
	return translate(remove, name, err)
}

// Remove implements [store.Remover]: one Delete Blob, which the service refuses while the blob is
// leased.
func (s *Store) Remove(ctx context.Context, name, etag string) error {
	match, err := ifMatch(etag)
	if err != nil {
		return err
	}
	_, err = s.container.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: match}})
	return translate(remove, name, err)
}
