package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// row is the selector of a job's row.
func row(job string) string { return fmt.Sprintf(`tr[data-key="%s"]`, job) }

// has is an expression: an element has this text.
func has(selector, part string) string { return text(selector) + fmt.Sprintf(".includes(%q)", part) }

// Texts of jobs are shown as they are, and trouble is red in row, title and the job's page.
func TestPageShowsTroubleAndText(t *testing.T) {
	f := newFleet(t)
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a")))
	b.await("the note", has(row("pulse"), markup))
	b.await("trouble", has(row("broken"), "failing ×")+` && document.title.startsWith('(1 in trouble) demo')`)
	red := eval[string](b, `getComputedStyle(document.querySelector('`+row("broken")+` .state')).color`)
	if idle := eval[string](b, `getComputedStyle(document.querySelector('`+row("night")+` .state')).color`); red == idle {
		t.Errorf("the state is %s in both rows", red)
	}
	b.do(chromedp.Click(row("broken") + " a"))
	b.await("the job's page", has("#history", "no paper "+markup)+` && location.pathname === '/jobs/broken' && document.title.startsWith('(failing ×')`)
	b.await("focus on the title", `document.activeElement.id === 'job-title'`)
	b.await("its ticks", `document.querySelectorAll('#ticks li').length === 10`)
	if n := eval[int](b, `document.querySelectorAll('main img, main script').length`); n != 0 || strings.Contains(eval[string](b, "document.title"), "owned") {
		t.Errorf("%d elements were made from text", n)
	}
	b.do(chromedp.Reload())
	b.await("the job's page by its address", has("#history", "no paper"))
	b.do(chromedp.NavigateBack())
	b.await("the list again", has(row("broken"), "failing"))
	b.wantNothingWrong()
}

// The list filters and sorts by keyboard alone, and focus stays where it is while news come.
func TestPageByKeyboard(t *testing.T) {
	f := newFleet(t)
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a")))
	b.await("the list", has(row("pulse"), "every 4 seconds"))
	b.do(chromedp.Focus("#q"), chromedp.KeyEvent("pul"))
	b.await("the filtered list", `document.querySelectorAll('#rows tr').length === 1 && `+has("#count", "1 of 5 jobs"))
	f.told("start")
	b.await("a run", has(row("pulse"), "running"))
	if id := eval[string](b, "document.activeElement.id"); id != "q" {
		t.Errorf("the focus is on %q", id)
	}
	b.do(chromedp.KeyEvent(kb.Backspace+kb.Backspace+kb.Backspace), chromedp.Focus(`[data-sort="state"]`), chromedp.KeyEvent(kb.Enter))
	b.await("the order", `document.querySelector('#rows tr').dataset.key === 'broken' && document.querySelector('th[aria-sort]').innerText.startsWith('State')`)
	b.do(chromedp.Focus(row("pulse") + " a"))
	f.told("start")
	f.told("end")
	if key := eval[string](b, "document.activeElement.closest('tr')?.dataset.key ?? ''"); key != "pulse" {
		t.Errorf("the focus is on the row %q", key)
	}
	b.wantNothingWrong()
}

// Who has no token sees nothing but the form; who signs in sees the page until they sign out.
func TestPageSignIn(t *testing.T) {
	f := newFleet(t, "SOLOIST_READ_TOKEN="+readToken, "SOLOIST_ADMIN_TOKEN="+adminToken)
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a")))
	b.await("the form", `!document.querySelector('#signin').hidden && document.activeElement.id === 'token'`)
	if page := eval[string](b, "document.documentElement.innerText"); strings.Contains(page, "pulse") || strings.Contains(page, "demo") {
		t.Errorf("without a token the page says %s", page)
	}
	b.do(chromedp.KeyEvent("wrong" + kb.Enter))
	b.await("the refusal", has("#signin-error", "neither the read token nor the admin token"))
	b.do(chromedp.KeyEvent(readToken + kb.Enter))
	b.await("the list", has(row("pulse"), "every 4 seconds"))
	b.do(chromedp.Reload())
	b.await("the list after a reload", has(row("pulse"), "every 4 seconds"))
	if cookie := eval[string](b, "document.cookie"); cookie != "" {
		t.Errorf("a script reads the cookie %q", cookie)
	}
	b.do(chromedp.Click("#leave"))
	b.await("the form again", `document.querySelector("#signin")?.hidden === false`)
	b.wantNothingWrong("401")
}

