package browser

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/soloist-go/soloist/internal/proctest"
)

// mostTaps is how many taps lead from the first screen to a cause, and how many from there to its mend.
const mostTaps = 2

// A finger counts the taps of an operator.
type finger struct {
	*tab
	taps int
}

// tap taps what it can see: an element that is not covered, large enough for a finger. The page may be scrolled for it.
func (f *finger) tap(what, selector string) {
	f.t.Helper()
	f.await(what, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e || e.disabled) return false;
		e.scrollIntoView({ block: 'nearest' });
		const r = e.getBoundingClientRect(), top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		return r.height >= 20 && !!top && (e.contains(top) || top.contains(e)) && (e.click(), true);
	})()`, selector))
	f.taps++
}

// within wants at most so many taps since the last call.
func (f *finger) within(name string) {
	f.t.Helper()
	if f.taps > mostTaps {
		f.t.Errorf("%s takes %d taps, want %d at most", name, f.taps, mostTaps)
	}
	f.taps = 0
}

// inSight is an expression: the text is on the first screen, without a scroll.
func inSight(selector, part string) string {
	return fmt.Sprintf(`(() => { const e = document.querySelector(%q); return !!e && e.innerText.includes(%q) && e.getBoundingClientRect().top < innerHeight - 60; })()`, selector, part)
}

// A situation is what an operator finds, where its cause is said, and what they do about it.
type situation struct {
	name  string
	rowOf string   // the job on the first screen
	path  []string // what they tap after its row
	where string
	cause []string
	mend  string // the button; empty: the other replica does it
}

var situations = []situation{
	{"fails", "bills", nil, "#cause", []string{"the printer of the second floor has no paper", "Failing since", "Last success", "Failures", "up to 2 for each tick", "Replicas"}, "run"},
	{"fails-whole", "bills", []string{"#cause a"}, "#attempts", []string{"failed", "the printer of the second floor has no paper", "Attempt", "Replica", "Fencing token"}, ""},
	{"hangs", "deaf", nil, "#cause", []string{"The run goes on after its time-out", "over its time-out by"}, "unlock"},
	{"late", "slow", nil, "#cause", []string{"Late since", "without a success in time"}, "cancel"},
	{"paused", "rested", nil, "#cause", []string{"Paused by Ada", "the paint is wet", "Skipped"}, "resume"},
	{"dead", "carry", []string{`#answers a[href*="/runs/carry@"]`}, "#attempts", []string{"abandoned", "its runner died"}, ""},
	{"shard", "split", []string{"#cells .cell-bad"}, "#cause", []string{"this part is bad"}, "run"},
}

// From the first screen an operator comes to the cause of each kind of trouble by two taps at most, and by two more to what
// they can do about it, with a thumb and with a mouse, by day and by night.
func TestOperatorFindsCauseAndMend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := fleetWith(t, asPlay, []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_ADMIN_TOKEN=" + adminToken, "SOLOIST_LEASE=3s"})
	urls := map[string]string{"a": f.start("a"), "b": f.start("b"), "c": f.start("c")}
	b := newTab(t)
	b.do(chromedp.Navigate(urls["a"]))
	b.await("the list", has(row("bills"), "failing"))
	b.signIn("Ada")
	b.change("carry", "run", `{"reason": "they move"}`)
	b.change("rested", "pause", `{"reason": "the paint is wet"}`)
	b.do(chromedp.Navigate(urls["a"] + "jobs/carry"))
	b.await("the answer to the order", has("#answers", "Run ordered by Ada")+" && "+has("#answers", "running on ")+` && !!document.querySelector('#answers a[href*="/runs/carry@"]')`)
	dies := eval[string](b, `document.querySelector('#answers').innerText.match(/running on (\w)/)[1]`)
	f.Replica(dies).Kill()
	url := urls[map[string]string{"a": "b", "b": "a", "c": "a"}[dies]]
	b.do(chromedp.Navigate(url + "jobs/carry"))
	b.signIn("Ada")
	b.do(chromedp.Reload())
	b.await("what has become of it", has("#answers", "Run ordered by Ada")+" && "+has("#answers", "abandoned"))
	b.change("deaf", "run", `{"reason": "it has to be done"}`)
	b.do(chromedp.Navigate(url))
	b.await("who hangs", has(row("deaf"), "over its time-out"))
	delete(urls, dies)
	delete(urls, eval[string](b, text(row("deaf"))+`.match(/^on (\w)/m)[1]`)) // its process may be ended by the mend
	url = slices.Collect(maps.Values(urls))[0]
	for _, s := range situations {
		b.do(chromedp.Navigate(url))
		b.await(s.name, fmt.Sprintf(`!!document.querySelector(%q) && %s`, rowLink(s.rowOf), ripe[s.name]))
	}
	b.do(chromedp.Navigate(url))
	b.await("trouble first", `!!document.querySelector('#rows tr.trouble:first-child') && `+has(`#looks [data-key="failing"]`, "3"))
	for i, l := range looks {
		b.do(chromedp.Navigate(url))
		b.looks(l.width, l.height, l.scheme)
		b.await("the list", has("#rows", "bills"))
		b.wantAccessible(l.name)
		b.picture("first-" + l.name)
		for _, s := range situations {
			b.play(url, s, l.name, l.width, i == len(looks)-1)
		}
	}
	b.do(chromedp.Navigate(url + "shards/split"))
	b.await("a cell for each shard", `document.querySelectorAll('#cells a').length === 4 && `+has("#shards-facts", "4 shards: "))
	b.eachLook("shards", b.wantAccessible)
	b.wantNothingWrong("ERR_") // of the replica that dies
}

