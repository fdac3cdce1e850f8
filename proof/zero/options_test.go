//go:build linux

package main

import (
	"io"
	"strings"
	"testing"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", ""},
		{"-pace,60", ""},
		{"-pace,61", "-pace 61"},
		{"-pace,0", "-pace 0"},
		{"-for,1m,-pace,60", "-for 1m0s"},
		{"-stay,0s", ""},
		{"-stay,-1s", "-stay"},
		{"-cooldown,0s", "-cooldown"},
		{"-schedule,soon", "-schedule of job-1"},
		{"-pace,60,-schedule,@every 90s", "-schedule of job-1"}, // 1.5 s
		{"more", `unexpected argument "more"`},
	} {
		_, err := parse(strings.FieldsFunc(test.args, func(r rune) bool { return r == ',' }), io.Discard)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.args, err, test.want)
		}
	}
}