// A page that gets no stream asks now and then. An answer that comes after the click on the
// sign-in leaves the form where it is.
func TestPageKeepsSignInForm(t *testing.T) {
	f := newFleet(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	b := newTab(t)
	b.before(`window.EventSource = undefined;
		const ask = window.fetch;
		window.fetch = async (...request) => {
			const answer = await ask(...request), text = await answer.text();
			if (window.late) await new Promise((come) => { window.come = come; });
			return { ok: answer.ok, status: answer.status, text: async () => text };
		};`)
	b.do(chromedp.Navigate(f.start("a")))
	b.await("the list", has(row("pulse"), "every 4 seconds"))
	b.do(chromedp.Evaluate(`window.late = true`, nil))
	b.await("an answer that is late", `!!window.come`)
	b.do(chromedp.Click("#enter"))
	b.await("the form", `document.activeElement.id === 'token'`)
	b.do(chromedp.Evaluate(`window.late = false; window.come()`, nil))
	if !eval[bool](b, `!document.querySelector('#signin').hidden && document.activeElement.id === 'token'`) {
		t.Fatal("the late answer has taken the form away")
	}
	b.do(chromedp.Click("#signin-cancel"))
	b.await("the list again", `!document.querySelector('#list').hidden`)
	b.wantNothingWrong()
}

// The end of a pause is a span, a date, or a time with its zone, wherever the browser is. A
// time without a zone is refused: all others on the page are in UTC.
func TestPageTakesUntil(t *testing.T) {
	f := newFleet(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	url := f.start("a")
	b := newTab(t)
	b.do(emulation.SetTimezoneOverride("Europe/Berlin"), chromedp.Navigate(url))
	b.signIn("Ada")
	b.do(chromedp.Navigate(url + "jobs/night"))
	b.await("the question", `document.querySelector('#ask').open || !!document.querySelector('#actions [data-key="pause"]')?.click()`)
	b.do(chromedp.Evaluate(`window.fetch = async (_, request) => {
		window.sent = JSON.parse(request.body).until;
		return new Response('{"error": "not now"}', { status: 409 });
	}`, nil))
	until := func(text string) string {
		return eval[string](b, fmt.Sprintf(`(() => {
			window.sent = '';
			document.querySelector('#ask-fields [name="until"]').value = %q;
			document.querySelector('#ask-form').requestSubmit();
			return window.sent;
		})()`, text))
	}
	for text, want := range map[string]string{
		"2036-12-24T08:00Z": "2036-12-24T08:00:00.000Z", "2036-12-24 08:00:30Z": "2036-12-24T08:00:30.000Z", "2036-12-24": "2036-12-24T00:00:00.000Z",
		"2036-12-24T08:00:00+01:00": "2036-12-24T07:00:00.000Z", "2036-02-29T08:00Z": "2036-02-29T08:00:00.000Z",
		"2036-12-24T08:00": "", "2036-12-24 08:00": "", "2036": "", "5": "", "24 Dec 2036": "", "2036-02-30": "", "2036-13-01": "", "2036-12-24T25:00Z": "",
		"2h3": "", "h": "", "-2h": "", "999999999999d": "",
	} {
		if got := until(text); got != want {
			t.Errorf("until %q: got %q, want %q", text, got, want)
		} else if refused := eval[bool](b, has("#ask-error", "Until is "+text+": want a span")); refused != (want == "") {
			t.Errorf("until %q: got %q, and refused: %t", text, got, refused)
		}
	}
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "1.5 h": 90 * time.Minute, "3d": 72 * time.Hour} {
		at, err := time.Parse(time.RFC3339, until(text))
		if off := time.Until(at) - want; err != nil || off.Abs() > time.Minute {
			t.Errorf("until %q: got %s, %v, want %s from now", text, at, err, want)
		}
	}
	b.wantNothingWrong()
}

// No rule of axe is broken: in no part of the page, width or colours.
func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	url := f.start("a")
	b := newTab(t)
	for _, part := range []struct{ name, path, ready string }{
		{"list", "", has(row("broken"), "failing ×2")},
		{"job", "jobs/broken", has("#history", "no paper")},
		{"signin", "", `document.querySelector('#enter').click() ?? !document.querySelector('#signin').hidden`},
		{"ask", "jobs/broken", `document.querySelector('#ask').open || !!document.querySelector('#actions [data-key="pause"]')?.click()`},
	} {
		if part.name == "ask" {
			b.signIn("Ada")
		}
		b.do(chromedp.Navigate(url + part.path))
		b.await("the page", `!document.querySelector('#list').hidden || !document.querySelector('#job').hidden`)
		b.await(part.name, part.ready)
		b.eachLook(part.name, b.wantAccessible)
	}
}
