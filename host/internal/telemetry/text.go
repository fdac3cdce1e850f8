package telemetry

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// A family is a metric in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). The
// registry of Prometheus's own client copies, checks and sorts each series several times:
// at 10,000 jobs a scrape took seconds.
type family struct {
	name, kind, help string
	series           []series
}

// A series is one line of a family, or the lines of one histogram.
type series struct {
	labels    string // without braces
	value     float64
	histogram *metricdata.HistogramDataPoint[float64]
}

// familyOf knows the kinds of the instruments of this package. Names follow
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.
func familyOf(m *metricdata.Metrics) family {
	f := family{name: strings.ReplaceAll(m.Name, ".", "_"), help: m.Description}
	if m.Unit == "s" {
		f.name += "_seconds"
	}
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		f.kind = "gauge"
		for i := range data.DataPoints {
			f.series = append(f.series, series{labels: labelsOf(&data.DataPoints[i].Attributes), value: data.DataPoints[i].Value})
		}
	case metricdata.Sum[int64]:
		f.kind, f.name = "counter", f.name+"_total"
		for i := range data.DataPoints {
			f.series = append(f.series, series{labels: labelsOf(&data.DataPoints[i].Attributes), value: float64(data.DataPoints[i].Value)})
		}
	case metricdata.Histogram[float64]:
		f.kind = "histogram"
		for i := range data.DataPoints {
			f.series = append(f.series, series{labels: labelsOf(&data.DataPoints[i].Attributes), histogram: &data.DataPoints[i]})
		}
	}
	slices.SortFunc(f.series, func(a, b series) int { return cmp.Compare(a.labels, b.labels) })
	return f
}

// target is who answers.
func target(r *resource.Resource) family {
	values := map[string]string{}
	for _, a := range r.Attributes() { // sorted
		name := labelName(string(a.Key))
		if before, ok := values[name]; ok { // they differ in a character that no label has
			values[name] = before + ";" + a.Value.String()
			continue
		}
		values[name] = a.Value.String()
	}
	var all []attribute.KeyValue
	for name, value := range values {
		all = append(all, attribute.String(name, strings.ToValidUTF8(value, "\ufffd")))
	}
	set := attribute.NewSet(all...)
	return family{name: "target_info", kind: "gauge", help: "Target metadata", series: []series{{labels: labelsOf(&set), value: 1}}}
}

// labelName is a name with one underscore in place of all that the name of a label cannot have.
func labelName(name string) string {
	name = forbidden.ReplaceAllLiteralString(name, "_")
	if name[0] <= '9' {
		name = "key_" + name
	}
	return name
}

var forbidden = regexp.MustCompile(`[^a-zA-Z0-9]+|^$`)

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// labelsOf are attributes as labels.
func labelsOf(set *attribute.Set) string {
	b := make([]byte, 0, 64)
	for i := range set.Len() {
		a, _ := set.Get(i)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, a.Key...), `="`...)
		b = append(append(b, labelEscapes.Replace(a.Value.AsString())...), '"')
	}
	return string(b)
}

// append appends the lines of the family, if it has any.
func (f *family) append(b []byte) []byte {
	if len(f.series) == 0 {
		return b
	}
	b = append(b, "# HELP "+f.name+" "+strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.help)+"\n# TYPE "+f.name+" "+f.kind+"\n"...)
	for _, s := range f.series {
		if s.histogram != nil {
			b = s.appendHistogram(b, f.name)
		} else {
			b = appendLine(b, f.name, "", s.labels, s.value)
		}
	}
	return b
}

// appendHistogram appends a line for each bucket, which counts what the smaller ones do, too.
func (s *series) appendHistogram(b []byte, name string) []byte {
	limits, count := s.labels, uint64(0)
	if limits != "" {
		limits += ","
	}
	for i, limit := range s.histogram.Bounds {
		count += s.histogram.BucketCounts[i]
		b = appendLine(b, name, "_bucket", limits+`le="`+strconv.FormatFloat(limit, 'g', -1, 64)+`"`, float64(count))
	}
	b = appendLine(b, name, "_bucket", limits+`le="+Inf"`, float64(s.histogram.Count))
	b = appendLine(b, name, "_sum", s.labels, s.histogram.Sum)
	return appendLine(b, name, "_count", s.labels, float64(s.histogram.Count))
}

func appendLine(b []byte, name, part, labels string, value float64) []byte {
	b = append(append(b, name...), part...)
	if labels != "" {
		b = append(append(append(b, '{'), labels...), '}')
	}
	return append(strconv.AppendFloat(append(b, ' '), value, 'g', -1, 64), '\n')
}
