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

// Slip returns the known name from which the given one differs by one letter, or by two letters that have changed places. It is
// for names that are near to each other and mean something else.
func Slip(given string, known []string) string {
	given = strings.ToLower(given)
	for _, name := range known {
		low := strings.ToLower(name)
		switch levenshtein.Distance(given, low, nil) {
		case 0, 1:
			return name
		case 2:
			if swapped(given, low) {
				return name
			}
		}
	}
	return ""
}

// swapped reports whether two letters of a that follow each other have changed places in b.
func swapped(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+2 <= len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
