package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// That each test of the suite fails with a mistake is shown in internal/mistakes, by mistakes in package local.

func virtual(backend func() store.Store) storetest.Harness {
	return storetest.Harness{Virtual: true, New: func(*testing.T) store.Store { return backend() }}
}

// plain hides what a store and its leases have beyond the interfaces.
type plain struct{ store.Store }

func (s plain) Lease(name, id string) store.Lease {
	return struct{ store.Lease }{s.Store.Lease(name, id)}
}

// creates replaces what is there.
type creates struct{ *local.Memory }

func (s creates) Create(_ context.Context, name string, record []byte) (store.Entry, error) {
	ctx := context.Background()
	e, err := s.Memory.Create(ctx, name, record)
	if errors.Is(err, fs.ErrExist) {
		_ = s.Memory.Break(ctx, name, 0)
		_ = s.Memory.Delete(ctx, name)
		return s.Memory.Create(ctx, name, record)
	}
	return e, err
}

// A store that fails exactly as listed passes; one without Break, Delete or Save
// is spared the tests that need it. The list of failures is exact, or this fails.
func TestDifferences(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New:     func(*testing.T) store.Store { return plain{creates{new(local.Memory)}} },
		Virtual: true,
		Differences: map[string]string{
			"Create/available": "a create replaces the record",
			"Create/released":  "a create replaces the record",
			"Create/leased":    "a create replaces the record",
			"Create/expired":   "a create replaces the record",
			"Race/create":      "a create replaces the record",
			"Context/create":   "a create asks no context",
		},
	})
}

const harnessVariable = "STORETEST_HARNESS"

// wrong are harnesses that fail, and what the suite says of them.
var wrong = map[string]struct {
	harness storetest.Harness
	says    string
}{
	"gone":    {with("Date"), "passes, but is listed as a difference: no clock"},
	"no test": {with("Dates"), `difference "Dates" is not a test`},
	"half": {virtual(func() store.Store { m := new(local.Memory); return half{m, m} }),
		"a ConditionalBreaker has to be a LeaseBreaker"},
	"real time": {storetest.Harness{New: func(*testing.T) store.Store { return creates{new(local.Memory)} }}, "FAIL: TestHarness/Create/available"},
}

func with(difference string) storetest.Harness {
	h := virtual(func() store.Store { return new(local.Memory) })
	h.Differences = map[string]string{difference: "no clock"}
	return h
}

// half has a conditional break and no other.
type half struct {
	store.Store
	store.ConditionalBreaker
}

// TestHarness is what the processes of TestWrongHarnesses run.
func TestHarness(t *testing.T) {
	h, ok := wrong[os.Getenv(harnessVariable)]
	if !ok {
		t.Skip("run by TestWrongHarnesses")
	}
	storetest.Test(t, h.harness)
}

func TestWrongHarnesses(t *testing.T) {
	for name, h := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHarness$/^(Create|Date)$")
			cmd.Env = append(os.Environ(), harnessVariable+"="+name)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), h.says) {
				t.Errorf("got %v, want a failed test that says %q:\n%s", err, h.says, out)
			}
		})
	}
}

// squeezes leaves one space of several in a row.
type squeezes struct{ *local.Memory }

func (s squeezes) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return s.Memory.Create(ctx, name, repeated.ReplaceAll(record, []byte(" ")))
}

var repeated = regexp.MustCompile("  +")

// No record has two spaces in a row, so a store need not keep them.
func TestSpacesInARow(t *testing.T) {
	storetest.Test(t, virtual(func() store.Store { return squeezes{new(local.Memory)} }))
}

// limited has limits of its own.
type limited struct {
	*local.Memory
	shortest, longest time.Duration
}

func (s limited) Limits() (shortest, longest time.Duration) { return s.shortest, s.longest }

func (s limited) Lease(name, id string) store.Lease {
	return limitedLease{s.Memory.Lease(name, id), s}
}

type limitedLease struct {
	store.Lease
	of limited
}

func (l limitedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if d < l.of.shortest || d > l.of.longest {
		return store.Revision{}, errors.New("no such length")
	}
	return l.Lease.Acquire(ctx, d, etag)
}

// A store may have one length of leases, or two that are near each other.
func TestNearLimits(t *testing.T) {
	for _, limits := range [][2]time.Duration{{30 * time.Second, 30 * time.Second}, {20 * time.Second, 21 * time.Second}} {
		t.Run(fmt.Sprint(limits[0], " to ", limits[1]), func(t *testing.T) {
			storetest.Test(t, virtual(func() store.Store { return limited{new(local.Memory), limits[0], limits[1]} }))
		})
	}
}
