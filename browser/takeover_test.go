package browser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/soloist-go/soloist/internal/proctest"
)

// While the replica of a run is killed and another takes over, the page and status --watch
// show what the record says, and nothing that it does not say.
func TestPageAndWatchAgreeThroughKill(t *testing.T) {
	t.Parallel()
	f, storage, urls := overAzurite(t, asIngest, "SOLOIST_LEASE=30s") // a busy machine loses shorter ones without a kill
	record := read(t, storage, "demo/ingest")
	status := watch(t, f, "ingest")
	first := f.toldOf("ingest", "start")
	delete(urls, first.Replica)
	b := newTab(t)
	for _, url := range urls {
		b.do(chromedp.Navigate(url))
		break
	}
	b.await("the list", has(row("ingest"), "every 5 seconds"))
	b.follow("ingest")
	running := func(e proctest.Event) sight {
		return sight{State: "running", Replica: e.Replica, Tick: stamp(e.Tick)}
	}
	both := func(what string, ok func(sight) bool) {
		t.Helper()
		for who, sights := range map[string]func() []moment{"the page": b.sights, "status --watch": status.sights} {
			proctest.Poll(t, fmt.Sprintf("%s on %s", what, who), 20*time.Second, func() bool {
				return slices.ContainsFunc(sights(), func(m moment) bool { return ok(m.sight) })
			})
		}
	}
	both("the first run", running(first).alike)

	f.Replica(first.Replica).Kill()
	second := f.toldOf("ingest", "start")
	if second.Replica == first.Replica || !second.Tick.Equal(first.Tick) || second.Attempt != 2 || second.Token <= first.Token {
		t.Errorf("%+v follows on %+v, want the second attempt on another replica", second, first)
	}
	both("the take-over", running(second).alike)
	b.picture("taken-over")
	f.toldOf("ingest", "end")
	both("the outcome", func(s sight) bool { return slices.Contains(s.Ended, stamp(second.Tick)+" succeeded") })
	third := f.toldOf("ingest", "start")
	both("the next run", running(third).alike)
	b.wantAccessible("after the take-over")
	b.wantNothingWrong()
	if !slices.ContainsFunc(b.sights(), func(m moment) bool { return m.alike(running(second)) && m.Attempt == 2 }) {
		t.Errorf("the page showed %v, and no second attempt", b.sights())
	}
	seen, told, readings := b.sights(), status.sights(), record.readings()
	wantFrom(t, "the page", seen, readings)
	wantFrom(t, "status --watch", told, readings)
	if t.Failed() {
		t.Logf("the record:%s", changes(readings))
	}
}
