package host_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host"
)

// Nothing is left behind, and jobs' entries are as they were.
func TestDoctorLeavesNothing(t *testing.T) {
	s := withContainer(t, nil)
	environment(t, byKey(served(t, s)))
	p := host.Program{Work: work()}
	if got := run(t.Context(), p, "tick"); got.code != 0 {
		t.Fatal(got)
	}
	made := len(s.Log())
	if got := run(t.Context(), p, "doctor"); got.code != 0 || strings.Count(got.out, "ok    record ") != 3 {
		t.Fatalf("got %+v", got)
	}
	deleted := false
	for _, op := range s.Log()[made:] {
		reads := op.Op == "head" || op.Op == "get" && (op.Blob == "soloist/demo/.control" || op.Blob == "soloist/demo/.replicas")
		if scratch := strings.HasPrefix(op.Blob, "soloist/demo/.doctor-"); !scratch && !reads && op.Op != "unknown" {
			t.Errorf("%s of %s", op.Op, op.Blob)
		} else if scratch && op.Op == "delete" {
			deleted = op.Status == http.StatusAccepted
		}
	}
	if !deleted {
		t.Error("the scratch blob is left")
	}
}

// In a directory, which cannot delete, one entry serves each call.
func TestDoctorOfDirectory(t *testing.T) {
	dir := t.TempDir()
	environment(t, "SOLOIST_STORAGE=dir:"+dir)
	for range 3 {
		if got := run(t.Context(), host.Program{Work: work()}, "doctor"); got.code != 0 {
			t.Errorf("got %+v", got)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "demo", "*"))
	if err != nil || len(files) > 2 {
		t.Errorf("%q are left: %v", files, err)
	}
}
