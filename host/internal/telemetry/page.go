package telemetry

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A page answers with all metrics, for Prometheus.
type page struct {
	process *prometheus.Registry // of what the Go runtime and the process measure
	reader  *sdkmetric.ManualReader
	used    sync.Pool // of *metricdata.ResourceMetrics, which the next scrape fills again
}

func newPage() *page {
	p := &page{process: prometheus.NewRegistry(), reader: sdkmetric.NewManualReader(), used: sync.Pool{New: func() any { return new(metricdata.ResourceMetrics) }}}
	p.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := p.used.Get().(*metricdata.ResourceMetrics)
	defer p.used.Put(all)
	process, err := p.process.Gather()
	if err = errors.Join(err, p.reader.Collect(r.Context(), all)); err != nil {
		http.Error(w, fmt.Sprintf("the metrics cannot be read: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Vary", "Accept-Encoding")
	if !takesGzip(r) {
		write(w, process, all)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
	write(z, process, all)
	z.Close()
}

// write writes the metrics in the order of their names, each as soon as it is text. An error
// is that of a client that has gone.
func write(w io.Writer, process []*dto.MetricFamily, all *metricdata.ResourceMetrics) {
	for _, f := range process { // their names come first
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return
		}
	}
	families := []family{target(all.Resource)}
	for _, s := range all.ScopeMetrics {
		for i := range s.Metrics {
			families = append(families, familyOf(&s.Metrics[i]))
		}
	}
	slices.SortFunc(families, func(a, b family) int { return strings.Compare(a.name, b.name) })
	var b []byte
	for _, f := range families {
		b = f.append(b[:0])
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

// takesGzip reports whether the client names gzip without refusing it.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(strings.TrimPrefix(quality, "q="), "0.") != "" || quality == ""
		}
	}
	return false
}
