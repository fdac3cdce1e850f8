package store

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Each instant of a record is checked: one beyond the year 9999 in UTC can be
// read in another zone and written in no answer.
func TestARecordOfTheYear10000IsRefused(t *testing.T) {
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	r := sample()
	fields := instantsIn(reflect.ValueOf(&r).Elem())
	if len(fields) < 14 {
		t.Fatalf("got %d instants, want all", len(fields))
	}
	for i, field := range fields {
		old := field.Interface().(time.Time)
		field.Set(reflect.ValueOf(far))
		if err := r.check(schema, "app", "job"); err == nil || !strings.Contains(err.Error(), "want the years 1 to 9999") {
			t.Errorf("instant %d: got %v, want a refusal", i, err)
		}
		field.Set(reflect.ValueOf(old))
	}
	if err := r.check(schema, "app", "job"); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// instantsIn finds the instants in v.
func instantsIn(v reflect.Value) (all []reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		return []reflect.Value{v}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			all = append(all, instantsIn(v.Index(i))...)
		}
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			all = append(all, instantsIn(field)...)
		}
	}
	return all
}
