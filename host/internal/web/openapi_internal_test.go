package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/record"
)

// A description is what the tests read of openapi.json.
type description struct {
	Paths      map[string]map[string]struct{ Parameters []struct{ Name string } }
	Components struct {
		Schemas map[string]struct {
			Properties map[string]*property
			Required   []string
		}
	}
}

type property struct {
	Ref          string `json:"$ref"`
	Type, Format string
	Items        *property
}

// kind is what the description says of a value, and kindOf what JSON has of a Go type.
func (p *property) kind() string {
	switch {
	case p == nil:
		return "nothing"
	case p.Type == "array":
		return "array of " + p.Items.kind()
	case p.Format == "date-time":
		return p.Format
	}
	return strings.TrimPrefix(p.Ref, "#/components/schemas/") + p.Type
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		if t != reflect.TypeFor[json.RawMessage]() {
			return "array of " + kindOf(t.Elem())
		}
		return "object"
	case reflect.Map:
		return "object"
	case reflect.Struct:
		for name, value := range answerTypes {
			if reflect.TypeOf(value) == t {
				return name
			}
		}
		return "date-time"
	}
	return "string"
}

func described(t *testing.T) (d description) {
	t.Helper()
	if err := json.Unmarshal(openAPIText, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDescriptionHasEachRoute(t *testing.T) {
	var want, got []string
	p := &pages{guard: NewGuard(&app.Settings{}, slog.New(slog.DiscardHandler))}
	for _, r := range p.api() {
		want = append(want, r.method+" "+r.path)
	}
	for path, methods := range described(t).Paths {
		for method := range methods {
			got = append(got, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("openapi.json has %q, the server %q", got, want)
	}
}

// Each parameter of a list or a history is read, and an error names all of them.
func TestDescriptionHasEachParameter(t *testing.T) {
	unknown := map[string]string{"x": ""}
	_, list := parseQuery(unknown)
	_, history := parsePast(unknown, time.Time{})
	_, ofLocks := parseLocks(unknown)
	_, ofStrip := parseStrip(unknown, time.Time{})
	_, reasons := parseWhy(unknown, time.Time{}, time.UTC)
	for path, err := range map[string]error{"/jobs": list, "/jobs/{job}/history": history, "/locks": ofLocks, "/jobs/{job}/why": reasons, "/strip": ofStrip} {
		if err == nil {
			t.Fatalf("%s: an unknown parameter is taken", path)
		}
		_, names, _ := strings.Cut(err.Error(), ": want ")
		want := regexp.MustCompile(`, | or `).Split(names, -1)
		var got []string
		for _, parameter := range described(t).Paths[path]["get"].Parameters {
			if parameter.Name != "job" { // which is in the path
				got = append(got, parameter.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: openapi.json has %q, the server %q", path, got, want)
		}
	}
}

// A field that comes or goes comes or goes in the description.
func TestDescriptionHasEachField(t *testing.T) {
	schemas := described(t).Components.Schemas
	for name, value := range answerTypes {
		required, optional := fieldsOf(reflect.TypeOf(value))
		schema := schemas[name]
		if got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(slices.Values(slices.Concat(required, optional))); !slices.Equal(got, want) {
			t.Errorf("%s: openapi.json has %q, the server %q", name, got, want)
		}
		for field, want := range kindsOf(reflect.TypeOf(value)) {
			if got := schema.Properties[field].kind(); got != want && got != "nothing" {
				t.Errorf("%s: openapi.json says that %s is %s, the server answers with %s", name, field, got, want)
			}
		}
		if name == "Change" {
			required = nil // what a request leaves out is zero
		}
		if got, want := slices.Sorted(slices.Values(schema.Required)), slices.Sorted(slices.Values(required)); !slices.Equal(got, want) {
			t.Errorf("%s: openapi.json requires %q, the server always answers %q", name, got, want)
		}
	}
	for name := range schemas {
		if answerTypes[name] == nil {
			t.Errorf("openapi.json has the schema %s, and the server has no such answer", name)
		}
	}
}

// answerTypes are the Go types of the schemas.
var answerTypes = map[string]any{
	"App": appInfo{}, "Jobs": jobsAnswer{}, "Job": jobAnswer{}, "Problem": problem{}, "Change": change{}, "Changed": changed{}, "Orders": ordersAnswer{}, "History": historyAnswer{}, "Why": whyAnswer{}, "Past": past.Run{}, "Strip": stripAnswer{}, "Lane": stripLane{}, "Replicas": replicasAnswer{}, "Locks": locksAnswer{}, "Lock": locks.Lock{}, "Holder": locks.Holder{}, "Once": locks.Once{}, "Replica": view.Replica{}, "Order": view.Order{}, "Streak": view.Streak{}, "Skipped": view.Skipped{}, "Setting": app.Setting{}, "Plan": backfillPlan{}, "Pause": view.Pause{}, "SignIn": signIn{}, "SignedIn": signedIn{},
	"Row": view.Job{}, "Detail": view.Detail{}, "Recent": view.Outcome{}, "Outlook": view.Outlook{}, "Shard": view.Shard{}, "Upcoming": view.Upcoming{}, "LeftDay": view.LeftDay{},
	"Outcome": event.Outcome{}, "Progress": record.Progress{}, "Late": record.Late{},
	"BackfillOrder": record.Backfill{}, "Backfill": view.Backfill{}, "Span": record.Span{}, "End": record.End{}, "About": record.About{},
}

// kindsOf are the kinds of the fields, by their names in JSON.
func kindsOf(t reflect.Type) map[string]string {
	kinds := map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
			kinds[name] = kindOf(f.Type)
		}
	}
	return kinds
}

// fieldsOf returns the names in JSON of the fields that are always there, and of those
// that may be left out.
func fieldsOf(t reflect.Type) (required, optional []string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			r, o := fieldsOf(f.Type)
			required, optional = append(required, r...), append(optional, o...)
		case name == "-":
		case name == "recent": // status alone leaves it out
			required = append(required, name)
		case strings.Contains(options, "omit"):
			optional = append(optional, name)
		default:
			required = append(required, name)
		}
	}
	// The list of next is of many jobs; here it is in one.
	if t == reflect.TypeFor[view.Outlook]() {
		optional = slices.DeleteFunc(optional, func(name string) bool { return name == "job" })
	}
	return required, optional
}

func TestOrderOfRows(t *testing.T) {
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	rows := []view.Job{
		{Name: "b", State: view.Idle, Next: at, Last: &event.Outcome{Tick: at.Add(-time.Minute)}},
		{Name: "a", State: "running", Replica: "Replica-X", Kept: []event.Outcome{{}, {Start: at, End: at.Add(3 * time.Second)}}},
		{Name: "d", State: view.Failing, Failures: 3, Next: at.Add(time.Hour), Progress: &record.Progress{Note: "page 3"}, Trouble: true},
		{Name: "c", State: "unknown", Schedule: "every minute", Last: &event.Outcome{Start: at}},
	}
	for text, want := range map[string]string{
		"": "abcd", "sort=-name": "dcba", "sort=state": "dcab", "sort=next": "bdac", "sort=last": "bcad", "sort=-took": "adcb", "sort=-failures": "dcba",
		"sort=schedule": "abdc", "sort=trouble": "dcab", "is=failing": "d", "is=running": "a", "is=due": "b", "is=late": "", "is=paused": "", "of=a": "", "trouble=true": "d", "trouble=false": "abcd", "state=running,idle": "ab", "q=REPLICA": "a", "q=minute": "c", "q=page": "d",
		"offset=1&limit=2": "bc", "offset=9": "", "q=none": "",
	} {
		var got strings.Builder
		page, matched := parsed(t, text).page(rows, at)
		for _, row := range page {
			got.WriteString(row.Name)
		}
		if got.String() != want || !strings.Contains(text, "offset") && matched != len(want) {
			t.Errorf("%s: got %q of %d, want %q", text, got.String(), matched, want)
		}
	}
}

func parsed(t *testing.T, text string) query {
	t.Helper()
	values, err := parameters(httptest.NewRequest("GET", "/?"+text, nil))
	if err != nil {
		t.Fatal(err)
	}
	q, err := parseQuery(values)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// The shards of a job are one row, of the one in trouble, with the states of all; a page of shards has each of them.
func TestShardsAreOneRow(t *testing.T) {
	rows := []view.Job{{Name: "whole", State: view.Idle}}
	for i := range 150 {
		row := view.Job{Name: fmt.Sprintf("split-%d", i), State: view.Idle, Shard: &view.Shard{Index: i, Of: 150, Whole: "split"}}
		if i == 77 {
			row.State, row.Trouble = view.Failing, true
		}
		rows = append(rows, row)
	}
	page, matched := parsed(t, "whole=true&sort=trouble").page(rows, time.Time{})
	if matched != 2 || page[0].Name != "split-77" || page[0].Parts[view.Idle] != 149 || page[0].Parts[view.Failing] != 1 || page[1].Parts != nil {
		t.Errorf("got %d rows, the first %s with %v", matched, page[0].Name, page[0].Parts)
	}
	for text, want := range map[string]int{"of=split": 150, "of=split&limit=9": 9, "of=whole": 0, "": 100} {
		if page, _ := parsed(t, text).page(rows, time.Time{}); len(page) != want {
			t.Errorf("%q: got %d rows, want %d", text, len(page), want)
		}
	}
}

// A token that is made for a process opens what an admin's does, by a cookie of its port, and its address is on this machine.
func TestTokenOfOneProcess(t *testing.T) {
	guard := NewGuard(&app.Settings{App: "demo", Addr: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	r := httptest.NewRequest("GET", "/", nil)
	if got := guard.changes(r); got != accessOff || !strings.Contains(guard.howTo(r), "SOLOIST_ADMIN_TOKEN") {
		t.Errorf("before: got %s, %s", got, guard.howTo(r))
	}
	address := guard.MakeToken(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8093})
	token, ok := strings.CutPrefix(address, "http://127.0.0.1:8093/#token=")
	if !ok || len(token) < 26 {
		t.Fatalf("got the address %s", address)
	}
	if got := guard.changes(r); got != accessNo || !strings.Contains(guard.howTo(r), "#token=") || strings.Contains(guard.howTo(r), token) {
		t.Errorf("without it: got %s, %s", got, guard.howTo(r))
	}
	w := httptest.NewRecorder()
	(&pages{guard: guard}).signIn(w, signInOf(token))
	cookies := w.Result().Cookies()
	if len(cookies) != 1 || cookies[0].Name != "soloist-demo-8093" || strings.Contains(cookies[0].String(), token) {
		t.Fatalf("got %d, %q", w.Code, cookies)
	}
	r.AddCookie(cookies[0])
	if got := guard.changes(r); got != accessYes || guard.howTo(r) != "" || guard.nameOf(r) == "" {
		t.Errorf("with it: got %s, %s", got, guard.howTo(r))
	}
	other := NewGuard(&app.Settings{App: "demo", Addr: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	other.MakeToken(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8093})
	if got := other.changes(r); got != accessNo {
		t.Errorf("the next process of the port: got %s", got)
	}
}

func signInOf(token string) *http.Request {
	r := httptest.NewRequest("POST", "/", strings.NewReader(fmt.Sprintf(`{"token": %q, "name": ""}`, token)))
	r.Header.Set("Content-Type", "application/json")
	return r
}
