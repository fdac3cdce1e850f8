package browser

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The first screen of a program with 500 jobs: from the click until its rows are there. The time is printed, and not judged.
func TestFirstScreenOfManyJobs(t *testing.T) {
	f := fleetWith(t, asMany, []string{"SOLOIST_STORAGE=dir:" + t.TempDir()})
	url := f.start("a")
	b := newTab(t)
	b.before(`new MutationObserver(() => { if (!window.ready && document.querySelectorAll('#rows tr').length === 100) window.ready = performance.now(); }).observe(document, { childList: true, subtree: true })`)
	b.do(chromedp.Navigate(url))
	b.await("records", `document.querySelectorAll('#rows tr').length === 100 && ![...document.querySelectorAll('#rows .state')].some((e) => e.innerText.includes('no record'))`)
	var all []float64
	for range 15 {
		b.do(chromedp.Navigate(url))
		b.await("the rows", `window.ready > 0`)
		all = append(all, eval[float64](b, "window.ready"))
	}
	slices.Sort(all)
	t.Logf("100 of 500 rows after %s (median), %s at best", time.Duration(all[len(all)/2]*1e6).Round(100*time.Microsecond), time.Duration(all[0]*1e6).Round(100*time.Microsecond))
	b.wantNothingWrong()
}
