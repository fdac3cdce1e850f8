package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/azurite"
)

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	OK                   bool
	App, Platform, Store string
	Checks               []struct{ Check, Result, Text, Advice string }
}

// TestDoctor: each set-up is told apart, by one failure that says what to do.
func TestDoctor(t *testing.T) {
	for _, tt := range setups {
		t.Run(tt.what, func(t *testing.T) {
			p := host.Program{Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do}}}
			environment(t, tt.make(t, &p)...)
			got := run(t.Context(), p, "doctor")
			if got.code != tt.code || got.err != "" {
				t.Errorf("got %+v, want code %d", got, tt.code)
			}
			var failed []string
			telling := ""
			for text := range strings.Lines(got.out) {
				result, rest, _ := strings.Cut(text, " ")
				switch result {
				case "FAIL":
					failed = append(failed, strings.Fields(rest)[0])
					telling += text
				case "warn", "ok":
					telling += text
				}
			}
			if tt.check == "" && failed != nil || tt.check != "" && !slices.Equal(failed, []string{tt.check}) {
				t.Errorf("%q failed, want %q:\n%s", failed, tt.check, got.out)
			}
			for _, want := range tt.says {
				if !strings.Contains(telling, want) {
					t.Errorf("no %q in\n%s", want, got.out)
				}
			}
			secretless(t, got.out)
			inJSON(t, run(t.Context(), p, "doctor", "--json"), tt.code, tt.check)
		})
	}
}

// inJSON: the same, for programs.
func inJSON(t *testing.T, got result, code int, check string) {
	t.Helper()
	secretless(t, got.out+got.err)
	var v diagnosis
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || got.code != code || v.OK != (code == 0) || v.App == "" || v.Platform == "" {
		t.Errorf("as JSON: code %d, %v:\n%s", got.code, err, got.out)
	}
	for _, c := range v.Checks {
		if c.Result == "FAIL" && c.Check != check || c.Text == "" || strings.Contains(c.Text+c.Advice, "\n") {
			t.Errorf("as JSON: %+v", c)
		}
	}
}

// secretless: neither a key, nor a signature, nor the header that gets tokens,
// nor a token, which begins like any JSON in base64.
func secretless(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{hiddenKey[:9], hiddenSignature, "DoNotTellThisIdentityHeader", "eyJ", azurite.Key[:20]} {
		if strings.Contains(text, secret) {
			t.Errorf("tells %q:\n%s", secret, text)
		}
	}
}

// All mistakes at once, and what can be looked at is.
func TestDoctorOfManyMistakes(t *testing.T) {
	environment(t, "SOLOIST_STORAGE=memory:", "SOLOIST_LEASE=3x", "SOLOIST_GRACE=-1s", "SOLOIST_LOG_LEVEL=loud", "SOLOIST_ADMIN_TOKEN="+hiddenSignature+" ")
	got := run(t.Context(), host.Program{Work: work()}, "doctor")
	for _, want := range []string{"SOLOIST_LEASE is \"3x\": want", "SOLOIST_GRACE is \"-1s\": want", "SOLOIST_LOG_LEVEL is \"loud\": want", "SOLOIST_ADMIN_TOKEN (not shown)", "ok    release"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in\n%s", want, got.out)
		}
	}
	if got.code != 2 || strings.Count(got.out, "FAIL") != 4 {
		t.Errorf("got %+v", got)
	}
	secretless(t, got.out)
}

// A service that takes the connection and says no more.
func TestDoctorOfSilence(t *testing.T) {
	inRealTime(t)
	environment(t, bySignature(served(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})), ""))
	got := run(t.Context(), host.Hurried(host.Program{Work: work()}, time.Second), "doctor")
	if got.code != 1 || !strings.Contains(got.out, "FAIL  service      no answer: no answer within 1s") {
		t.Errorf("got %+v", got)
	}
}

// A default in the place of a wrong setting is another place, whose state is no
// answer.
func TestDoctorTestsNoOtherPlace(t *testing.T) {
	for _, setting := range []string{"SOLOIST_CONTAINER=My_Container", "SOLOIST_APP=My App"} {
		t.Run(setting, func(t *testing.T) {
			var asked atomic.Int32
			url := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(http.StatusForbidden)
			}))
			environment(t, byKey(url), setting)
			got := run(t.Context(), host.Program{Work: work()}, "doctor")
			name, _, _ := strings.Cut(setting, "=")
			if got.code != 2 || asked.Load() != 0 || strings.Count(got.out, "FAIL") != 1 || !strings.Contains(got.out, "FAIL  settings     "+name+" is ") ||
				!strings.Contains(got.out, "\nskip  storage      "+name+" has to be right first") {
				t.Errorf("got %d requests and %+v", asked.Load(), got)
			}
		})
	}
}
