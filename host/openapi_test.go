package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A schemas holds answers against the description that the server gives of itself.
type schemas struct {
	paths   map[string]any
	schemas map[string]any
}

func described(t *testing.T, s site, header ...string) schemas {
	t.Helper()
	var d map[string]any
	must(t, json.Unmarshal(s.get("/api/v1/openapi.json", header...).Body.Bytes(), &d))
	return schemas{d["paths"].(map[string]any), d["components"].(map[string]any)["schemas"].(map[string]any)}
}

// wantAsDescribed wants an answer that the description has for its path, method and code.
func (d schemas) wantAsDescribed(t *testing.T, method, path string, got *httptest.ResponseRecorder) {
	t.Helper()
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/api/v1"), "?")
	if parts := strings.Split(path, "/"); len(parts) > 2 && parts[1] == "jobs" {
		parts[2] = "{job}"
		path = strings.Join(parts, "/")
	}
	operation, ok := at(d.paths, path, strings.ToLower(method)).(map[string]any)
	if !ok {
		t.Errorf("%s %s is not described", method, path)
		return
	}
	schema, ok := at(operation, "responses", fmt.Sprint(got.Code), "content", "application/json", "schema").(map[string]any)
	if !ok {
		t.Errorf("%s %s: the code %d is not described: %s", method, path, got.Code, got.Body)
		return
	}
	var value any
	if err := json.Unmarshal(got.Body.Bytes(), &value); err != nil {
		t.Errorf("%s %s: %v: %s", method, path, err, got.Body)
		return
	}
	wantEqual(t, method+" "+path, got.Header().Get("Content-Type"), "application/json")
	for _, wrong := range d.check(value, schema, "answer") {
		t.Errorf("%s %s: %s in %s", method, path, wrong, got.Body)
	}
}

// at follows names into nested objects.
func at(value any, names ...string) any {
	for _, name := range names {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// check returns what is wrong with a value.
func (d schemas) check(value any, schema map[string]any, where string) (wrong []string) {
	if name, ok := schema["$ref"].(string); ok {
		schema = d.schemas[strings.TrimPrefix(name, "#/components/schemas/")].(map[string]any)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		wrong = append(wrong, fmt.Sprintf("%s is %v, want one of %v", where, value, enum))
	}
	switch kind := schema["type"]; v := value.(type) {
	case map[string]any:
		if kind != "object" {
			return append(wrong, fmt.Sprintf("%s is an object, want %v", where, kind))
		}
		return append(wrong, d.checkObject(v, schema, where)...)
	case []any:
		if kind != "array" {
			return append(wrong, fmt.Sprintf("%s is a list, want %v", where, kind))
		}
		for i, item := range v {
			wrong = append(wrong, d.check(item, schema["items"].(map[string]any), fmt.Sprintf("%s[%d]", where, i))...)
		}
	case string:
		_, err := time.Parse(time.RFC3339, v)
		if kind != "string" || schema["format"] == "date-time" && err != nil {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %v %v", where, v, kind, schema["format"]))
		}
	case float64:
		if kind != "number" && (kind != "integer" || v != math.Trunc(v)) {
			wrong = append(wrong, fmt.Sprintf("%s is %g, want %v", where, v, kind))
		}
	case bool:
		if kind != "boolean" {
			wrong = append(wrong, fmt.Sprintf("%s is %t, want %v", where, v, kind))
		}
	default:
		wrong = append(wrong, fmt.Sprintf("%s is %v", where, v))
	}
	return wrong
}

func (d schemas) checkObject(v, schema map[string]any, where string) (wrong []string) {
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range v {
		if inner, ok := properties[name].(map[string]any); ok {
			wrong = append(wrong, d.check(value, inner, where+"."+name)...)
		} else if inner, ok := schema["additionalProperties"].(map[string]any); ok {
			wrong = append(wrong, d.check(value, inner, where+"."+name)...)
		} else if schema["additionalProperties"] == false {
			wrong = append(wrong, fmt.Sprintf("%s.%s is not described", where, name))
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s has no %s", where, name))
		}
	}
	return wrong
}

// Answers are as the server describes them: of jobs in all kinds of states, and of
// requests that are refused.
func TestAnswersAreAsDescribed(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken, "SOLOIST_READ_TOKEN="+readToken, "CONTAINER_APP_REVISION=demo--1", "SOLOIST_JOB_BEAT_PAUSED=true")
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		put(t, backend, "demo/broken", `{"schema":99}`, false)
		var all []soloist.Work
		all = append(all, work()...)
		all = append(all, here()[0], soloist.Job{Name: "broken", Schedule: "@hourly", Do: do}, telling())
		s := open(t, host.Program{Work: all, Store: backend, Now: func() time.Time { return time.Now().Add(time.Minute) }})
		s.tick()
		time.Sleep(2 * time.Hour)
		ended := s.underway(10 * time.Second)
		const read, admin = "Bearer " + readToken, "Bearer " + adminToken
		d := described(t, s, read)
		for _, request := range [][3]string{
			{"GET", "/api/v1/openapi.json", read}, {"GET", "/api/v1/app", read}, {"GET", "/api/v1/app", admin}, {"GET", "/api/v1/app", ""}, {"GET", "/api/v1/jobs", read},
			{"GET", "/api/v1/jobs?sort=-took&limit=1", read}, {"GET", "/api/v1/jobs?sort=x", read}, {"GET", "/api/v1/jobs?srt=name", read}, {"GET", "/api/v1/jobs?limit=101", read},
			{"GET", "/api/v1/jobs/none", read}, {"POST", "/api/v1/jobs/none/step-down", admin}, {"POST", "/api/v1/jobs/beat/step-down", ""}, {"POST", "/api/v1/jobs/beat/step-down", admin},
			{"POST", "/api/v1/jobs/telling/step-down", admin},
		} {
			d.wantAsDescribed(t, request[0], request[1], s.send(request[0], request[1], request[2]))
		}
		for _, w := range all {
			path := "/api/v1/jobs/" + nameOf(w)
			got := s.get(path, read)
			wantAnswer(t, path, got, http.StatusOK)
			d.wantAsDescribed(t, "GET", path, got)
		}
		ended()
	})
}

// telling is a job that tells how far it is.
func telling() soloist.Job {
	return soloist.Job{Name: "telling", Schedule: "@every 1m", Do: func(ctx context.Context, run *soloist.Run) error {
		run.Heartbeat("page 1")
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Second):
		}
		return ctx.Err()
	}}
}

func nameOf(w soloist.Work) string {
	if j, ok := w.(soloist.Job); ok {
		return j.Name
	}
	return w.(soloist.Singleton).Name
}
