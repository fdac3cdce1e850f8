package postgres_test

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/postgres"
	server "github.com/soloist-go/soloist/internal/postgres"
)

// A program that links the package has all its commands over the database that SOLOIST_STORAGE names.
func TestProgram(t *testing.T) {
	place := urlOf(t, server.Start(t))
	t.Setenv("SOLOIST_STORAGE", place)
	t.Setenv("SOLOIST_LEASE", "1s")
	job := soloist.Job{Name: "report", Schedule: "@daily", Do: func(ctx context.Context, run *soloist.Run) error { return run.Save(ctx, 1) }}
	for _, test := range []struct{ args, want string }{
		{"validate", "ok: 1 job, app demo on PostgreSQL at /"},
		{"doctor", "schema       soloist, version 1"},
		{"doctor", "damaged"}, // the test's server has no fsync
		{"tick", ""},
		{"run report --here", "succeeded"},
		{"pause report", "paused"},
		{"status", "report"},
		{"history report", "succeeded"},
		{"unlock report", "nobody has a lease"},
	} {
		var out bytes.Buffer
		p := host.Program{Work: []soloist.Work{job}, OpenStore: postgres.OpenURL, Name: "demo", Args: strings.Fields(test.args), Stdout: &out, Stderr: &out}
		code := p.Run(t.Context())
		if text := out.String(); !strings.Contains(text, test.want) || code != 0 || strings.Contains(text, "s3cretly") {
			t.Errorf("%s: code %d, want %q in\n%s", test.args, code, test.want, text)
		}
	}
}

// urlOf makes a URL of a connection string, with a password that the server does not ask for.
func urlOf(t *testing.T, text string) string {
	t.Helper()
	values := url.Values{}
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		values.Set(name, value)
	}
	user := values.Get("user")
	values.Del("user")
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, "s3cretly"), Path: "/", RawQuery: values.Encode()}).String()
}
