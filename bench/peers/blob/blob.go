package main

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// Blobs are those of a container, as a program uses them by hand: by the client library, with its defaults.
type blobs struct{ client *container.Client }

// openBlobs returns a container, which it creates if there is none.
func openBlobs(ctx context.Context, connection, name string) (*blobs, error) {
	client, err := container.NewClientFromConnectionString(connection, name, nil)
	if err != nil {
		return nil, err
	}
	if _, err := client.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil, err
	}
	return &blobs{client}, nil
}

// A leasedBlob is one blob, and one lease that this client may have on it.
type leasedBlob struct {
	client *blockblob.Client
	lease  *lease.BlobClient
}

// Blob returns a blob, which it creates if there is none.
func (c *blobs) Blob(ctx context.Context, name string) (*leasedBlob, error) {
	client := c.client.NewBlockBlobClient(name)
	_, err := client.Upload(ctx, nopCloser{strings.NewReader("")}, nil)
	if err != nil && !bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.LeaseIDMissing) {
		return nil, err
	}
	l, err := lease.NewBlobClient(client, nil)
	return &leasedBlob{client, l}, err
}

// nopCloser is a body of a request.
type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

// Acquire acquires the lease for so many seconds. False: another client has it.
func (b *leasedBlob) Acquire(ctx context.Context, seconds int32) (ok bool, err error) {
	_, err = b.lease.AcquireLease(ctx, seconds, nil)
	if bloberror.HasCode(err, bloberror.LeaseAlreadyPresent) {
		return false, nil
	}
	return err == nil, err
}

// Release gives the lease back.
func (b *leasedBlob) Release(ctx context.Context) error {
	_, err := b.lease.ReleaseLease(ctx, nil)
	return err
}
