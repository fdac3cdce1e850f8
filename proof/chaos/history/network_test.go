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

// A distance is how far a client is from a store that it calls without a network.
type distance struct {
	dice *rand.Rand
	most time.Duration // one way
	ills int           // one answer in so many is lost; zero: none
}

// travel makes one call from afar.
func (d *distance) travel(ctx context.Context, call func() (store.Entry, string, error)) (e store.Entry, checkpoint string, err error) {
	there, back := time.Duration(d.dice.Int64N(int64(d.most)+1)), time.Duration(d.dice.Int64N(int64(d.most)+1))
	lost := d.ills > 0 && d.dice.IntN(d.ills) == 0
	if proctest.Pause(ctx, there) != nil {
		return e, "", ctx.Err()
	}
	e, checkpoint, err = call()
	if proctest.Pause(ctx, back) != nil || lost {
		return store.Entry{}, "", context.DeadlineExceeded
	}
	return e, checkpoint, err
}
