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

func TestSlip(t *testing.T) {
	zones := []string{"Asia/Dili", "Europe/Berlin", "America/New_York"}
	for given, want := range map[string]string{
		"europe/berlin": "Europe/Berlin", "Europe/Berln": "Europe/Berlin", "Europe/Berlinn": "Europe/Berlin", "Europe/Derlin": "Europe/Berlin",
		"America/New_Yrok": "America/New_York", "America/New_Yrko": "", "Asia/Delhi": "", "Asia/Ildi": "", "": "", "Asia/Dil": "Asia/Dili",
	} {
		if got := near.Slip(given, zones); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}
