// Blob is a replica of the bench: a blob lease for each tick, as people write it themselves, by the client library with
// its defaults. The replica that gets the lease runs the tick, and releases the lease.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	c, err := container.NewClientFromConnectionString(w.Service, w.Space, nil)
	if err != nil {
		return err
	}
	if _, err := c.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, j := range w.Jobs {
		l, err := leaseOf(ctx, c, j.Name)
		if err != nil {
			return err
		}
		all.Go(func() {
			for tick := j.Next(time.Now()); replica.Wait(ctx, time.Until(tick)) == nil; tick = j.Next(tick) {
				_, err := l.AcquireLease(ctx, 15, nil)
				if err == nil {
					_ = w.Do(ctx, j, tick) // it ends early only as ctx does
					_, err = l.ReleaseLease(context.WithoutCancel(ctx), nil)
				}
				if err != nil && ctx.Err() == nil && !bloberror.HasCode(err, bloberror.LeaseAlreadyPresent) {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	return nil
}

// leaseOf returns the lease of a blob, which it creates if there is none.
func leaseOf(ctx context.Context, c *container.Client, name string) (*lease.BlobClient, error) {
	blob := c.NewBlockBlobClient(name)
	_, err := blob.Upload(ctx, body{strings.NewReader("")}, nil)
	if err != nil && !bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.LeaseIDMissing) {
		return nil, err
	}
	return lease.NewBlobClient(blob, nil)
}

// A body is the body of a request.
type body struct{ *strings.Reader }

func (body) Close() error { return nil }
