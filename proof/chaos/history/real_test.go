package history_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

func TestMain(m *testing.M) { proctest.Main(m, 20) } // those in real time sleep nearly always

// slack is how far the clock of a store may be from that of the histories, both
// of this machine: the coarser of them counts in hundredths of a second.
const slack = 50 * time.Millisecond

// named is a session of an entry of its own, in real time.
func (s session) named(seed uint64) session {
	s.seed, s.name, s.model.slack = seed, fmt.Sprint("app/job-", seed), slack
	return s
}

func TestDir(t *testing.T) {
	alone(t)
	backend := local.Dir{Path: t.TempDir()}
	inReality(t, 50, func(seed uint64) *history {
		return session{calls: 80, lasts: 12 * time.Second, oneWay: time.Millisecond}.named(seed).of(backend)
	})
}

// Azurite, by real connections. It renews an expired lease under any id.
func TestAzurite(t *testing.T) {
	alone(t)
	server := azurite.Start(t)
	open := func(seed uint64, n, ills int) store.Store {
		return overAzurite(t, server, &deaf{dice: rand.New(rand.NewPCG(seed, uint64(most+n))), ills: ills})
	}
	var late sync.WaitGroup
	late.Go(func() { checkLateRenewal(t, open(0, 0, 0)) })
	inReality(t, 100, func(seed uint64) *history {
		s := session{calls: 60, lasts: 22 * time.Second, late: never, model: model{anyID: true}}.named(seed)
		return s.record(func(n int) store.Store { return open(seed, n, int(seed%3)*8) })
	})
	late.Wait()
}

// overAzurite has connections of its own, and closes those that Azurite would close: it does so after 5 s.
func overAzurite(t *testing.T, server *azurite.Server, by *deaf) store.Store {
	by.client = &http.Client{Transport: &http.Transport{IdleConnTimeout: 2 * time.Second}}
	s, err := azure.Open(azure.Config{ConnectionString: server.ConnectionString(), Transport: by})
	if err != nil {
		t.Error(err)
	}
	return s
}

// checkLateRenewal has one renew its lease when that of the next has run out, and
// the checker tell whether a store may allow that.
func checkLateRenewal(t *testing.T, backend store.Store) {
	c := newClient(newHistory(model{slack: slack}.porcupine(), never), backend, 0, session{name: "app/late"})
	ctx := context.Background()
	c.create(ctx)
	acquire := func(id string) store.Lease {
		l := backend.Lease(c.name, id)
		c.stamped(ctx, call{op: "acquire", id: id, etag: c.tag(c.etag), span: c.shortest}, func() (store.Revision, error) {
			return l.Acquire(ctx, c.shortest, c.etag)
		})
		return l
	}
	old := acquire(c.other)
	c.do(ctx, call{op: "release", id: c.other}, func() (store.Entry, string, error) { return store.Entry{}, "", old.Release(ctx) })
	acquire(c.id)
	time.Sleep(c.shortest + time.Second)
	c.stamped(ctx, call{op: "renew", id: c.other}, func() (store.Revision, error) { return old.Renew(ctx) })
	if got, want := c.check(patience), porcupine.Illegal; got != want {
		t.Errorf("by the contract: got %s, want %s of\n%s", got, want, c.history.text())
	}
	c.history.model = model{slack: slack, anyID: true}.porcupine()
	if got, want := c.check(patience), porcupine.Ok; got != want {
		t.Errorf("as Azurite is known: got %s, want %s of\n%s", got, want, c.history.text())
	}
}

// deaf is a client that misses answers, or hangs up before they come.
type deaf struct {
	client *http.Client
	dice   *rand.Rand
	ills   int // one request in so many; zero: none
}

func (d *deaf) Do(r *http.Request) (*http.Response, error) {
	if d.ills == 0 || d.dice.IntN(d.ills) > 0 {
		return d.client.Do(r)
	}
	ctx, cancel := r.Context(), func() {}
	if d.dice.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(d.dice.Int64N(int64(5*time.Millisecond))))
	}
	defer cancel()
	resp, err := d.client.Do(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return nil, syscall.ECONNRESET
}
