package storetest

import (
	"github.com/soloist-go/soloist/store"
)

// pairs is what one instance sees of another: all that it has done, at once.
var pairs = []property{
	{"Twins/lease", twins, func(c *check) {
		near, far := c.pair()
		near.acquire(near.own, near.longest())
		far.state("leased by the other instance", store.Leased)
		_, err := far.own.Acquire(c.ctx, far.longest(), far.etag)
		c.want("acquire beside the other instance", err, store.ErrHeld)
		near.release("release", near.own, nil)
		far.acquire(far.own, far.longest())
		near.state("leased by the other instance", store.Leased)
		near.write("write under the lease of the other instance", near.own, store.ErrLost)
	}},
}

// pair returns one entry as two instances see it, each with an id of its own.
// Both have read it, so a cache has it.
func (c *check) pair() (near, far *subject) {
	near = c.subject()
	far = &subject{check: c, store: c.other, name: near.name, etag: near.etag}
	far.own = far.lease()
	near.read()
	far.read()
	return near, far
}
