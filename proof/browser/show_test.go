package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// images is where the pictures of the docs go:
//
//	go test -run TestPictures -images ../../docs/images
var images = flag.String("images", "", "directory for the pictures of the docs; empty: the artifacts of the test alone")

// mostImage is the largest file of a picture in the docs.
const mostImage = 150 << 10

// Screenshots of a program like many: at the width of a desktop and of a phone, in light and
// dark colours.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "shop-") // which the page shows
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := fleetWith(t, asShow, []string{"SOLOIST_STORAGE=dir:" + dir, "SOLOIST_APP=shop", "SOLOIST_ADMIN_TOKEN=" + adminToken})
	url := f.start("shop-1")
	f.start("shop-2")
	b := newTab(t)
	b.do(chromedp.Navigate(url))
	b.await("the list", has(row("thumbnails"), "every 2 seconds"))
	b.signIn("Ada")
	b.change("newsletter", "pause", `{"reason": "until the new template is there"}`)
	b.change("catalogue-import", "run", `{"reason": "the supplier has sent prices"}`)
	b.do(chromedp.Reload())
	b.await("outcomes", `document.querySelectorAll('`+row("thumbnails")+` .strip i').length >= 12`)
	b.await("the pause", has(row("newsletter"), "paused by Ada"))
	b.await("the run by hand", has(row("catalogue-import"), "page 312"))
	b.pictures(t, "list", "desktop-light")
	b.do(chromedp.Navigate(url + "jobs/invoices"))
	b.await("the job", `document.querySelectorAll('#history tbody tr').length >= 8`)
	b.pictures(t, "job", "phone-dark")
	b.wantNothingWrong()
}

// signIn gives the browser a session with the admin token.
func (b *tab) signIn(name string) {
	b.t.Helper()
	if code := b.send("/api/v1/session", fmt.Sprintf(`{"token": %q, "name": %q}`, adminToken, name)); code != 200 {
		b.t.Fatalf("the sign-in got %d", code)
	}
}

// change makes a change of a job.
func (b *tab) change(job, key, body string) {
	b.t.Helper()
	if code := b.send("/api/v1/jobs/"+job+"/"+key, body); code != 200 {
		b.t.Fatalf("%s of %s got %d", key, job, code)
	}
}

// pictures keeps the part of the page in each look, and that of the docs where it belongs.
func (b *tab) pictures(t *testing.T, part, best string) {
	t.Helper()
	b.eachLook(part, func(name string) {
		if eval[bool](b, "[...document.querySelectorAll('#rows .state')].some(e => !e.offsetWidth)") {
			t.Errorf("%s: the state of a job is not shown", name)
		}
		if name != part+"-"+best {
			return
		}
		var png []byte
		b.do(chromedp.CaptureScreenshot(&png))
		if len(png) > mostImage {
			t.Errorf("%s has %d bytes, want %d at most", name, len(png), mostImage)
		}
		if *images == "" {
			return
		}
		if err := os.WriteFile(filepath.Join(*images, "page-"+part+".png"), png, 0o644); err != nil {
			t.Error(err)
		}
	})
}
