package local

import (
	"strings"
	"testing"
)

func TestLeaseIDs(t *testing.T) {
	const good = "0123abcd-4567-89ab-cdef-0123456789ab"
	if err := checkID(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "me", good + "0", good[1:], strings.ToUpper(good), strings.ReplaceAll(good, "-", "0"),
		strings.Replace(good, "0", "g", 1), strings.Replace(good, "-", ":", 1), strings.Repeat("-", 36)} {
		if checkID(bad) == nil {
			t.Errorf("%q is a lease id", bad)
		}
	}
}
