package telemetry_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// What the environment asks for and cannot have is told by name, and stops no program:
// platforms set these variables for all programs alike.
func TestSettingsOfACollector(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=nonsense", ""},
		{"OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=nonsense", ""},
		{"OTEL_METRICS_EXPORTER=prometheus", ""},
		{"OTEL_TRACES_EXPORTER=zipkin", `OTEL_TRACES_EXPORTER is "zipkin": want otlp or none`},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": want http/protobuf`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "http/json": want http/protobuf`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=secret-host:4318", "OTEL_EXPORTER_OTLP_ENDPOINT (not shown) is no URL"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://secret@host", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (not shown) is no URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_TIMEOUT=10s", `OTEL_EXPORTER_OTLP_TIMEOUT is "10s": want a number of milliseconds`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_COMPRESSION=zstd", `OTEL_EXPORTER_OTLP_COMPRESSION is "zstd": want gzip or none`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_HEADERS=secret", "OTEL_EXPORTER_OTLP_HEADERS (not shown) is malformed"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_HEADERS=key=secret%0A", "OTEL_EXPORTER_OTLP_HEADERS (not shown) is malformed"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://h OTEL_EXPORTER_OTLP_CERTIFICATE=nowhere.pem", "OTEL_EXPORTER_OTLP_CERTIFICATE: stat nowhere.pem"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://h OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=nowhere.pem", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: open nowhere.pem"},
	} {
		t.Run(c.env, func(t *testing.T) {
			for pair := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			var log strings.Builder
			m, err := telemetry.Open(program(), slog.New(slog.NewJSONHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			m.Hurry(1) // there is no such collector
			m.Close()
			got := strings.ReplaceAll(log.String(), `\"`, `"`)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %q", got, c.want)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("the log shows a secret: %s", got)
			}
		})
	}
}
