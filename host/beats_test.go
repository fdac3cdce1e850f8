package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
)

// validate and doctor tell what a lease costs that is shorter than the store's shortest, and no other.
func TestPriceOfShortLease(t *testing.T) {
	do := func(context.Context, *soloist.Run) error { return nil }
	program := host.Program{Work: []soloist.Work{
		soloist.Singleton{Name: "feed", Lease: 3 * time.Second, Do: do},
		soloist.Singleton{Name: "parts", Lease: time.Second, Shards: 4, Do: do},
		soloist.Job{Name: "report", Schedule: "@hourly", Lease: 5 * time.Second, Do: do},
		soloist.Job{Name: "nightly", Schedule: "@daily", Do: do},
	}}
	environment(t, "SOLOIST_STORAGE=UseDevelopmentStorage=true")
	want := `
		ok: 2 jobs, 2 singletons, app demo on http://127.0.0.1:10000/devstoreaccount1/soloist
		feed: lease 3s, shorter than the 15s of the store, so its holder beats: about $1.37 a month for the replica that runs it and $1.14 for each other one
		parts: lease 1s, shorter than the 15s of the store, so its holder beats: about $3.65 a month for the replica that runs it and $3.42 for each other one, for each of 4 shards
		report: lease 5s, shorter than the 15s of the store, so its holder beats: about $0.0013 for each hour of its runs, and as much at most for each other replica
`
	wantRun(t, program, "validate", 0, want)
	if got := run(t.Context(), program, "validate", "--json"); !strings.Contains(got.out, `"feed: lease 3s,`) {
		t.Errorf("got %+v", got)
	}
	environment(t, "SOLOIST_STORAGE=UseDevelopmentStorage=true", "SOLOIST_LEASE=2s")
	if got := run(t.Context(), program, "validate"); !strings.Contains(got.out, "nightly: lease 2s,") {
		t.Errorf("got %+v", got)
	}
	environment(t, "SOLOIST_STORAGE=UseDevelopmentStorage=true", "SOLOIST_LEASE=500ms")
	if got := run(t.Context(), program, "validate"); got.code != 2 || !strings.Contains(got.err, `SOLOIST_LEASE is "500ms": want whole seconds from 1s to 1m0s`) {
		t.Errorf("got %+v", got)
	}
	environment(t, "SOLOIST_STORAGE=memory:")
	if got := run(t.Context(), program, "validate"); strings.Contains(got.out, "beats") {
		t.Errorf("a store that takes such leases: %+v", got)
	}
}
