package plan_test

import (
	"testing"

	"github.com/soloist-go/soloist/internal/plan"
)

func TestDifference(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{plan.SpecWith("1a", "", ""), plan.SpecWith("1a", "", ""), ""},
		{plan.SpecWith("1a", "2b", "3c"), plan.SpecWith("1a", "2b", "3c"), ""},
		{plan.SpecWith("1a", "2b", "3c"), plan.SpecWith("1d", "2e", "3f"), ""}, // nothing is known of the sums of other texts
		{plan.SpecWith("1a", "2b", "3c"), plan.SpecWith("1a", "2d", "3c"), "the rules of the time zone"},
		{plan.SpecWith("1a", "2b", ""), plan.SpecWith("1a", "", ""), "the rules of the time zone"},
		{plan.SpecWith("1a", "2b", "3c"), plan.SpecWith("1a", "2b", "3d"), "the days of the calendars"},
		{plan.SpecWith("1a", "", "3c"), plan.SpecWith("1a", "", "3d"), "the days of the calendars"},
		{plan.SpecWith("1a", "2b", "3c"), plan.SpecWith("1a", "2d", "3d"), "the rules of the time zone and the days of the calendars"},
	} {
		if got := plan.Difference(tt.a, tt.b); got != tt.want || plan.Difference(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
	if got := plan.SpecWith("1a", "", ""); got != "1a" {
		t.Errorf("without sums: got %q", got)
	}
}
