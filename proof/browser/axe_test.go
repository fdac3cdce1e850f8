package browser

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/chromedp/chromedp"
)

// wantAccessible wants that the page breaks no rule of axe as it is now.
func (b *tab) wantAccessible(name string) {
	b.t.Helper()
	script, err := axe()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		b.t.Skip("axe-core is installed by npm: ", err)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Evaluate(script, nil))
	var found []string
	b.do(chromedp.Evaluate(`axe.run().then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('; ')))`, &found, awaitPromise))
	for _, text := range found {
		b.t.Errorf("%s: %s", name, text)
	}
}

// axe is the script of axe-core, which is installed the first time.
var axe = sync.OnceValues(func() (string, error) {
	const file = "testdata/node_modules/axe-core/axe.min.js"
	if _, err := os.Stat(file); err != nil {
		if out, err := exec.Command("npm", "ci", "--prefix", "testdata", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	text, err := os.ReadFile(file)
	return string(text), err
})
