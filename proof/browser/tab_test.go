// Package browser looks at the page in a headless Chromium. It is a module of its own, so
// that users of the library do not get what only this needs.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	document "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/soloist-go/soloist/internal/proctest"
)

const (
	readToken  = "read-me-and-no-more"
	adminToken = "open-sesame-to-1800"
)

// A fleet is some replicas over one storage.
type fleet struct {
	proctest.Fleet
	t *testing.T
}

// newFleet is over a directory.
func newFleet(t *testing.T, env ...string) *fleet {
	t.Helper()
	return fleetWith(t, asUsual, append(env, "SOLOIST_STORAGE=dir:"+t.TempDir()))
}

// fleetWith has replicas that run the jobs of that order.
func fleetWith(t *testing.T, order string, env []string) *fleet {
	t.Helper()
	f := &fleet{t: t}
	f.Env = append([]string{proctest.As(order), "SOLOIST_APP=demo", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s"}, env...)
	t.Cleanup(func() { f.End(t) })
	return f
}

// start starts a replica and returns the address of its page.
func (f *fleet) start(name string) (url string) {
	f.t.Helper()
	if err := f.Start(name, "CONTAINER_APP_REPLICA_NAME="+name); err != nil {
		f.t.Fatal(err)
	}
	e, err := f.Have("the address of "+name, time.Minute, func(e proctest.Event) bool { return e.Replica == name && e.Msg == "listening" })
	if err != nil {
		f.t.Fatal(err)
	}
	return e.URL
}

// told waits for what pulse tells.
func (f *fleet) told(what string) proctest.Event {
	f.t.Helper()
	e, err := f.Await(what+" of pulse", time.Minute, func(e proctest.Event) bool { return e.What == what && e.Job == "pulse" })
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// A tab is one page in a browser, and what was wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	wrong    []string
	requests []string
}

// newTab opens a tab. It skips the test where there is no Chromium.
func newTab(t *testing.T) *tab {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no chromium: apt-get install chromium")
		}
		t.Skip("there is no chromium: apt-get install chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // events that it does not know
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.hear)
	b.do(log.Enable())
	return b
}

// hear notes what a console would show in red, and each request.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.wrong = append(b.wrong, fmt.Sprint("console: ", e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.wrong = append(b.wrong, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.Method+" "+e.Request.URL)
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// before has each page of the tab run a script before its own.
func (b *tab) before(script string) {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := document.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// wantNothingWrong wants no error in the console so far, but for those that the test expects.
func (b *tab) wantNothingWrong(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.wrong {
		if !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(text, part) }) {
			b.t.Errorf("the console says %s", text)
		}
	}
}

// eval returns the value of an expression.
func eval[T any](b *tab, expression string) (value T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &value))
	return value
}

// await waits until an expression is true.
func (b *tab) await(what, expression string) {
	b.t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if eval[bool](b, expression) {
			return
		}
	}
	b.t.Fatalf("%s: not within a minute; the page says\n%s", what, eval[string](b, "document.body.innerText"))
}

// text is a JavaScript expression for the text of an element.
func text(selector string) string {
	return fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '')", selector)
}

// looks are what the page has to be good in.
var looks = []struct {
	name          string
	width, height int64
	scheme        string
}{
	{"desktop-light", 1280, 1080, "light"}, {"desktop-dark", 1280, 1080, "dark"},
	{"phone-light", 390, 844, "light"}, {"phone-dark", 390, 844, "dark"},
}

// looks sets the width, and the colours that the reader prefers. Nothing moves in a picture.
func (b *tab) looks(width, height int64, scheme string) {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(width, height, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// eachLook looks at a part of the page in each look, in which it fits into the window, and keeps a picture of it.
func (b *tab) eachLook(part string, look func(name string)) {
	b.t.Helper()
	for _, l := range looks {
		b.looks(l.width, l.height, l.scheme)
		name := part + "-" + l.name
		b.picture(name)
		if width := eval[int64](b, "document.documentElement.scrollWidth"); width > l.width { // innerWidth follows the page on a phone
			b.t.Errorf("%s: the page is wider than the window", name)
		}
		look(name)
	}
}

// picture keeps a screenshot as an artifact of the test.
func (b *tab) picture(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// awaitPromise has an expression's promise waited for.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// order makes a change on the page of a job, as an operator does who has signed in.
func (b *tab) order(key, reason string) {
	b.t.Helper()
	button := fmt.Sprintf(`#actions [data-key=%q]`, key)
	b.await("the button "+key, fmt.Sprintf("!!document.querySelector(%q) && !document.querySelector('#actions').hidden", button))
	proctest.Poll(b.t, "the question "+key, time.Minute, func() bool { // a click misses if the text above grows between the look for the button and the press
		if !eval[bool](b, `document.querySelector('#ask').open`) {
			b.do(chromedp.Click(button))
		}
		return eval[bool](b, `document.querySelector('#ask').open && document.querySelector('#ask-risk').innerText.length > 40`)
	})
	b.do(chromedp.SendKeys(`#ask-fields [name="reason"]`, reason+kb.Enter))
	b.await("the answer", `!document.querySelector('#ask').open`)
	b.await("the order", has("#orders", reason))
}

// wantBudget wants that the page costs one request, a stream, and less than 100 KB. It asks for what is in no stream now and then:
// for the locks once in 15 s, for the strip once in 2 s at most.
func (b *tab) wantBudget() {
	b.t.Helper()
	b.mu.Lock()
	requests := slices.Clone(b.requests)
	b.mu.Unlock()
	for path, every := range map[string]int{"/api/v1/locks": 15_000, "/api/v1/strip": 2_000} {
		asked := len(requests)
		requests = slices.DeleteFunc(requests, func(url string) bool { return strings.Contains(url, path) })
		if asked -= len(requests); asked > 1+int(eval[float64](b, `performance.now()`))/every {
			b.t.Errorf("it asked for %s %d times", path, asked)
		}
	}
	if len(requests) != 2 || !strings.Contains(requests[1], "/api/v1/stream?") {
		b.t.Errorf("got the requests %q, want the page and one stream", requests)
	}
	if size := eval[int](b, `performance.getEntriesByType('navigation')[0].transferSize`); size < 10_000 || size >= 100_000 {
		b.t.Errorf("the page has %d bytes, want less than 100 KB", size)
	}
}
