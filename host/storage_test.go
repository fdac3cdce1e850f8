package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
)

// A job may change the working directory of the process. The store has to stay
// the one that the other replicas use, or each of them runs the tick.
func TestChdirLeavesStoreWhereItIs(t *testing.T) {
	for setting, dir := range map[string]string{"": ".soloist", "dir:records": "records"} {
		environment(t, "SOLOIST_STORAGE="+setting)
		home, elsewhere := t.TempDir(), t.TempDir()
		t.Chdir(home)
		s := open(t, host.Program{Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}})
		t.Chdir(elsewhere)
		s.tick()
		s.wait()
		if all, err := os.ReadDir(elsewhere); err != nil || len(all) > 0 {
			t.Errorf("%q: the new working directory has %v, %v, want nothing", setting, all, err)
		}
		if _, err := os.Stat(filepath.Join(home, dir, "demo", "beat.d")); err != nil {
			t.Errorf("%q: the first working directory has no entry: %v", setting, err)
		}
	}
}
