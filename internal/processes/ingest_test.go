//go:build unix

package processes

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

var (
	kills = flag.Int("kills", 20, "how often TestIngest kills replicas over a directory, and a fifth of that over Azurite")
	seed  = flag.Uint64("seed", rand.Uint64N(1_000_000), "what is random in TestIngest")
)

// carriers starts replicas of the program in jobs, whose job ingest carries pages each second.
func carriers(t *testing.T, program string, storage proctest.Storage, l *ledger, names ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, storage: storage}
	f.Program = program
	f.Env = append(storage.Env(), "SOLOIST_APP=proof", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_LOG_FORMAT=json",
		"SOLOIST_JOB_INGEST_SCHEDULE=@every 1s", "HEARTBEAT_URL=", "INGEST_SOURCE="+l.source.URL, "INGEST_SINK="+l.target.URL)
	t.Cleanup(func() { f.End(t) })
	f.start(names...)
	return f
}

// drain waits until all pages are in the sink, ends the replicas and returns what was wrong.
func drain(f *fleet, l *ledger, names ...string) []string {
	f.t.Helper()
	proctest.Poll(f.t, "the last page", patience, l.drained)
	f.awaitReady(names...)
	f.stop(names...)
	return l.faults()
}

// Two replicas of the example job carry pages while they are killed at random. No page is lost, applied twice or out of
// date, and the position never goes back.
func TestIngest(t *testing.T) {
	nightly.Only(t, "starts replicas and kills them")
	t.Parallel()
	program := proctest.Build(t, "jobs", false)
	t.Run("directory", func(t *testing.T) { killAtRandom(t, program, proctest.Directory(t.TempDir()), *kills) })
	t.Run("azurite", func(t *testing.T) { killAtRandom(t, program, proctest.Azurite(t), *kills/5) })
}

func killAtRandom(t *testing.T, program string, storage proctest.Storage, kills int) {
	t.Logf("again, more or less, with -seed %d", *seed)
	random, names := rand.New(rand.NewPCG(*seed, 0)), []string{"a", "b"}
	l := newLedger(t, keeper{}, slowly(rand.New(rand.NewPCG(*seed, 1)), storage.Lease))
	f := carriers(t, program, storage, l, names...)
	for range kills {
		l.publish(20)
		last := l.newest()
		proctest.Poll(t, "a new run", patience, func() bool { return l.newest() > last })
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		victim := names[random.IntN(2)]
		for _, e := range f.Events() { // mostly the replica that runs the job
			if e.Msg == "run started" && e.Job == "ingest" && random.IntN(10) > 0 {
				victim = e.Replica
			}
		}
		both := random.IntN(10) == 0
		for _, name := range names {
			if name == victim || both {
				f.Replica(name).Kill()
				f.start(name)
			}
		}
	}
	for _, fault := range drain(f, l, names...) {
		t.Error(fault)
	}
	t.Logf("%d kills, %d pages: %d applied, %d put again, %d refused as stale", kills, l.published, l.count(applied), l.count(again), l.count(refused))
}

// Mistakes in the job.
var (
	savesFirst = []proctest.Edit{
		{File: "jobs/ingest.go", Old: "\n\t\tif err := in.put(ctx, at.Next, page); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tat.Next++\n", New: "\n\t\tat.Next++\n"},
		{File: "jobs/ingest.go", Old: "return fmt.Errorf(\"save the position: %w\", err)\n\t\t}\n", New: "return err\n\t\t}\n\t\tif err := in.put(ctx, at.Next-1, page); err != nil {\n\t\t\treturn err\n\t\t}\n"},
	}
	neverLoads = []proctest.Edit{{File: "jobs/ingest.go", Old: `run.Load(ctx, &at)`, New: `ctx.Err()`}}
)

// The program is killed once, at a moment in the life of page 5.
func TestIngestKilledAtAMoment(t *testing.T) {
	nightly.Only(t, "builds programs, starts replicas and kills them")
	t.Parallel()
	const never, late = "the request gets lost", "the request comes after the next run has put the page"
	program := proctest.Build(t, "jobs", false)
	for _, test := range []struct {
		name    string
		mistake []proctest.Edit
		keeper  keeper
		moment  moment
		outcome string // of the request
		want    string
	}{
		{"in the get", nil, keeper{}, atSource, "", ""},
		{"in the put, which gets lost", nil, keeper{}, beforeCommit, never, ""},
		{"in the put, which comes late", nil, keeper{}, beforeCommit, late, ""},
		{"after the put, before its answer", nil, keeper{}, beforeAnswer, "", ""},

		// What each part is for: without it, the same moment does harm.
		{"saved before put", savesFirst, keeper{}, beforeCommit, never, "page 5 is lost"},
		{"no checkpoint", neverLoads, keeper{}, beforeCommit, never, "the position went back from 5 to 1"},
		{"a sink that forgets its pages", nil, keeper{forgets: true}, beforeAnswer, "", "page 5 is applied 2 times"},
		{"a fence alone keeps off a late put", nil, keeper{forgets: true}, beforeCommit, late, ""},
		{"neither", nil, keeper{forgets: true, unfenced: true}, beforeCommit, late,
			"page 5 is applied by a stale run\npage 5 is applied 2 times"},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := program
			if test.mistake != nil {
				program = proctest.Build(t, "jobs", false, test.mistake...)
			}
			reached, goOn := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(goOn) })
			defer release()
			var once atomic.Bool
			l := newLedger(t, test.keeper, func(m moment, page int, _ *http.Request) (drop bool) {
				if m != test.moment || page != 5 || once.Swap(true) {
					return false
				}
				close(reached)
				<-goOn
				return test.outcome == never
			})
			l.publish(10)
			f := carriers(t, program, proctest.Directory(t.TempDir()), l, "a")
			<-reached
			f.Replica("a").Kill()
			f.start("a")
			if test.outcome == late {
				proctest.Poll(t, "the next page", patience, func() bool { return l.count(applied) > 5 })
			}
			release()
			if got := strings.Join(drain(f, l, "a"), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
