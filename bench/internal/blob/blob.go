// Package blob is the Blob service as a program uses it by hand: a lease and metadata of a blob, by
// the client library, with its defaults.
package blob

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// A Container has blobs.
type Container struct{ client *container.Client }

// Open returns a container, which it creates if there is none.
func Open(ctx context.Context, connection, name string) (*Container, error) {
	client, err := container.NewClientFromConnectionString(connection, name, nil)
	if err != nil {
		return nil, err
	}
	if _, err := client.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil, err
	}
	return &Container{client}, nil
}

// A Blob is one blob, and one lease that this client may have on it.
type Blob struct {
	client *blockblob.Client
	lease  *lease.BlobClient
}

// Blob returns a blob, which it creates if there is none.
func (c *Container) Blob(ctx context.Context, name string) (*Blob, error) {
	client := c.client.NewBlockBlobClient(name)
	_, err := client.Upload(ctx, nopCloser{strings.NewReader("")}, nil)
	if err != nil && !bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.LeaseIDMissing) {
		return nil, err
	}
	l, err := lease.NewBlobClient(client, nil)
	return &Blob{client, l}, err
}

// nopCloser is a body of a request.
type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

// Acquire acquires the lease for so many seconds. False: another client has it.
func (b *Blob) Acquire(ctx context.Context, seconds int32) (ok bool, err error) {
	_, err = b.lease.AcquireLease(ctx, seconds, nil)
	if bloberror.HasCode(err, bloberror.LeaseAlreadyPresent) {
		return false, nil
	}
	return err == nil, err
}

// Release gives the lease back.
func (b *Blob) Release(ctx context.Context) error {
	_, err := b.lease.ReleaseLease(ctx, nil)
	return err
}

// SetMetadata replaces the metadata.
func (b *Blob) SetMetadata(ctx context.Context, key, value string) error {
	_, err := b.client.SetMetadata(ctx, map[string]*string{key: &value}, nil)
	return err
}
