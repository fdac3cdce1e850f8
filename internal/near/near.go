// Package near finds the known name that was meant by a mistyped one.
package near

import (
	"strings"

	"github.com/agext/levenshtein"
)

// maxSlips is how many characters of a long name may be wrong. Of a short name
// it is a third: otherwise any short name would be near to any other.
const maxSlips = 3

// Name returns the known name that is nearest to the given one, whatever the
// case of its letters. It is empty if none is near.
func Name(given string, known []string) (near string) {
	given = strings.ToLower(given)
	least := 1 + min(maxSlips, (len(given)+2)/3)
	for _, name := range known {
		if d := levenshtein.Distance(given, strings.ToLower(name), nil); d < least {
			least, near = d, name
		}
	}
	return near
}
