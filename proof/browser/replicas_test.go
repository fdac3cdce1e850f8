package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The page shows the replicas, and that one of them has other settings or has stopped. The
// name of a replica is text.
func TestPageShowsReplicas(t *testing.T) {
	f := newFleet(t)
	b := newTab(t)
	url := f.start("a")
	if err := f.Start("b", "CONTAINER_APP_REPLICA_NAME="+markup, "SOLOIST_JOB_NIGHT_PAUSED=true"); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(url))
	b.await("this replica", has("#replicas", "a (this page)")+` && !document.querySelector('#fleet').hidden`)
	b.await("the other one", `[...document.querySelectorAll('#replicas tbody tr')].some(r => r.innerText.includes('<script>') && r.innerText.includes('up'))`)
	b.await("the difference", has(row("night"), "paused by settings: "))
	b.eachLook("replicas", b.wantAccessible)
	if n := eval[int](b, `document.querySelectorAll('main img, main script').length`); n != 0 {
		t.Errorf("%d elements were made from the name of a replica", n)
	}
	b.do(chromedp.Click(row("night") + " a"))
	b.await("the job's page", has("#job", "paused by settings: ")+` && document.querySelector('#fleet').hidden`) // they are on the list
	if err := f.Replica("b").Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	b.await("its end", `[...document.querySelectorAll('#replicas tbody tr')].some(r => r.innerText.includes('<script>') && r.innerText.includes('left'))`)
	b.await("no difference", "!"+has("#job", "paused by settings: "))
	b.before(`const parse = JSON.parse; JSON.parse = (text) => { // an hour later
		const d = parse(text);
		for (const r of d?.app?.replicas ?? []) if (r.state === 'left') r.seen = '2026-01-01T00:00:00Z';
		return d;
	}`)
	b.do(chromedp.Navigate(url))
	b.await("those that have left long ago, folded", has("#gone", "1 replica that left more than an hour ago")+` && document.querySelectorAll('#replicas tbody tr').length === 1 && !document.querySelector('#gone').open`)
	b.do(chromedp.Evaluate(`document.querySelector("#gone summary").click()`, nil))
	b.await("its name", has("#gone", "<script>"))
	b.wantNothingWrong()
}
