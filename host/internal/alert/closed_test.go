package alert_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The document remembers each job that ever had an incident. When that is too much for it, it
// forgets some, and alerts go on. What the replicas have told is not told again.
func TestFullDocumentForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		closed, size := map[string]int64{}, 0
		for size < store.MaxDocument-1500 { // of later versions than those of the test, so these stay
			job := fmt.Sprintf("job-%04d-%s/failures", len(closed), strings.Repeat("x", 900))
			closed[job], size = 4*1763827200000000, size+len(job)+len(`"":7055308800000000,`)
		}
		body, err := json.Marshal(map[string]any{"schema": 1, "app": "demo", "closed": closed})
		if err == nil {
			_, err = w.store.WriteDocument(t.Context(), "demo/.alerts", "", body)
		}
		if err != nil || len(body) < store.MaxDocument-3000 {
			t.Fatal(len(body), err)
		}
		w.add("r0")
		w.add("r1")
		var want []string
		for i := range 30 {
			job := fmt.Sprintf("failed-%02d-%s", i, strings.Repeat("y", 80))
			w.end(job, store.Succeeded)
			want = append(want, job+" failures alert", job+" failures recovered")
		}
		time.Sleep(time.Minute)
		for i := range 30 {
			job := fmt.Sprintf("failed-%02d-%s", i, strings.Repeat("y", 80))
			w.end(job, store.Failed)
			time.Sleep(20 * time.Second)
			w.end(job, store.Succeeded)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(10 * time.Minute)
		w.want(want...)
		if d, err := w.store.ReadDocument(t.Context(), "demo/.alerts", ""); err != nil || len(d.Body) > store.MaxDocument*3/4 {
			t.Errorf("the document has %d bytes, %v, want about half of %d", len(d.Body), err, store.MaxDocument)
		}
		w.add("r2") // it knows only what the document has
		time.Sleep(10 * time.Minute)
		w.want(want...)
	})
}
