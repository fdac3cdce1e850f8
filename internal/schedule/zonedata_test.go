package schedule_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

func TestZoneData(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }
	dir := t.TempDir()
	t.Setenv("ZONEINFO", dir)
	if got := schedule.ZoneData(at(2026)); got != "zone data of an unknown version, in "+dir {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tzdata.zi"), []byte("# version 2024b\n# more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for year, age := range map[int]string{2023: " of this year", 2024: " of this year", 2025: " of last year", 2026: ", 2 years old"} {
		if got := schedule.ZoneData(at(year)); got != "zone data 2024b"+age+", in "+dir {
			t.Errorf("%d: got %q", year, got)
		}
	}
	t.Setenv("ZONEINFO", filepath.Join(dir, "none"))
	if got := schedule.ZoneData(at(2026)); !strings.HasPrefix(got, "zone data ") || strings.Contains(got, dir) {
		t.Errorf("got %q", got)
	}
}
