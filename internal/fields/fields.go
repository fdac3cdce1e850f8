// Package fields walks through the settings of a job, so that what holds for all of them, such as that a duration has a unit,
// needs no line for each of them.
package fields

import (
	"iter"
	"reflect"
	"time"
)

// Of yields the exported fields of a struct, or of one that is pointed to and whose fields may then be set. It goes into groups,
// which are fields that are structs; a time is none. The name of a field has that of its group: Late.Start.
func Of(of any) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		walk("", reflect.Indirect(reflect.ValueOf(of)), yield)
	}
}

// walk yields the fields of a struct, and reports whether more are wanted.
func walk(group string, of reflect.Value, yield func(string, reflect.Value) bool) bool {
	for field, v := range of.Fields() {
		name := group + field.Name
		switch {
		case !field.IsExported():
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			if !walk(name+".", v, yield) {
				return false
			}
		case !yield(name, v):
			return false
		}
	}
	return true
}
