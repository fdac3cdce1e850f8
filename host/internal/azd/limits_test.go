package azd_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// The platform ends an execution two minutes after the program has ended its pass by itself, and not while it writes outcomes.
func TestPlatformLeavesTimeAfterPass(t *testing.T) {
	t.Parallel()
	files := shipped(t)
	number := func(pattern, text string) int {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in %s", pattern, text)
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	for _, name := range []string{"job", "job-alarm", "job-daily"} {
		text := files["deploy/"+name+".yaml"]
		pass := number(`SOLOIST_TICK_TIMEOUT\n +value: (\d+)s\n`, text)
		if got := number(`replicaTimeout: (\d+)\n`, text); got != pass+120 {
			t.Errorf("%s: replicaTimeout is %d, want two minutes more than %d", name, got, pass)
		}
	}
	written := filesOf(t, program(azd.Job))
	bicep := string(written["infra/jobs.bicep"])
	for text, n := range map[string]int{"value: '${tickTimeout}s'\n": 1, "var replicaTimeout = tickTimeout + 120\n": 1, "replicaTimeout: replicaTimeout\n": 2} {
		if strings.Count(bicep, text) != n {
			t.Errorf("jobs.bicep does not say %q %d times", text, n)
		}
	}
	if !strings.Contains(string(written["infra/jobs.parameters.json"]), `"tickTimeout": {"value": 1800}`) {
		t.Errorf("got %s", written["infra/jobs.parameters.json"])
	}
}
