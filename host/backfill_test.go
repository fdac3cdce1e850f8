package host_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
)

// The command orders a backfill, which the next replica that is up carries out; status shows how far
// it is.
func TestBackfillCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := frequent(new(local.Memory))
		run(t.Context(), p, "tick")
		time.Sleep(21 * time.Second)
		run(t.Context(), p, "tick")
		for want, args := range map[string][]string{
			"--from is missing":         {"--to", "1h"},
			"--to is \"soon\"":          {"--from", "2h", "--to", "soon"},
			"can't be used together":    {"--from", "2h", "--to", "1h", "--all", "--missed"},
			"no tick of the range was":  {"--from", "15s", "--to", "1s"},
			"no backfill that is under": {"--cancel"},
			"want 1 to 16":              {"--from", "1h", "--to", "59m", "--all", "--parallel", "17"},
			"before from":               {"--from", "1h", "--to", "2h", "--all"},
			"order it in parts":         {"--from", "365d", "--to", "1h", "--all", "--dry-run"},
		} {
			if got := run(t.Context(), p, append([]string{"backfill", "often"}, args...)...); got.code == 0 || !strings.Contains(got.err, want) {
				t.Errorf("%q: got %+v, want %q", args, got, want)
			}
		}
		got := run(t.Context(), p, "backfill", "often", "--from", "1h", "--to", "59m", "--all", "--dry-run")
		if got.code != 0 || !strings.Contains(got.out, "it would run 3 ticks again, from 1999-12-31 23:00:40") {
			t.Errorf("got %+v", got)
		}
		got = run(t.Context(), p, "backfill", "often", "--from", "1h", "--to", "59m", "--all", "--dry-run", "--json")
		var plan struct{ Ticks int }
		if err := json.Unmarshal([]byte(got.out), &plan); err != nil || plan.Ticks != 3 {
			t.Errorf("got %+v", got)
		}
		got = run(t.Context(), p, "backfill", "often", "--from", "1h", "--to", "59m", "--all", "--reason", "a test")
		if got.code != 0 || !strings.Contains(got.out, "3 ticks from") {
			t.Errorf("got %+v", got)
		}
		if got = run(t.Context(), p, "status"); !strings.Contains(got.out, "waiting, 0 of 3 ticks") {
			t.Errorf("got %+v", got)
		}
		if got = run(t.Context(), p, "tick"); got.code != 0 {
			t.Errorf("got %+v", got)
		}
		if got = run(t.Context(), p, "status"); !strings.Contains(got.out, "done, 3 of 3 ticks (3 succeeded)") {
			t.Errorf("got %+v", got)
		}
		got = run(t.Context(), p, "backfill", "often", "--from", "1h", "--to", "59m", "--all", "--parallel", "2")
		if got.code != 0 || !strings.Contains(got.out, "2 at a time, in their order") {
			t.Errorf("got %+v", got)
		}
		time.Sleep(10 * time.Second)
		if got = run(t.Context(), p, "tick"); got.code != 0 {
			t.Errorf("got %+v", got)
		}
		if got = run(t.Context(), p, "status"); !strings.Contains(got.out, "done, 3 of 3 ticks (3 succeeded)") {
			t.Errorf("got %+v", got)
		}
		if got = run(t.Context(), p, "audit"); !strings.Contains(got.out, "backfill") {
			t.Errorf("got %+v", got)
		}
	})
}

func TestBackfillOverHTTP(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, frequent(new(local.Memory)))
		s.tick()
		const path, admin = "/api/v1/jobs/often/", "Bearer " + adminToken
		d := described(t, s)
		post := func(name, body, want string, code int) {
			t.Helper()
			got := s.ask(http.MethodPost, path+name, body, nil, "Authorization", admin, "Content-Type", "application/json")
			wantAnswer(t, name, got, code, want)
			d.wantAsDescribed(t, "POST", path+name, got)
		}
		post("backfill", `{"from":"1999-12-31T22:00:00Z"}`, "is missing", 409)
		post("backfill", `{"from":"1999-12-31T22:00:00Z","to":"1999-12-31T22:01:00Z","now":true,"until":"2001-01-01T00:00:00Z"}`, "leave out until", 409)
		post("pause", `{"all":true}`, "leave out from, to, all and parallel", 409)
		post("cancel-backfill", "", "no backfill that is under way", 409)
		post("backfill", `{"from":"1999-12-31T22:00:00Z","to":"1999-12-31T22:01:00Z","all":true,"parallel":-1}`, "want 1 to 16", 409)
		post("backfill", `{"from":"1999-12-31T22:00:00Z","to":"1999-12-31T22:01:00Z","all":true}`, `"ticks":4`, 200)
		post("backfill", `{"from":"1999-12-31T22:00:00Z","to":"1999-12-31T22:01:00Z","all":true}`, "is under way", 409)
		time.Sleep(10 * time.Second)
		s.tick()
		time.Sleep(10 * time.Second)
		got := s.get("/api/v1/jobs/often")
		wantAnswer(t, "job", got, 200, `"state":"done"`, `"done":4`)
		d.wantAsDescribed(t, "GET", "/api/v1/jobs/often", got)
		post("backfill", `{"from":"1999-12-31T22:00:00Z","to":"1999-12-31T22:01:00Z","all":true,"parallel":4}`, `"parallel":4`, 200)
		post("cancel-backfill", "", `"kind":"cancel-backfill"`, 200)
		time.Sleep(10 * time.Second)
		got = s.get("/api/v1/jobs/often")
		wantAnswer(t, "job", got, 200, `"state":"cancelled"`)
		d.wantAsDescribed(t, "GET", "/api/v1/orders", s.get("/api/v1/orders"))
		s.wait()
	})
}
