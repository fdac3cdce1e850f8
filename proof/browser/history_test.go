package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// past writes a log of so many outcomes of a job, one a minute until an hour ago. Each tenth
// has succeeded.
func past(t *testing.T, dir, job string, n int) {
	t.Helper()
	backend := &local.Dir{Path: dir}
	var lines bytes.Buffer
	begin := time.Now().UTC().Truncate(time.Minute).Add(-time.Hour - time.Duration(n)*time.Minute)
	for i := range n {
		at := begin.Add(time.Duration(i) * time.Minute)
		o := event.Outcome{Tick: at, Status: event.Failed, Reason: "no paper", Attempt: 1, Token: int64(1000 + i), Replica: "old", Start: at, End: at.Add(3 * time.Second)}
		if i%10 == 0 {
			o.Status, o.Reason = event.Succeeded, ""
		}
		if err := json.NewEncoder(&lines).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := backend.Append(t.Context(), store.LogName("demo/"+job, "000001"), 0, lines.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// chosen chooses a value of a list, as a reader does.
func (b *tab) chosen(id, value string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`document.getElementById(%q).value = %q; document.getElementById(%[1]q).dispatchEvent(new Event('change', { bubbles: true }))`, id, value), nil))
}

// The page of a job reaches back as far as its log does: by pages, by time and by outcome, and
// with what may be lost. The durations are those of the page.
func TestPageShowsHistoryOfLog(t *testing.T) {
	dir := t.TempDir()
	past(t, dir, "broken", 250)
	f := fleetWith(t, asUsual, []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_HISTORY=2160h"})
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a") + "jobs/broken"))
	b.await("a page of the log", has("#past-count", "1 to 100 of 2")+` && document.querySelectorAll('#history tbody tr').length >= 100`)
	b.await("the gap", has("#history", "Outcomes before this may be lost."))
	b.await("the durations", has("#plot", "runs: shortest"))
	if n := eval[int](b, `document.querySelectorAll('#plot rect').length`); n < 80 {
		t.Errorf("the plot has %d runs", n)
	}
	b.do(chromedp.Click("#older"))
	b.await("the next page", has("#past-count", "101 to 200 of 2")+` && document.querySelectorAll('#history tbody tr').length === 100`)
	b.chosen("outcome", "succeeded")
	b.await("one outcome alone", has("#past-count", "1 to 25 of 25")+` && [...document.querySelectorAll('#history tbody tr')].every(r => r.innerText.includes('succeeded'))`)
	b.chosen("since", "1h")
	b.await("none in that time", has("#past-count", "none"))
	b.chosen("outcome", "")
	b.await("those of the record", has("#past-count", "1 to ")+"&& "+has("#history", "no paper "+markup)+` && document.querySelector('#past-pager').hidden`)
	count := eval[string](b, `document.querySelector('#past-count').innerText`)
	b.await("what comes later", fmt.Sprintf("!%s", has("#past-count", count)))
	b.wantAccessible("history")
	if n := eval[int](b, `document.querySelectorAll('main img, main script').length`); n != 0 {
		t.Errorf("%d elements were made from text", n)
	}
	b.wantNothingWrong()
}

// All that is known of a failure is shown where a reader asks for it, as text.
func TestPageShowsDetail(t *testing.T) {
	f := fleetWith(t, asUsual, []string{"SOLOIST_STORAGE=dir:" + t.TempDir()})
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a") + "jobs/broken"))
	b.await("a failure", `document.querySelectorAll('#history tbody details').length >= 1`)
	b.await("what is known of it", fmt.Sprintf(`[...document.querySelectorAll('#history details')].some(d => {
		if (!d.open) d.querySelector('summary').click();
		const text = d.querySelector('pre').innerText;
		return text.includes('failed after') && text.includes(%q);
	})`, "no paper "+markup))
	if n := eval[int](b, `document.querySelectorAll('main img, main script').length`); n != 0 {
		t.Errorf("%d elements were made from text", n)
	}
	b.wantNothingWrong()
}

// After an answer that failed the page shows no outcome that was not asked for, and asks again.
func TestPageAsksHistoryAgain(t *testing.T) {
	dir := t.TempDir()
	past(t, dir, "night", 30)
	f := fleetWith(t, asUsual, []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_HISTORY=2160h"})
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a") + "jobs/night"))
	b.await("the log", has("#past-count", "1 to 30 of 30"))
	b.do(chromedp.Evaluate(`const ask = window.fetch; window.fetch = async (...request) => window.down ? new Response('Bad Gateway', { status: 502 }) : ask(...request); window.down = true`, nil))
	b.chosen("outcome", "succeeded")
	b.await("that it failed", has("#past-note", "The history cannot be shown")+` && document.querySelectorAll('#history tbody tr').length === 0`)
	b.do(chromedp.Evaluate(`window.down = false`, nil))
	b.await("those that were asked for", has("#past-count", "1 to 3 of 3")+"&& !"+has("#past-note", "cannot be shown"))
	b.wantNothingWrong()
}

// A row of a tick that did not run says why once it is opened.
func TestPageSaysWhy(t *testing.T) {
	dir := t.TempDir()
	tick := time.Now().UTC().Truncate(time.Minute).Add(-time.Hour)
	line := fmt.Sprintf(`{"tick":%q,"status":"missed","reason":"a newer one was due"}`+"\n", tick.Format(time.RFC3339))
	if err := (&local.Dir{Path: dir}).Append(t.Context(), store.LogName("demo/night", "000001"), 0, []byte(line)); err != nil {
		t.Fatal(err)
	}
	f := fleetWith(t, asUsual, []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_HISTORY=2160h"})
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a") + "jobs/night"))
	b.await("the row", has("#history", "a newer one was due"))
	b.do(chromedp.Click("#history summary"))
	b.await("why", has("#history", "no replica ran it before a newer tick was due"))
	b.wantAccessible("why")
	b.wantNothingWrong()
}

// Without a log the page has the outcomes of the record, and says so.
func TestPageShowsHistoryOfRecord(t *testing.T) {
	f := fleetWith(t, asUsual, []string{"SOLOIST_STORAGE=dir:" + t.TempDir(), "SOLOIST_HISTORY=0"})
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a") + "jobs/broken"))
	b.await("the outcomes", has("#history", "no paper")+" && "+has("#past-note", "SOLOIST_HISTORY")+` && document.querySelector('#past').hidden`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) != 2 {
		t.Errorf("got the requests %q, want the page and one stream", b.requests)
	}
}
