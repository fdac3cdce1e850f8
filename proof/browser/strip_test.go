package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// seed writes a log of n outcomes of a job, the last of them a while ago. Each is made by its number, from its tick.
func seed(t *testing.T, dir, entry string, n int, every time.Duration, outcome func(i int, o *event.Outcome)) {
	t.Helper()
	var lines bytes.Buffer
	last := time.Now().UTC().Truncate(every)
	for i := range n {
		at := last.Add(-time.Duration(n-i) * every)
		o := event.Outcome{Tick: at, Status: event.Succeeded, Attempt: 1, Token: at.UnixMicro(), Replica: "shop-1", Start: at,
			End: at.Add(300 * time.Millisecond)}
		outcome(i, &o)
		if err := json.NewEncoder(&lines).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&local.Dir{Path: dir}).Append(t.Context(), store.LogName(entry, "000001"), 0, lines.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// notRun makes an outcome that of a tick which no replica has run.
func notRun(o *event.Outcome, status event.Status, reason string) {
	*o = event.Outcome{Tick: o.Tick, Status: status, Reason: reason}
}

// seeded is the settings of the show, with the past of some of its jobs.
func seeded(t *testing.T) (env []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "shop-") // which the page shows
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	by := func(i, n int) string { return fmt.Sprintf("shop-%d", 1+i/n%3) }
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	seed(t, dir, "shop/nightly-report", 58, 24*time.Hour, func(i int, o *event.Outcome) {
		o.Tick = time.Date(o.Tick.Year(), o.Tick.Month(), o.Tick.Day(), 2, 30, 0, 0, berlin).UTC() // as its schedule has it
		switch o.Replica = by(i, 7); {
		case i == 31, i == 32:
			notRun(o, event.Missed, "no replica was up")
		case i == 46:
			o.Status, o.Reason = event.Abandoned, "lease expired"
		}
	})
	seed(t, dir, "shop/catalogue-import", 60, 24*time.Hour, func(i int, o *event.Outcome) {
		switch o.Replica = by(i, 11); {
		case i%17 == 9:
			o.Status, o.Reason = event.Stalled, "no heartbeat for 1m0s"
		case i == 50, i == 51, i == 52:
			notRun(o, event.Skipped, "paused")
		}
	})
	seed(t, dir, "shop/invoices", 50, 3*time.Second, func(i int, o *event.Outcome) {
		if o.Replica = by(i, 19); i == 22 {
			o.Status, o.Reason = event.Cancelled, "cancelled by Ada"
		}
	})
	seed(t, dir, "shop/exchange-rates", 52, 5*time.Second, func(i int, o *event.Outcome) { o.Replica = by(i, 15) })
	seed(t, dir, "shop/thumbnails", 45, 2*time.Second, func(i int, o *event.Outcome) { o.Replica = by(i, 23) })
	return []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_APP=shop", "SOLOIST_HISTORY=2160h"}
}

// cell is an expression for the cells of a lane, as what they say.
func cells(job string) string {
	return `[...(` + lane(job) + `?.querySelectorAll('.cell:not(.cell-n)') ?? [])].map(c => c.getAttribute('aria-label'))`
}

// lane is an expression for the lane of a job.
func lane(job string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.lane')].find(r => r.querySelector('a').innerText === %q)`, job)
}

// A replica that is killed is a lane whose line changes, without a hole. The picture of the README is taken of that.
func TestStripShowsKill(t *testing.T) {
	t.Parallel()
	f := fleetWith(t, asShow, append(seeded(t), "SOLOIST_LEASE=2s"))
	begun := time.Now()
	url := f.start("shop-1")
	other := f.start("shop-2")
	f.start("shop-3")
	b := newTab(t)
	b.looks(1280, 1080, "light")
	b.do(chromedp.Navigate(url))
	b.await("the strip", `document.querySelectorAll('.lane').length >= 7 && `+has("#strip-facts", "7 jobs"))
	live := func(part string) string { // the ticks of this fleet: those before are made up
		return fmt.Sprintf("%s.filter(c => c.slice(0, 20) > %q && %s)", cells("thumbnails"), stamp(begun), part)
	}
	b.await("some ticks", live("c.includes('succeeded')")+".length >= 6")
	last := eval[string](b, live("c.includes('succeeded')")+`.at(-1)`)
	killed := last[strings.LastIndex(last, " ")+1:] // it may run all of them
	if killed == "shop-1" {
		b.do(chromedp.Navigate(other))
		b.await("the page of another replica", has("#facts", "replica shop-2"))
	}
	f.Replica(killed).Kill()
	b.await("ticks after the kill", live(fmt.Sprintf("c.slice(0, 20) > %q && c.includes('succeeded')", last[:20]))+".length >= 6")
	after := eval[[]string](b, live(fmt.Sprintf("c.slice(0, 20) >= %q", last[:20])))
	t.Logf("%s was killed: %q", killed, after)
	if strings.Contains(strings.Join(after, "\n"), "missed") || strings.HasSuffix(after[len(after)-1], killed) {
		t.Errorf("after the kill of %s: got %q, want no hole, and another replica", killed, after)
	}
	if lines := eval[int](b, lane("thumbnails")+`.querySelectorAll('.by').length`); lines < 3 {
		t.Errorf("%d replicas in turn, want another one after the kill", lines)
	}
	b.await("the lanes of all", has("#strip-twice", "ran twice 0")+` && document.querySelectorAll('.lane').length === 7`)
	b.eachLook("strip", func(name string) {
		b.wantAccessible(name)
		b.wantContrast(name)
		if name == "strip-phone-light" {
			b.await("few cells on a phone", cells("invoices")+`.length === 20`)
		}
		if name == "strip-desktop-light" && *images != "" {
			b.readme("#strip", "page-strip.png")
		}
	})
	b.wantNothingWrong()
}

// view keeps a picture of the window. A picture of the whole page would move what the pointer is on.
func (b *tab) view(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// readme takes a picture of an element for the README.
func (b *tab) readme(selector, name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.Screenshot(selector, &png, chromedp.ByQuery))
	if len(png) > mostImage {
		b.t.Errorf("%s has %d bytes, want %d at most", name, len(png), mostImage)
	}
	if err := os.WriteFile(filepath.Join(*images, name), png, 0o644); err != nil {
		b.t.Error(err)
	}
}

// wantContrast wants that the marks of the legend, which are all there are, can be told from the page behind them: 3 to 1, as
// WCAG 2.2 has it for graphics.
func (b *tab) wantContrast(name string) {
	b.t.Helper()
	faint := eval[[]string](b, `(() => {
		const light = (text) => {
			const parts = text.match(/[\d.]+/g).map((v) => v / 255);
			const [r, g, b] = parts.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
			return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
		};
		const back = light(getComputedStyle(document.body).backgroundColor);
		return [...document.querySelectorAll('#strip-legend svg > *')].map((e) => {
			const s = getComputedStyle(e), of = light(s.fill === 'none' || e.tagName === 'line' ? s.stroke : s.fill);
			return [e.getAttribute('class'), Math.max(of, back) / Math.min(of, back)];
		}).filter(([, ratio]) => ratio < 3).map(([what, ratio]) => what + ' ' + ratio.toFixed(2));
	})()`)
	if len(faint) > 0 {
		b.t.Errorf("%s: too faint: %q", name, faint)
	}
}

// A hole is reached by the keyboard, and says why; so it does under the pointer. Focus stays while news come.
func TestStripByKeyboard(t *testing.T) {
	t.Parallel()
	f := fleetWith(t, asShow, seeded(t))
	b := newTab(t)
	b.looks(1280, 1080, "light")
	b.do(chromedp.Navigate(f.start("shop-1")))
	b.await("the past", cells("nightly-report")+`.filter(c => c.includes('missed')).length === 2`)
	if stops := eval[int](b, `document.querySelectorAll('#lanes [tabindex="0"]').length`); stops != 1 {
		t.Errorf("the strip is %d stops of the tab key, want one", stops)
	}
	const at = `(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText)`
	b.do(chromedp.Focus(`#lanes [tabindex="0"]`), chromedp.KeyEvent(kb.End))
	for range 10 {
		if eval[string](b, `document.activeElement.closest('.lane').querySelector('a').innerText`) == "nightly-report" {
			break
		}
		b.do(chromedp.KeyEvent(kb.ArrowDown))
	}
	for range 60 {
		if eval[bool](b, at+`.includes('missed')`) {
			break
		}
		b.do(chromedp.KeyEvent(kb.ArrowLeft))
	}
	const why = "missed: no replica was up"
	b.await("why, in a sentence", has("#strip-tip", why+"; no replica ran it")+` && document.querySelector('#say').innerText !== ''`)
	b.await("the reason in the label", at+fmt.Sprintf(`.includes(%q) && !document.querySelector('#strip-tip').hidden`, why))
	b.view("strip-hole")
	is := eval[string](b, at)
	newest := eval[string](b, cells("thumbnails")+`.at(-1)`)
	b.await("news", fmt.Sprintf(`%s.at(-1) !== %q`, cells("thumbnails"), newest))
	if got := eval[string](b, at); got != is {
		t.Errorf("after news the focus is on %q, want %q", got, is)
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await("no more of it", `document.querySelector('#strip-tip').hidden`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the job's page", `location.pathname === '/jobs/nightly-report' && document.activeElement.id === 'job-title'`)
	b.do(chromedp.NavigateBack())
	b.await("the list", `!document.querySelector('#list').hidden`)

	proctest.Poll(t, "the reason under the pointer", time.Minute, func() bool { // the page may move while the pointer does
		const inside = `(({ left, top }) => [left + 5, top + 5])(%s.querySelector('.cell-m').getBoundingClientRect())`
		at := eval[[]float64](b, fmt.Sprintf(inside, lane("nightly-report")))
		b.do(chromedp.MouseEvent(input.MouseMoved, at[0], at[1]))
		return eval[bool](b, `!document.querySelector('#strip-tip').hidden && `+has("#strip-tip", why))
	})
	b.do(chromedp.Click("#strip-day", chromedp.ByQuery))
	b.await("a day", `document.querySelectorAll('#strip-scale text').length === 5`)
	b.await("cells of several ticks", cells("thumbnails")+`.some(c => / ticks up to /.test(c))`)
	b.wantAccessible("a day")
	b.view("strip-day")
	b.do(chromedp.Click("#strip summary", chromedp.ByQuery))
	b.await("a closed strip", `!document.querySelector('#strip').open && localStorage.getItem('soloist-strip') === 'closed'`)
	b.do(chromedp.Reload())
	b.await("a strip that is closed still", has(row("thumbnails"), "every 2 seconds")+` && !document.querySelector('#strip').open`)
	b.mu.Lock()
	asked := len(b.requests)
	b.mu.Unlock()
	newest = eval[string](b, text(row("thumbnails")))
	b.await("news of the list", fmt.Sprintf(`%s !== %q`, text(row("thumbnails")), newest))
	b.mu.Lock()
	for _, request := range b.requests[asked:] {
		if strings.Contains(request, "/strip") {
			t.Error("a strip that is closed is asked for")
		}
	}
	b.mu.Unlock()
	b.wantNothingWrong()
}

// Hundreds of lanes scroll: only those in sight are drawn. It tells how soon the page is there and how it scrolls, and judges no
// time.
func TestStripOfManyLanes(t *testing.T) {
	dir := t.TempDir()
	for i := range 500 {
		seed(t, dir, fmt.Sprintf("demo/job-%03d", i), 60, time.Minute, func(n int, o *event.Outcome) {
			if o.Replica = fmt.Sprintf("pod-%d", 1+(n+i)/7%5); (n+i)%23 == 0 {
				notRun(o, event.Missed, "no replica was up")
			}
		})
	}
	f := fleetWith(t, asMany, []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_HISTORY=2160h"})
	b := newTab(t)
	b.looks(1280, 1080, "light")
	b.before(firstScreen)
	url := f.start("a")
	for range 5 {
		b.do(chromedp.Navigate(url))
		b.await("the first screen", `!!document.querySelector('.lane') && document.querySelectorAll('#rows tr').length === 100`)
		proctest.Pause(b.ctx, time.Second)
		t.Logf("the first screen: %s", eval[string](b, `JSON.stringify(window.firstSeen)`))
	}
	b.await("all lanes", `document.querySelector('#lanes').ariaRowCount === '500' && `+cells("job-000")+`.length === 60`)
	t.Logf("at rest: %s", evalPromise(b, frames(0)))
	before := b.spent()
	t.Logf("while 500 lanes scroll: %s", evalPromise(b, frames(40)))
	for name, seconds := range b.spent() {
		t.Logf("%s: %.1f ms of each frame", name, (seconds-before[name])/300*1000)
	}
	if n := eval[int](b, `document.querySelectorAll('.lane').length`); n < 10 || n > 30 {
		t.Errorf("%d lanes are drawn", n)
	}
	b.await("the last lanes", lane("job-499")+` !== undefined`)
	b.do(chromedp.Focus(`#lanes [tabindex="0"]`), chromedp.KeyEvent(kb.PageUp))
	b.await("the focus further up", `document.activeElement.closest('.lane').querySelector('a').innerText < 'job-495'`)
	b.wantAccessible("500 lanes")
	b.wantNothingWrong()
}

// spent returns what the page has spent on scripts, styles, layout and all tasks, in seconds.
func (b *tab) spent() map[string]float64 {
	b.t.Helper()
	all := map[string]float64{}
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		if err := performance.Enable().Do(ctx); err != nil {
			return err
		}
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if slices.Contains([]string{"ScriptDuration", "RecalcStyleDuration", "LayoutDuration", "TaskDuration"}, m.Name) {
				all[m.Name] = m.Value
			}
		}
		return err
	}))
	return all
}

