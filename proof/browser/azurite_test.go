package browser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/soloist-go/soloist/internal/proctest"
)

// overAzurite has three replicas over Azurite, and returns the addresses of their pages by
// name.
func overAzurite(t *testing.T, order string, env ...string) (f *fleet, storage proctest.Storage, urls map[string]string) {
	t.Helper()
	storage = proctest.Azurite(t)
	f = fleetWith(t, order, append(storage.Env(), env...))
	urls = map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		urls[name] = f.start(name)
	}
	return f, storage, urls
}

// The page shows the start and the end of a run, on whichever of three replicas it runs, in one request and a stream.
func TestPageShowsRunsOverAzurite(t *testing.T) {
	f, _, urls := overAzurite(t, asUsual)
	delete(urls, f.told("start").Replica) // it may run the next ones, too
	for name, url := range urls {
		b := newTab(t)
		b.do(chromedp.Navigate(url))
		f.wantRuns(b, name)
		b.wantAccessible("three replicas")
		b.wantBudget()
		b.wantNothingWrong()
		break
	}
}

// wantRuns waits until the page of a replica has shown two runs of pulse, one of them on another replica. A busy machine
// may show nothing of a short run.
func (f *fleet) wantRuns(b *tab, replica string) {
	f.t.Helper()
	b.await("the list", has(row("pulse"), "every 4 seconds"))
	b.follow("pulse")
	for shown, elsewhere := 0, false; shown < 2 || !elsewhere; {
		run := f.told("start")
		f.told("end")
		b.await("the end on the page", has(row("pulse"), "idle"))
		if slices.ContainsFunc(b.sights(), func(m moment) bool {
			return m.State == "running" && m.Replica == run.Replica && m.Tick == stamp(run.Tick)
		}) {
			shown++
			elsewhere = elsewhere || run.Replica != replica
		}
	}
}

// Changes on the page reach all replicas; without the admin token they are refused.
func TestPageOrdersOverAzurite(t *testing.T) {
	t.Parallel()
	f, _, urls := overAzurite(t, asUsual, "SOLOIST_ADMIN_TOKEN="+adminToken)
	b := newTab(t)
	b.do(chromedp.Navigate(urls["a"] + "jobs/night"))
	b.await("the job", has("#job-facts", "at 02:30 every day"))
	if !eval[bool](b, `[...document.querySelectorAll('#actions button')].every(b => b.disabled) && !!document.querySelector('#actions button')`) {
		t.Error("want buttons that do nothing without the admin token")
	}
	b.await("how to get them", has("#how", "sign in with the value of SOLOIST_ADMIN_TOKEN"))
	for _, key := range []string{"pause", "resume", "run", "cancel", "step-down", "unlock"} {
		if code := b.send("/api/v1/jobs/night/"+key, "{}"); code != 401 {
			t.Errorf("%s without a token: got %d, want 401", key, code)
		}
	}
	b.do(chromedp.Click("#enter"))
	b.await("the form", `document.activeElement.id === 'token'`)
	b.do(chromedp.KeyEvent("not the admin token" + kb.Tab + "Eve" + kb.Enter))
	b.await("the refusal", has("#signin-error", "neither the read token nor the admin token"))
	b.do(chromedp.Focus("#token"), chromedp.SetValue("#token", adminToken), chromedp.SetValue("#who", "Ada"), chromedp.KeyEvent(kb.Enter))
	b.order("run", "by hand")
	b.await("the run", has("#job-state", "running"))
	b.order("cancel", "enough")
	b.await("its end", has("#history", "cancelled"))
	b.wantAccessible("after a cancellation")

	b.do(chromedp.Navigate(urls["b"] + "jobs/pulse")) // another replica knows the session, too
	b.order("pause", "no more "+markup)
	b.await("the pause", has("#job-state", "paused by Ada: no more "+markup)+" && "+has("#cause", "Paused by Ada"))
	const next = `Date.parse(document.querySelector('#ticks time').dateTime)`
	from := eval[int64](b, next) + pauseTime.Milliseconds()
	b.await("ticks of the pause", fmt.Sprintf("%s > %d", next, from))
	b.order("resume", "go on")
	b.await("the end of the pause", "!"+has("#job-state", "paused by"))
	b.await("a run", has("#job-state", "running"))
	b.await("the skipped ticks", has("#history", "skipped"))
	for _, e := range f.Events() {
		if e.What == "start" && e.Job == "pulse" && e.Tick.UnixMilli() == from {
			t.Errorf("replica %s ran the tick %s of the pause", e.Replica, e.Tick)
		}
	}
	b.wantNothingWrong("401")
}

// pauseTime is two ticks of pulse: no replica starts a run so long after a pause.
const pauseTime = 8 * time.Second

// send sends a request as a script of the page would, and returns the code of the answer.
func (b *tab) send(path, body string) (code int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`fetch(%q, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: %q}).then(r => r.status)`, path, body), &code, awaitPromise))
	return code
}
