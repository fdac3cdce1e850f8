package before

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// What a program gives is copied field by field: none may be forgotten.
func TestAllFieldsAreCopied(t *testing.T) {
	given := &soloist.Once{Name: "migrate", Key: "v2", Do: func(context.Context, *soloist.Run) error { return nil },
		Retry: soloist.Retry{MaxTries: 3, Backoff: time.Minute}, Store: &local.Memory{}, App: "other", Lease: 20 * time.Second,
		Replica: "r1", Logger: slog.New(slog.DiscardHandler), Overrun: func(string, error) {}}
	b, err := New(Config{Given: []*soloist.Once{given}, Log: slog.Default(), Scheduler: &soloist.Scheduler{Store: &local.Memory{}}})
	if err != nil {
		t.Fatal(err)
	}
	from, to := reflect.ValueOf(given).Elem(), reflect.ValueOf(b.all[0]).Elem()
	for i := range from.NumField() {
		f := from.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		switch {
		case from.Field(i).IsZero():
			t.Errorf("%s: the test gives it no value", f.Name)
		case f.Type.Kind() == reflect.Func && to.Field(i).IsNil(), f.Type.Kind() != reflect.Func && !reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()):
			t.Errorf("%s is not copied", f.Name)
		}
	}
}

// What names no lease has that of the settings, and what has no key that of the build.
func TestDefaults(t *testing.T) {
	given := []*soloist.Once{{Name: "migrate"}, {Name: "migrate", Key: "v3", Lease: time.Minute}}
	b, _ := New(Config{Given: given, Log: slog.Default(), Lease: 20 * time.Second, Version: "v2", Scheduler: &soloist.Scheduler{Store: &local.Memory{}}})
	if first, second := b.all[0], b.all[1]; first.Lease != 20*time.Second || first.Key != "v2" || second.Lease != time.Minute || second.Key != "v3" {
		t.Errorf("got the leases %s and %s, the keys %s and %s", first.Lease, second.Lease, first.Key, second.Key)
	}
}
