package azure_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// The status of 10,000 jobs, one of another version beside them, is three requests.
func TestStatusOfManyJobsIsThreeRequests(t *testing.T) {
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
	put(t, s, "app/.log/job/2026-11") // what is deeper is no entry and fills no page
	before := len(w.Log())
	all, err := scheduler.Status(t.Context())
	if err != nil || len(all) != 10_000 || all[0].Lease != store.Available || all[9_999].Lease != store.Available {
		t.Fatalf("got %d statuses, %v", len(all), err)
	}
	if got := operations(w.Log()[before:]); got != "get, list, list, list" {
		t.Errorf("requests: %.100s, want the orders and three lists", got)
	}
	before = len(w.Log())
	_, err = scheduler.Status(t.Context())
	asked := strings.TrimPrefix(operations(w.Log()[before:]), "get, ") // on a slow machine the orders are too old by now
	if err != nil || asked != "list, list, list" {
		t.Errorf("requests: %.100s, want three lists: the orders are known, %v", asked, err)
	}
	for _, r := range w.requests[len(w.requests)-3:] {
		if q := r.URL.Query(); q.Get("prefix") != "app/" || q.Get("include") != "metadata" || q.Get("delimiter") != "/" {
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
	}
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

// An entry of a page without ETag or state of the lease is not the service's.
func TestListOfSomethingElse(t *testing.T) {
	for what, lacks := range map[string]string{"no ETag": "<Etag>x</Etag>", "no state": "<LeaseState>leased</LeaseState>", "nothing": ""} {
		t.Run(what, func(t *testing.T) {
			text := `<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>app/job</Name><Properties><Etag>x</Etag><LeaseState>leased</LeaseState></Properties></Blob></Blobs><NextMarker/></EnumerationResults>`
			text = strings.Replace(text, lacks, "", 1)
			told := 0
			err := listOf(t, text).List(t.Context(), "app", func(string, store.Entry) bool { told++; return true })
			if (err == nil) != (lacks == "") || (told == 1) != (lacks == "") {
				t.Errorf("lists %d, %v", told, err)
			}
			if err != nil {
				unclear(t, err, "not from the Blob service")
			}
		})
	}
}

// A page of large records is read to its end.
func TestPageOfLargeRecords(t *testing.T) {
	const blobs = 2100 // 17 MB
	one := `<Blob><Name>app/job-%d</Name><Properties><Etag>x</Etag><LeaseState>leased</LeaseState></Properties><Metadata><record>` +
		strings.Repeat("r", store.MaxRecord) + `</record></Metadata></Blob>`
	var text strings.Builder
	text.WriteString(`<?xml version="1.0"?><EnumerationResults><Blobs>`)
	for i := range blobs {
		fmt.Fprintf(&text, one, i)
	}
	text.WriteString(`</Blobs><NextMarker/></EnumerationResults>`)
	told := 0
	err := listOf(t, text.String()).List(t.Context(), "app", func(string, store.Entry) bool { told++; return true })
	if err != nil || told != blobs {
		t.Errorf("lists %d, %v", told, err)
	}
}

// listOf is a store whose listings have one page.
func listOf(t *testing.T, text string) *azure.Store {
	return open(t, transport(func(r *http.Request) (*http.Response, error) {
		resp := blobtest.Refusal(r, time.Now(), http.StatusOK, "")
		resp.Header.Set("Content-Type", "application/xml")
		resp.Body = &body{Reader: strings.NewReader(text)}
		return resp, nil
	}))
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
