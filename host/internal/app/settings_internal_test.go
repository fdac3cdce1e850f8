package app

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
)

// The digest of a job has all that decides when a replica is wanted for it: by that, processes of two versions tell whose
// message they have found.
func TestDigestOfJobIsWhole(t *testing.T) {
	days := calendar.Weekends()
	says := map[string]any{"Schedule": "@hourly", "TimeZone": "Europe/Berlin", "From": time.Now(), "Until": time.Now(), "Shift": soloist.ShiftNext,
		"After": "import", "AfterAny": true, "Except": []soloist.Calendar{days}, "Only": []soloist.Calendar{days},
		"Retry": soloist.Retry{MaxTries: 3}, "Missed": soloist.RunAll, "Overlap": soloist.QueueOne, "Interrupted": soloist.Rerun}
	wakesNobody := map[string]bool{"Name": true, "Do": true, "HealthCheck": true, "MaxCheckpoint": true} // the name is its key
	for i, typ := 0, reflect.TypeFor[soloist.Job](); i < typ.NumField(); i++ {
		field := typ.Field(i)
		if wakesNobody[field.Name] {
			continue
		}
		before := soloist.Job{Name: "job", Schedule: "@daily"}
		if field.Name == "Shift" {
			before.Except = []soloist.Calendar{days}
		}
		after := before
		v := reflect.ValueOf(&after).Elem().Field(i)
		switch value, ok := says[field.Name]; {
		case ok:
			v.Set(reflect.ValueOf(value))
		case field.Type == reflect.TypeFor[time.Duration]():
			v.SetInt(int64(time.Minute))
		case field.Type.Kind() == reflect.Int:
			v.SetInt(2)
		case field.Type.Kind() == reflect.Bool:
			v.SetBool(true)
		case field.Type.Kind() == reflect.String:
			v.SetString("other")
		default:
			t.Errorf("no other value of %s is known to this test", field.Name)
		}
		if settingsOf(&before) == settingsOf(&after) {
			t.Errorf("%s is not in the digest", field.Name)
		}
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
