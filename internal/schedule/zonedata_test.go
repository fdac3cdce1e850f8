package schedule_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/schedule"
)

func TestZoneData(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ZONEINFO", dir)
	if got := schedule.ZoneData(); got != "zone data of an unknown version of "+dir {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tzdata.zi"), []byte("# version 2026a\n# more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := schedule.ZoneData(); got != "zone data 2026a of "+dir {
		t.Errorf("got %q", got)
	}
	t.Setenv("ZONEINFO", filepath.Join(dir, "none"))
	if got := schedule.ZoneData(); !strings.HasPrefix(got, "zone data ") || strings.Contains(got, dir) {
		t.Errorf("got %q", got)
	}
}
