package app

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/fields"
)

// The digest of a job has all that decides when a replica is wanted for it: by that, processes of two versions tell whose
// message they have found.
func TestDigestOfJobIsWhole(t *testing.T) {
	days := calendar.Weekends()
	says := map[string]any{"Schedule": "@hourly", "TimeZone": "Europe/Berlin", "Days.From": time.Now(), "Days.Until": time.Now(),
		"After.Jobs": []string{"import"}, "Days.Except": []soloist.Calendar{days}, "Days.Only": []soloist.Calendar{days}}
	job := soloist.Job{Name: "job", Schedule: "@daily"}
	for name, v := range fields.Of(&job) {
		was, before := reflect.ValueOf(v.Interface()), settingsOf(&job)
		switch value, ok := says[name]; {
		case name == "Name" || v.Kind() == reflect.Func: // the name is the key of the job, and functions cannot be compared
			continue
		case ok:
			v.Set(reflect.ValueOf(value))
		case v.CanInt():
			v.SetInt(int64(time.Minute))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.String:
			v.SetString("next")
		default:
			t.Errorf("no other value of %s is known to this test", name)
		}
		if settingsOf(&job) == before {
			t.Errorf("%s is not in the digest", name)
		}
		v.Set(was)
	}
}

// The secrets of the settings are known as such; what only looks like one, and a short one, is not.
func TestSecrets(t *testing.T) {
	for name, value := range map[string]string{
		"SOLOIST_STORAGE": "https://acct.blob.core.windows.net/?sv=2024&sig=signature%3D", "AzureWebJobsStorage": "AccountName=acct;AccountKey=YWNjb3VudA==;SharedAccessSignature=sv=2024&sig=other%2Bsig",
		"AzureWebJobsStorage__clientSecret": "client-secret", "AZURE_CLIENT_SECRET": "short", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=collector, x-tenant=demo",
	} {
		t.Setenv(name, value)
	}
	s := Settings{Storage: "https://acct.blob.core.windows.net/?sv=2024&sig=signature%3D", ReadToken: "read-token", AdminToken: "admin-token",
		AlertWebhook: "https://hooks.example/T0", AlertSecret: "alert-secret", App: "application"}
	got := s.Secrets(map[string]string{"job": "https://ping.example/uuid"})
	slices.Sort(got)
	want := []string{"YWNjb3VudA==", "admin-token", "alert-secret", "client-secret", "collector", "https://hooks.example/T0", "https://ping.example/uuid", "other%2Bsig", "read-token", "signature%3D"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
