package telemetry

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// values are the counters and histograms of a replica. The client library of Prometheus would have them, with protobuf
// and all that it needs: a fifth of what compiles.
type values struct {
	mu     sync.Mutex
	series map[*Metric]map[Labels]*value
}

// A value is one series.
type value struct {
	count   int64
	sum     float64 // of a histogram
	buckets []int64 // of a histogram: how many are above the limit before and up to this one
}

// of returns a series, and makes it if there is none. The caller holds mu.
func (v *values) of(m *Metric, l Labels) *value {
	if v.series == nil {
		v.series = map[*Metric]map[Labels]*value{}
	}
	if v.series[m] == nil {
		v.series[m] = map[Labels]*value{}
	}
	if v.series[m][l] == nil {
		v.series[m][l] = &value{buckets: make([]int64, len(m.Limits))}
	}
	return v.series[m][l]
}

func (v *values) add(m *Metric, n int64, l Labels) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of(m, l).count += n
}

func (v *values) record(m *Metric, seconds float64, l Labels) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.of(m, l)
	s.count++
	s.sum += seconds
	if i, _ := slices.BinarySearch(m.Limits, seconds); i < len(m.Limits) {
		s.buckets[i]++
	}
}

// write adds the lines of a counter or histogram.
func (v *values) write(p *text, m *Metric) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.series[m]) == 0 {
		return
	}
	p.head(m)
	name := m.prometheus()
	for _, l := range slices.SortedFunc(maps.Keys(v.series[m]), compare) {
		s := v.series[m][l]
		if m.Kind == Counter {
			p.line(name, l, "", float64(s.count))
			continue
		}
		sum := int64(0)
		for i, limit := range m.Limits {
			sum += s.buckets[i]
			p.line(name+"_bucket", l, number(limit), float64(sum))
		}
		p.line(name+"_bucket", l, "+Inf", float64(s.count))
		p.line(name+"_sum", l, "", s.sum)
		p.line(name+"_count", l, "", float64(s.count))
	}
}

func compare(a, b Labels) int {
	if c := strings.Compare(a[0].Value, b[0].Value); c != 0 {
		return c
	}
	return strings.Compare(a[1].Value, b[1].Value)
}

// A text is metrics in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
type text struct{ bytes.Buffer }

func (p *text) head(m *Metric) {
	name := m.prometheus()
	p.WriteString("# HELP " + name + " " + m.Help + "\n# TYPE " + name + " " + string(m.Kind) + "\n")
}

// line adds the value of a series. A bucket has a limit.
func (p *text) line(name string, l Labels, limit string, v float64) {
	p.WriteString(name)
	sign := byte('{')
	label := func(name, value string) {
		if name == "" {
			return
		}
		p.WriteByte(sign)
		p.WriteString(name + `="` + escape.Replace(value) + `"`)
		sign = ','
	}
	for _, one := range l {
		label(one.Name, one.Value)
	}
	if limit != "" {
		label("le", limit)
	}
	if sign == ',' {
		p.WriteByte('}')
	}
	p.WriteString(" " + number(v) + "\n")
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
