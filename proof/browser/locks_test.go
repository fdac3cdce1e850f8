package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// The page shows locks, and what is done once. Their names and keys are text.
func TestPageShowsLocks(t *testing.T) {
	t.Parallel()
	f := fleetWith(t, asLocks, []string{"SOLOIST_STORAGE=dir:" + t.TempDir()})
	b := newTab(t)
	b.do(chromedp.Navigate(f.start("a")))
	b.await("the lock", has("#locks", "<b>42</b>")+" && "+has("#locks", "1 of 1")+" && "+has("#locks", "a, for"))
	b.await("what is done once", has("#once", "migrate")+" && "+has("#once", "<script>")+" && "+has("#once", "succeeded"))
	b.eachLook("locks", b.wantAccessible)
	if n := eval[int](b, `document.querySelectorAll('main img, main script, main b').length`); n != 0 {
		t.Errorf("%d elements were made from text", n)
	}
	b.do(chromedp.Click(row("leader") + " a"))
	b.await("none on the page of a job", `!document.querySelector('#job').hidden && document.querySelector('#locked').hidden`)
	b.wantNothingWrong()
}
