package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// full is a document that runs of some jobs fill, with the numbers from 1 on, each of about 1,000 bytes, and pauses of the job
// "rested", each of about 60 bytes.
func full(t *testing.T, s *local.Memory, until time.Time, jobs map[string]int, pauses int) {
	t.Helper()
	until = until.UTC().Truncate(time.Second)
	doc := record.Control{App: "app", Seq: 1000, Jobs: map[string]record.JobControl{}}
	for job, n := range jobs {
		var j record.JobControl
		for i := range n {
			j.Requests = append(j.Requests, record.Request{Seq: int64(i + 1), Name: "n", By: strings.Repeat("x", 895), At: until, Until: until})
		}
		doc.Jobs[job] = j
	}
	doc.Jobs["rested"] = record.JobControl{Pauses: slices.Repeat([]record.Span{{From: until.Add(-time.Hour), To: until}}, pauses)}
	b, err := doc.Encode()
	if err == nil {
		_, err = s.WriteDocument(t.Context(), record.ControlName("app"), "", b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// client is the client of a desk.
func client(documents store.Documenter, entries store.Store) *control.Client {
	begin := time.Now()
	return &control.Client{Store: documents, Entries: entries, App: "app", Jitter: lease.NewJitter("x"),
		Clock: &lease.Clock{Wall: time.Now, Elapsed: func() time.Duration { return time.Since(begin) }}}
}

// A gateway answers writes of documents in the place of the store.
type gateway struct{ *local.Memory }

func (gateway) WriteDocument(context.Context, string, string, []byte) (store.Revision, error) {
	return store.Revision{}, nil
}

// A success without an ETag is not from the store: it is not known whether the order was written.
func TestOrderThatIsNotWrittenByTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gateway{&local.Memory{}}
		_, err := control.NewWatch(client(s, s), func() {}).Order(t.Context(), record.Order{Kind: record.OrderPause, Job: "work"}, &record.Record{})
		if err == nil || !strings.Contains(err.Error(), "not known whether") {
			t.Errorf("got %v", err)
		}
	})
}

// A full document drops runs that are over for a day: served by the record of their job, or of a job whose entry was deleted. Any
// other run stays. If they fill the document, no further run is taken, but a pause is. Pauses go whose ticks have been skipped.
func TestFullDocument(t *testing.T) {
	before := map[string]int{"idle": 845, "half": 105, "busy": 45, "gone": 45} // all that is over has to go
	for name, tt := range map[string]struct {
		ago     time.Duration // since the runs were to begin
		before  map[string]int
		pauses  int
		refused bool
		want    map[string]int // how many runs of a job are kept
	}{
		"over for long":   {48 * time.Hour, before, 0, false, map[string]int{"idle": 845, "half": 60, "new": 1}},
		"of today":        {20 * time.Hour, before, 0, true, before},
		"pauses are over": {48 * time.Hour, map[string]int{"idle": 845}, 1800, false, map[string]int{"idle": 845, "new": 1}},
		"pauses of today": {20 * time.Hour, map[string]int{"idle": 845}, 1800, true, map[string]int{"idle": 845}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &local.Memory{}
			full(t, s, time.Now().Add(-tt.ago), tt.before, tt.pauses)
			for job, served := range map[string]int64{"idle": 0, "half": 45, "busy": 45, "new": 0} {
				r := record.Record{App: "app", Job: job, Created: time.Now(), Watermark: time.Now(), Token: 1, Orders: record.Orders{Served: served}}
				r.Run.Status = record.Idle
				b, err := r.Encode()
				if err == nil {
					_, err = s.Create(t.Context(), "app/"+job, b)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			c := client(s, s)
			w, begin := control.NewWatch(c, func() {}), time.Now()
			_, err := w.Order(t.Context(), record.Order{Kind: record.OrderRun, Job: "new", Name: "one", Until: begin.Add(time.Hour)}, &record.Record{})
			if refused := errors.Is(err, control.ErrRefused); refused != tt.refused || err != nil && !refused {
				t.Errorf("a run: %v", err)
			}
			if _, err := w.Order(t.Context(), record.Order{Kind: record.OrderPause, Job: "new", Reason: strings.Repeat("x", 200)}, &record.Record{}); err != nil {
				t.Errorf("a pause: %v", err)
			}
			doc, err := c.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for job, j := range doc.Jobs {
				if len(j.Requests) != tt.want[job] {
					t.Errorf("%d runs of %s are kept, want %d", len(j.Requests), job, tt.want[job])
				}
			}
			kept := 0
			if tt.refused {
				kept = tt.pauses
			}
			if n := len(doc.Jobs["rested"].Pauses); n != kept {
				t.Errorf("%d pauses are kept, want %d", n, kept)
			}
		})
	}
}