// evalPromise returns what the promise of an expression comes to.
func evalPromise(b *tab, expression string) (value string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &value, awaitPromise))
	return value
}

// firstScreen notes after how many milliseconds the list and the strip are there, and for how long tasks of more than 50 ms kept
// the page busy.
const firstScreen = `
	window.firstSeen = {};
	const look = () => {
		for (const [name, selector] of [['list', '#rows tr'], ['strip', '.lane']]) {
			if (!firstSeen[name] && document.querySelector(selector)) firstSeen[name] = Math.round(performance.now());
		}
		requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
	new PerformanceObserver((list) => {
		for (const task of list.getEntries()) firstSeen.busy = (firstSeen.busy || 0) + task.duration;
	}).observe({ type: 'longtask', buffered: true });`

// frames goes through all lanes, a bit in each of 300 frames, and tells how long these took. By 0 it rests: a busy machine has
// fewer frames for any page.
func frames(by int) string {
	return fmt.Sprintf(`new Promise((done) => {
	const box = document.querySelector('#lanes'), took = [];
	let last = performance.now();
	box.scrollTop = 0;
	const frame = (now) => {
		took.push(now - last);
		last = now;
		box.scrollTop += %d;
		if (took.length < 300) { requestAnimationFrame(frame); return; }
		const sum = took.reduce((a, b) => a + b), sorted = took.sort((a, b) => a - b);
		done((1000 * took.length / sum).toFixed(1) + ' frames a second; half of them take ' + sorted[took.length >> 1].toFixed(1) +
			' ms at most, 99 of 100 ' + sorted[Math.floor(took.length * 0.99)].toFixed(1) + ' ms');
	};
	requestAnimationFrame(frame);
})`, by)
}
