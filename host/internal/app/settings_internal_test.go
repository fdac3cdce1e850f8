package app

import (
	"reflect"
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
