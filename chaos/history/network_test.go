package history_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// latest is how long after it was sent a request may be delivered: in a lease of
// another, perhaps.
const latest = 30 * time.Second

// A transport is what the client library sends requests by.
type transport interface {
	Do(*http.Request) (*http.Response, error)
}

// A network is the way of all clients of a session to the service, in virtual time: it takes its time, and may lose what is sent
// or answered, or deliver it when nobody waits any more.
type network struct {
	seed    uint64
	service transport
	most    time.Duration  // one way
	ills    int            // one request in so many meets one; zero: none
	late    sync.WaitGroup // requests under way that nobody waits for
}

// open returns the store of a client.
func (n *network) open(client int) store.Store {
	dice := &safeSource{}
	dice.of.Seed(n.seed, uint64(most+client))
	s, err := azure.Open(azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sig=x", Transport: &line{n, rand.New(dice)}})
	if err != nil {
		panic(err)
	}
	return s
}

// A safeSource lets several goroutines of one client draw.
type safeSource struct {
	mu sync.Mutex
	of rand.PCG
}

func (s *safeSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Uint64()
}

// A line is that of one client.
type line struct {
	*network
	dice *rand.Rand
}

// Do makes it a transport of the client library.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	there, back := l.upTo(l.most), l.upTo(l.most)
	request, err := detached(r)
	if err != nil {
		return nil, err
	}
	ill := 0
	if l.ills > 0 && l.dice.IntN(l.ills) == 0 {
		ill = 1 + l.dice.IntN(5)
	}
	switch ill {
	case 1: // lost
		<-ctx.Done()
		return nil, ctx.Err()
	case 2: // late: after leases have run out, perhaps
		l.deliver(request, l.upTo(latest))
		<-ctx.Done()
		return nil, ctx.Err()
	case 3: // refused
		time.Sleep(there)
		return blobtest.Refusal(request, time.Now(), http.StatusServiceUnavailable, "ServerBusy"), nil
	}
	if proctest.Pause(ctx, there) != nil {
		l.deliver(request, l.upTo(there))
		return nil, ctx.Err()
	}
	resp, err := l.service.Do(request)
	switch {
	case ill == 4: // the answer lost
		return nil, syscall.ECONNRESET
	case ill == 5:
		return blobtest.Refusal(request, time.Now(), http.StatusInternalServerError, "OperationTimedOut"), nil
	case proctest.Pause(ctx, back) != nil:
		return nil, ctx.Err()
	}
	return resp, err
}

// deliver applies a request after d.
func (l *line) deliver(r *http.Request, d time.Duration) {
	l.late.Go(func() {
		time.Sleep(d)
		l.service.Do(r)
	})
}

func (l *line) upTo(d time.Duration) time.Duration { return time.Duration(l.dice.Int64N(int64(d) + 1)) }

// detached is r as it goes on its way, whoever waits for the answer.
func detached(r *http.Request) (*http.Request, error) {
	out := r.WithContext(context.WithoutCancel(r.Context()))
	if r.Body == nil {
		return out, nil
	}
	b, err := io.ReadAll(r.Body)
	out.Body = io.NopCloser(bytes.NewReader(b))
	return out, err
}

// far is a store whose calls take time there and back, and whose answers may get
// lost on the way.
type far struct {
	store.Store
	dice *rand.Rand
	most time.Duration // one way
	ills int           // one answer in so many is lost; zero: none
}

// travel makes one call from afar.
func travel[T any](f far, ctx context.Context, apply func(context.Context) (T, error)) (T, error) {
	var none T
	there, back := time.Duration(f.dice.Int64N(int64(f.most)+1)), time.Duration(f.dice.Int64N(int64(f.most)+1))
	lost := f.ills > 0 && f.dice.IntN(f.ills) == 0
	if proctest.Pause(ctx, there) != nil {
		return none, ctx.Err()
	}
	v, err := apply(ctx)
	if proctest.Pause(ctx, back) != nil || lost {
		return none, context.DeadlineExceeded
	}
	return v, err
}

func (f far) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return travel(f, ctx, func(ctx context.Context) (store.Entry, error) { return f.Store.Create(ctx, name, record) })
}

func (f far) Read(ctx context.Context, name string) (store.Entry, error) {
	return travel(f, ctx, func(ctx context.Context) (store.Entry, error) { return f.Store.Read(ctx, name) })
}

func (f far) Break(ctx context.Context, name string, period time.Duration) error {
	_, err := travel(f, ctx, func(ctx context.Context) (bool, error) {
		return true, f.Store.(store.LeaseBreaker).Break(ctx, name, period)
	})
	return err
}

func (f far) BreakUnchanged(ctx context.Context, name, etag string) error {
	_, err := travel(f, ctx, func(ctx context.Context) (bool, error) {
		return true, f.Store.(store.ConditionalBreaker).BreakUnchanged(ctx, name, etag)
	})
	return err
}

func (f far) Lease(name, id string) store.Lease {
	return farLease{f, f.Store.Lease(name, id).(store.Checkpointer), f.Store.Lease(name, id)}
}

type farLease struct {
	far    far
	keeper store.Checkpointer
	lease  store.Lease
}

func (l farLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return travel(l.far, ctx, func(ctx context.Context) (store.Revision, error) { return l.lease.Acquire(ctx, d, etag) })
}

func (l farLease) Renew(ctx context.Context) (store.Revision, error) {
	return travel(l.far, ctx, l.lease.Renew)
}

func (l farLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return travel(l.far, ctx, func(ctx context.Context) (store.Revision, error) { return l.lease.Write(ctx, etag, record) })
}

func (l farLease) Release(ctx context.Context) error {
	_, err := travel(l.far, ctx, func(ctx context.Context) (bool, error) { return true, l.lease.Release(ctx) })
	return err
}

func (l farLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return travel(l.far, ctx, func(ctx context.Context) (store.Revision, error) {
		return l.keeper.Save(ctx, etag, record, checkpoint)
	})
}

func (l farLease) Load(ctx context.Context, etag string) ([]byte, error) {
	return travel(l.far, ctx, func(ctx context.Context) ([]byte, error) { return l.keeper.Load(ctx, etag) })
}
