package browser

import (
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
)

// A moment is what the list showed of a job. Times are as the page writes them.
type moment struct{ State, Replica, Tick string }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// follow has the tab note what the list shows of a job, whenever that changes.
func (b *tab) follow(job string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`(() => {
		window.sights = [];
		let last = '';
		const look = () => {
			const row = document.querySelector(%q);
			if (!row) return;
			const state = row.children[1], says = state.innerText;
			const s = {
				State: state.querySelector('.state').innerText,
				Replica: says.match(/^on ([^,\n]*)/m)?.[1] ?? '',
				Tick: says.match(/tick (\S+ \S+Z)/)?.[1] ?? '',
			};
			const text = JSON.stringify(s);
			if (text !== last) window.sights.push(s);
			last = text;
		};
		look();
		new MutationObserver(look).observe(document.querySelector('main'), {childList: true, subtree: true, characterData: true, attributes: true});
	})()`, row(job)), nil))
}

// sights is what the list has shown of that job since follow.
func (b *tab) sights() []moment {
	b.t.Helper()
	return eval[[]moment](b, "window.sights")
}