// ripe is when a situation can be seen on the first screen.
var ripe = map[string]string{
	"fails": has(rowLink("bills"), "bills"), "fails-whole": has(row("bills"), "failing"), "hangs": has(row("deaf"), "over its time-out"), "late": has(row("slow"), "late since"),
	"paused": has(row("rested"), "skipped") + "&& !" + has(row("rested"), "no tick skipped"), "dead": has(row("carry"), "carry"), "shard": has(row("split"), "1 failing"),
}

func rowLink(job string) string { return row(job) + " th a" }

// play goes from the first screen to a cause and to its mend, which it makes if it is told to.
func (b *tab) play(url string, s situation, look string, width int64, mends bool) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
	hand := &finger{tab: b}
	hand.tap("the row of "+s.rowOf, rowLink(s.rowOf))
	for _, selector := range s.path {
		hand.tap(s.name+": "+selector, selector)
	}
	for _, part := range s.cause {
		b.await(s.name+": "+part, inSight(s.where, part))
	}
	hand.within("the cause of " + s.name)
	if eval[int64](b, "document.documentElement.scrollWidth") > width {
		b.t.Errorf("%s, %s: the page is wider than the window", s.name, look)
	}
	b.wantAccessible(s.name + " " + look)
	b.picture(s.name + "-" + look)
	if s.mend == "" {
		return
	}
	hand.tap(s.name+": the button", fmt.Sprintf(`#actions [data-key=%q]`, s.mend))
	b.await("what it risks", `document.querySelector('#ask').open && document.querySelector('#ask-risk').innerText.length > 40`)
	if !mends {
		b.do(chromedp.KeyEvent(kb.Escape))
		return
	}
	b.picture(s.name + "-ask-" + look)
	hand.tap(s.name+": the mend", "#ask-yes")
	b.await("the answer", `!document.querySelector('#ask').open`)
	hand.within("the mend of " + s.name)
	if s.mend != "unlock" { // which is no order
		b.await("what becomes of it", inSight("#answers", "ordered by Ada"))
		b.picture(s.name + "-answer-" + look)
	}
}

// A page on a developer's machine makes changes at once by the address that the program prints; without it the buttons are
// there and say how to get them. The token leaves the address bar.
func TestPageOpensWithMadeToken(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	url := f.start("a")
	e, err := f.Have("the address with a token", time.Minute, func(e proctest.Event) bool { return strings.Contains(e.URL, "#token=") })
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	b.do(chromedp.Navigate(url + "jobs/night"))
	b.await("buttons that do nothing", `[...document.querySelectorAll('#actions button')].some(b => b.disabled) && `+has("#how", "open the address that ends in #token="))
	b.do(chromedp.Navigate(e.URL))
	b.await("the session", `!document.querySelector('#leave').hidden && location.hash === ''`)
	b.do(chromedp.Navigate(url + "jobs/night"))
	b.order("pause", "until tomorrow")
	b.await("amber, and no countdown", has("#cause", "Paused by ")+` && !document.querySelector('#ticks time[data-form], #job-facts time[data-form="next"]')`)
	for path, want := range map[string]int{"/api/v1/jobs/night/resume": 200, "/api/v1/session": 401} {
		if code := b.send(path, `{"token": "not the one that was made", "name": ""}`); path == "/api/v1/session" && code != want {
			t.Errorf("%s: got %d, want %d", path, code, want)
		}
	}
	b.wantNothingWrong("40")
}

