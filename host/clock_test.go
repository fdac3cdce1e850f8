package host_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

func TestWrongClockIsTold(t *testing.T) {
	environment(t)
	for _, test := range []struct {
		off  time.Duration
		want string
	}{
		{0, ""},
		{900 * time.Millisecond, ""},
		{-90 * time.Second, "this machine's clock is 1m30s behind the store's"},
		{90 * time.Second, "this machine's clock is 1m30s ahead of the store's"},
	} {
		t.Run(test.off.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Millisecond) // a date of whole seconds could mean any time of its second
				p := host.Program{Work: work(), Store: &local.Memory{}, Now: func() time.Time { return time.Now().Add(test.off) }}
				warned := strings.Contains(run(t.Context(), p, "tick").err, test.want+", by which")
				if warned != (test.want != "") {
					t.Errorf("tick: warned is %t", warned)
				}
				got := run(t.Context(), p, "status")
				if head := "app demo on *local.Memory, " + time.Now().Add(test.off).UTC().Format("2006-01-02 15:04:05Z\n") + test.want; !strings.HasPrefix(got.out, head) ||
					strings.Contains(got.out, "clock") != (test.want != "") {
					t.Errorf("status: got\n%s\nwant\n%s", got.out, head)
				}
				got = run(t.Context(), p, "status", "--json")
				wantSkew(t, got.out, test.off)
				s := open(t, p)
				wantSkew(t, s.get("/api/v1/jobs").Body.String(), test.off)
				if got := strings.Contains(s.get("/api/v1/app").Body.String(), `"clock":`); got != (test.want != "") {
					t.Errorf("the app speaks of the clock: %t", got)
				}
				wantSkew(t, s.get("/healthz").Body.String(), test.off)
				s.wait()
			})
		})
	}
}

func wantSkew(t *testing.T, out string, want time.Duration) {
	t.Helper()
	var answer struct {
		Skew float64
		App  any // of the API an object that has it, of commands a name
	}
	err := json.Unmarshal([]byte(out), &answer)
	if info, ok := answer.App.(map[string]any); ok {
		answer.Skew, _ = info["skew"].(float64)
	}
	if err != nil || answer.Skew != want.Seconds() {
		t.Errorf("got %s, %v, want a skew of %s", out, err, want)
	}
}

func TestServeWatchesTheClock(t *testing.T) {
	inRealTime(t)
	environment(t, "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_STORAGE=memory:")
	log, stop, code := serving(t, host.Program{Work: work(), Now: func() time.Time { return time.Now().Add(time.Hour) }})
	if m := await(t, log, "this machine's clock is 1h0m0s ahead of the store's"); m.Level != "WARN" {
		t.Errorf("got %+v", m)
	}
	stop()
	wantCode(t, <-code, 0)
}
