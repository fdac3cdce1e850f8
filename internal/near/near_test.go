package near_test

import (
	"testing"

	"github.com/soloist-go/soloist/internal/near"
)

func TestName(t *testing.T) {
	commands := []string{"serve", "tick", "status", "history", "next", "unlock"}
	for given, want := range map[string]string{
		"stauts": "status", "STATUS": "status", "statu": "status", "tck": "tick", "hsitory": "history", "nxet": "next",
		"bogus": "", "": "", "x": "", "run": "", "remove": "", "état": "",
	} {
		if got := near.Name(given, commands); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
	if got := near.Name("status", nil); got != "" {
		t.Errorf("of none: got %q", got)
	}
}