// A backfill says what it would run before it is ordered, and forgets that when what is asked for changes.
func TestPagePreviewsBackfill(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	url := f.start("a")
	b := newTab(t)
	b.do(chromedp.Navigate(url))
	b.signIn("Ada")
	b.do(chromedp.Navigate(url + "jobs/broken"))
	b.await("outcomes", `document.querySelectorAll('#history tbody tr').length >= 2`)
	b.await("the question", `document.querySelector('#ask').open || !!document.querySelector('#actions [data-key="backfill"]')?.click()`)
	b.do(chromedp.SendKeys(`#ask-fields [name="from"]`, "soon"+kb.Enter))
	b.await("the refusal", has("#ask-error", "From is soon: want a span"))
	b.do(chromedp.Evaluate(`document.querySelector('#ask-fields [name="from"]').value = ''`, nil), chromedp.SendKeys(`#ask-fields [name="from"]`, "1h"))
	b.do(chromedp.Click(`#ask-fields [name="all"]`), chromedp.Click("#ask-yes"))
	b.await("the plan", has("#ask-plan", "It would run ")+" && "+has("#ask-plan", "the first is ")+" && "+has("#ask-yes", "Run "))
	b.eachLook("backfill", b.wantAccessible)
	b.do(chromedp.SendKeys(`#ask-fields [name="reason"]`, "again"))
	b.await("no plan any more", "!"+has("#ask-plan", "It would")+" && "+has("#ask-yes", "Preview"))
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the plan again", has("#ask-plan", "It would run "))
	if orders := eval[string](b, text("#orders")); strings.Contains(orders, "backfill") {
		t.Errorf("the preview has ordered something: %s", orders)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the order", `!document.querySelector('#ask').open && `+has("#answers", "Backfill ordered by Ada"))
	b.wantNothingWrong("400")
}

// The counters filter by keyboard alone, and the rows stay where they are while runs come and go.
func TestPageCountsAndStaysStill(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	b := newTab(t)
	b.looks(390, 844, "light")
	b.do(chromedp.Navigate(f.start("a")))
	b.await("trouble", has(row("broken"), "failing ×2"))
	b.do(chromedp.Evaluate(`window.shift = 0; new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) { window.shift += e.value; window.shifted = (window.shifted ?? '') + e.sources.map((s) => s.node?.nodeName + ' ' + s.node?.className + ' ' + s.node?.textContent + JSON.stringify([s.previousRect, s.currentRect])).join('; ') + '\\n'; } }).observe({ type: 'layout-shift' })`, nil))
	for range 2 {
		f.told("start")
		b.await("a run", has(row("pulse"), "running"))
		f.told("end")
		b.await("its end", "!"+has(row("pulse"), "running"))
	}
	if shift := eval[float64](b, "window.shift"); shift > 0.01 {
		t.Errorf("the page has shifted by %g: %s", shift, eval[string](b, "window.shifted"))
	}
	if height := eval[float64](b, `document.querySelector('`+row("night")+`').offsetHeight`); height > 70 {
		t.Errorf("the row of a job that is well has %g pixels, want two lines", height)
	}
	b.do(chromedp.Focus(`#looks [data-key="paused"]`), chromedp.KeyEvent(kb.Enter))
	b.await("those that are paused", `document.querySelectorAll('#rows tr').length === 1 && `+has(row("rested"), "paused")+` && location.search === '?is=paused'`)
	b.await("focus", `document.activeElement.dataset.key === 'paused' && document.activeElement.getAttribute('aria-pressed') === 'true'`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("all", `document.querySelectorAll('#rows tr').length === 5`)
	b.wantNothingWrong()
}

// The header is green as long as the storage answers, and no longer.
func TestPageHeaderTellsOutage(t *testing.T) {
	t.Parallel()
	storage := proctest.Azurite(t)
	c := newCounter(t, storage.Server)
	f := fleetWith(t, asUsual, append(storage.Env(), c.setting(), "SOLOIST_APP=outage"))
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a")))
	b.await("green", `document.querySelector('#link').className === 'link live' && `+has("#rows", "pulse"))
	c.CloseClientConnections()
	c.Listener.Close()
	b.await("red", `document.querySelector('#link').className === 'link off' && `+has("#link", "storage out of reach"))
	b.eachLook("outage", b.wantAccessible)
	b.wantNothingWrong()
}
