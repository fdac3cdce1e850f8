package host_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// split is a program with a job of three shards and a singleton of two.
func split(runs *runsLog) host.Program {
	return host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		soloist.Job{Name: "import", Schedule: "@every 1h", Shards: 3, Do: func(_ context.Context, r *soloist.Run) error { runs.add(r.ID()); return nil }},
		soloist.Singleton{Name: "feed", Shards: 2, Do: untilStopped},
	}}
}

// What is ordered for a job with shards is ordered for each of them.
func TestOrdersOfTheWhole(t *testing.T) {
	environment(t, "SOLOIST_BY=ann")
	synctest.Test(t, func(t *testing.T) {
		runs := &runsLog{}
		p := split(runs)
		stop := replica(t, p, "replica-a")
		time.Sleep(time.Minute)
		wantLines(t, p, "pause import", 0, "import-0: paused by ann", "import-1: paused by ann", "import-2: paused by ann")
		wantLines(t, p, "resume import-1", 0, "import-1: resumed by ann")
		time.Sleep(time.Hour)
		if got, want := runs.all(), []string{"import-1@2000-01-01T01:00:00Z"}; !slices.Equal(got, want) {
			t.Errorf("ran %q, want %q", got, want)
		}
		wantLines(t, p, "run import --request again", 0, "import-0@again: succeeded", "import-1@again: succeeded", "import-2@again: succeeded")
		wantLines(t, p, "step-down feed-1", 0, "feed-1: its run is to be handed over")
		wantLines(t, p, "history import", 0, "import-0  2000-01-01 01:01:0", "import-1  2000-01-01 01:00:00Z", "import-2  2000-01-01 01:01:0")
		wantLines(t, p, "status", 0, "UTC, shard 2 of 3", "(singleton), shard 1 of 2")
		wantLines(t, p, "unlock import", 2, "demo: import is split into shards, import-0 to import-2: name one of them")
		wantLines(t, p, "next import-1", 0, "import: ")
		stop()
	})
}
