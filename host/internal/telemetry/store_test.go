package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// withLogs is a counted store and its logs.
type withLogs struct {
	store.Store
	store.LeaseBreaker
	store.ConditionalBreaker
	store.Documenter
	store.Lister
	store.Appender
}

// A store that is counted does what it does uncounted, and docs/metrics.md names the calls. A store without logs has none when it
// is counted.
func TestCountedStoreKeepsTheContract(t *testing.T) {
	var mu sync.Mutex
	called := map[string]bool{}
	_, rest, _ := strings.Cut(read(t, "../../../docs/metrics.md"), "`operation` is one of ")
	list, _, _ := strings.Cut(rest, ".\n")
	t.Cleanup(func() {
		if want := strings.Fields(strings.NewReplacer("`", "", ",", "").Replace(list)); !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(called))) {
			t.Errorf("the page has the operations %q, want those that are called, %q", want, slices.Sorted(maps.Keys(called)))
		}
	})
	storetest.Test(t, storetest.Harness{
		New: func(t *testing.T) store.Store {
			p := program()
			backend := p.Store.(store.Appender)
			m := open(t, p)
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				for _, found := range regexp.MustCompile(`operation="([\w-]+)"`).FindAllStringSubmatch(strings.Join(scrape(t, m), "\n"), -1) {
					called[found[1]] = true
				}
			})
			if m.Logs(nil) != nil {
				t.Error("a store without logs has some")
			}
			s := p.Store
			return withLogs{s, s.(store.LeaseBreaker), s.(store.ConditionalBreaker), s.(store.Documenter), s.(store.Lister), m.Logs(backend)}
		},
		Virtual: true,
	})
}

// refusing is a store with the methods that each store has. Reads and its leases answer with these errors, by the call.
type refusing struct {
	store.Store
	errs map[string]error
}

type refusingLease struct{ errs map[string]error }

func (r refusing) Read(context.Context, string) (store.Entry, error) {
	return store.Entry{}, r.errs["read"]
}
func (r refusing) Lease(string, string) store.Lease { return refusingLease{r.errs} }

func (l refusingLease) Acquire(context.Context, time.Duration, string) (store.Revision, error) {
	return store.Revision{}, l.errs["acquire"]
}
func (l refusingLease) Renew(context.Context) (store.Revision, error) {
	return store.Revision{}, l.errs["renew"]
}
func (l refusingLease) Write(context.Context, string, []byte) (store.Revision, error) {
	return store.Revision{}, l.errs["write"]
}
func (l refusingLease) Release(context.Context) error { return l.errs["release"] }

// A refusal that the protocol is built on is no error, and the text of an error is no label.
func TestCallsAreCountedByResult(t *testing.T) {
	for word, err := range map[string]error{
		"ok":        nil,
		"refused":   fmt.Errorf("409: %w", store.ErrHeld),
		"missing":   fs.ErrNotExist,
		"unchanged": store.ErrUnchanged,
		"denied":    fs.ErrPermission,
		"timeout":   fmt.Errorf("calling: %w", context.DeadlineExceeded),
		"cancelled": context.Canceled,
		"error":     errors.New("Get https://account.blob.core.windows.net/c?sig=secret: EOF"),
	} {
		s := program()
		s.Store = refusing{&local.Memory{}, map[string]error{"read": err}}
		m := open(t, s)
		if _, got := s.Store.Read(t.Context(), "demo/report"); got != err {
			t.Errorf("got %v, want %v", got, err)
		}
		wantLines(t, scrape(t, m), []string{`soloist_storage_call_duration_seconds_count{operation="read",result="` + word + `"} 1`})
	}
}
