// Package ahead has jobs claim their ticks ahead.
package ahead

import (
	"reflect"

	"github.com/soloist-go/soloist"
)

// Claim sets the field ClaimAhead of a job. A version that has no such field, which the bench may
// be compared with, claims at the tick.
func Claim(j *soloist.Job, ahead bool) {
	if f := reflect.ValueOf(j).Elem().FieldByName("ClaimAhead"); f.IsValid() {
		f.SetBool(ahead)
	}
}
