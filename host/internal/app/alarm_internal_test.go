package app

import (
	"strings"
	"testing"
)

// The default queue has a name that the service takes, also with what Functions adds to it, and no two apps have the same.
func TestQueueOfAnApp(t *testing.T) {
	seen := map[string]string{}
	for _, test := range []struct{ app, want string }{
		{"shop", "shop-alarm"},
		{"a", "a-alarm"},
		{"a--b", ""},
		{"a-b", "a-b-alarm"},
		{"a-", ""},
		{strings.Repeat("a", 50), strings.Repeat("a", 50) + "-alarm"},
		{strings.Repeat("a", 51), ""},
		{strings.Repeat("a", 63), ""},
		{"0" + strings.Repeat("-", 62), ""},
	} {
		got := queueOf(test.app)
		if !isContainer(got) || !isContainer(got+"-poison") || !strings.HasSuffix(got, "-alarm") || test.want != "" && got != test.want {
			t.Errorf("%s: got %q, want %q", test.app, got, test.want)
		}
		if other := seen[got]; other != "" {
			t.Errorf("%s and %s have the same queue %q", test.app, other, got)
		}
		seen[got] = test.app
	}
}
