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
		"Jobs": []string{"import"}, "Except": []soloist.Calendar{days}, "Only": []soloist.Calendar{days},
		"Missed": soloist.RunAll, "Overlap": soloist.QueueOne, "Interrupted": soloist.Rerun}
	for _, field := range wakingSettings(reflect.TypeFor[soloist.Job]()) {
		before := soloist.Job{Name: "job", Schedule: "@daily"}
		if field.Name == "Shift" {
			before.Days.Except = []soloist.Calendar{days}
		}
		after := before
		v := reflect.ValueOf(&after).Elem().FieldByIndex(field.Index)
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

// wakingSettings returns the fields of a struct that decide when a replica is wanted, those of its groups too.
func wakingSettings(of reflect.Type) (all []reflect.StructField) {
	wakesNobody := map[string]bool{"Name": true, "Do": true, "HealthCheck": true, "MaxCheckpoint": true} // the name is its key
	for field := range of.Fields() {
		switch {
		case wakesNobody[field.Name]:
		case field.Type.Kind() != reflect.Struct || field.Type == reflect.TypeFor[time.Time]():
			all = append(all, field)
		default:
			for _, inner := range wakingSettings(field.Type) {
				inner.Index = append(slices.Clone(field.Index), inner.Index...)
				all = append(all, inner)
			}
		}
	}
	return all
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
