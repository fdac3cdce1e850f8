package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A singleton waits at its stop for another replica if there is one, or nobody knows. One that is started just before
// the stop counts.
func TestLoneSingletonEndsAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		setting string
		others  int
		takes   time.Duration
	}{
		"alone":                      {"SOLOIST_PRESENCE=2m", 0, 0},
		"another one":                {"SOLOIST_PRESENCE=2m", 1, 11 * time.Second},
		"the replicas are not known": {"SOLOIST_PRESENCE=0", 0, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader := soloist.Singleton{Name: "leader", Lease: 30 * time.Second, Do: func(ctx context.Context, _ *soloist.Run) error {
					<-ctx.Done()
					return ctx.Err()
				}}
				p := host.Program{Work: []soloist.Work{leader}, Store: &local.Memory{}}
				stop := beginServing(t, p, test.setting, replicaName+"a")
				time.Sleep(time.Minute)
				for range test.others {
					defer beginServing(t, p, test.setting, replicaName+"b")()
					time.Sleep(3 * time.Second)
				}
				stopped := time.Now()
				stop()
				if took := time.Since(stopped).Truncate(time.Second); took != test.takes {
					t.Errorf("the stop took %s, want %s", took, test.takes)
				}
				if got := run(t.Context(), p, "history", "leader"); !strings.Contains(got.out, "abandoned") || !strings.Contains(got.out, "stopped") {
					t.Errorf("the history says %+v", got)
				}
			})
		})
	}
}
