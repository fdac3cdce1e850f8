package azure_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// The status of 10,000 jobs, one of another version beside them, is three requests.
func TestStatusOfManyJobsIsThreeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no call takes too long
		w := &wire{}
		s := open(t, w)
		scheduler := &soloist.Scheduler{App: "app", Store: s}
		put(t, s, "app/job-00000")
		for i := range 10_001 {
			job := fmt.Sprintf("job-%05d", i)
			plant(t, &w.Blob, "app/"+job)
			if i > 0 {
				scheduler.Jobs = append(scheduler.Jobs, soloist.Job{Name: job, Schedule: "@hourly", Do: func(context.Context, *soloist.Run) error { return nil }})
			}
		}
		put(t, s, "app/.log/job/2026-11")                                            // what is deeper is no entry and fills no page
		for _, want := range []string{"get, list, list, list", "list, list, list"} { // the orders, and three lists
			before := len(w.Log())
			all, err := scheduler.Status(t.Context())
			if err != nil || len(all) != 10_000 || all[0].Lease != store.Available || all[9_999].Lease != store.Available {
				t.Fatalf("got %d statuses, %v", len(all), err)
			}
			if got := operations(w.Log()[before:]); got != want {
				t.Errorf("requests: %.100s, want %s", got, want)
			}
		}
		for _, r := range w.requests[len(w.requests)-3:] {
			if q := r.URL.Query(); q.Get("prefix") != "app/" || q.Get("include") != "metadata" || q.Get("delimiter") != "/" {
				t.Errorf("asked for %s", r.URL.RawQuery)
			}
		}
	})
}

func put(t *testing.T, s *azure.Store, name string) {
	t.Helper()
	if _, err := s.Create(t.Context(), name, []byte("{}")); err != nil {
		t.Fatal(err)
	}
}

// plant puts a blob without the client library, which takes a while for many.
func plant(t *testing.T, b *blobtest.Blob, name string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://sim.blob.core.windows.net/soloist/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	if resp, err := b.Do(r); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("got %v, %v", resp, err)
	}
}

// A page of large records is read to its end. An entry of a page without ETag or state of the lease is not the service's.
func TestPage(t *testing.T) {
	const one = "<Blob><Name>app/job</Name><Properties><Etag>x</Etag><LeaseState>leased</LeaseState></Properties>%s</Blob>"
	large := fmt.Sprintf(one, "<Metadata><record>"+strings.Repeat("r", store.MaxRecord)+"</record></Metadata>")
	for what, test := range map[string]struct {
		blobs string
		want  int // zero: an error
	}{
		"one":      {fmt.Sprintf(one, ""), 1},
		"17 MB":    {strings.Repeat(large, 2100), 2100},
		"no ETag":  {strings.Replace(fmt.Sprintf(one, ""), "<Etag>x</Etag>", "", 1), 0},
		"no state": {strings.Replace(fmt.Sprintf(one, ""), "<LeaseState>leased</LeaseState>", "", 1), 0},
	} {
		s := open(t, transport(func(r *http.Request) (*http.Response, error) {
			resp := blobtest.Refusal(r, time.Now(), http.StatusOK, "")
			resp.Header.Set("Content-Type", "application/xml")
			text := `<?xml version="1.0"?><EnumerationResults><Blobs>` + test.blobs + `</Blobs><NextMarker/></EnumerationResults>`
			resp.Body = &body{Reader: strings.NewReader(text)}
			return resp, nil
		}))
		told := 0
		err := s.List(t.Context(), "app", func(string, store.Entry) bool { told++; return true })
		if told != test.want || (err == nil) != (test.want > 0) {
			t.Errorf("%s: lists %d, %v", what, told, err)
		}
		if err != nil {
			unclear(t, err, "not from the Blob service")
		}
	}
}

// TestDocumentedService runs the suite over the service as it is documented.
func TestDocumentedService(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New: func(t *testing.T) store.Store { return open(t, new(blobtest.Blob)) },
		Two: func(t *testing.T) (one, other store.Store) {
			blob := new(blobtest.Blob)
			return open(t, blob), open(t, blob)
		},
		Virtual: true,
	})
}
