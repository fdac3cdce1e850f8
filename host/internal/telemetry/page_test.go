package telemetry_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// A caller chooses between plain text and gzip, and nothing else: each further form would be a rendering of its own.
func TestScrapeForms(t *testing.T) {
	m := open(t, program())
	for encoding, zipped := range map[string]bool{"": false, "gzip": true, "zstd, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "zstd": false} {
		w := ask(m, encoding)
		body := io.Reader(w.Body)
		if zipped {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatalf("%q: %v", encoding, err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(text), "\nsoloist_running") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || (w.Header().Get("Content-Encoding") == "gzip") != zipped {
			t.Errorf("%q: got %v, %v, %.100q", encoding, w.Header(), err, text)
		}
	}
}

func ask(m *telemetry.Telemetry, encoding string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text,application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	m.ServeHTTP(w, r)
	return w
}
