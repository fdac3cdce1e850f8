package local_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
)

// Many machines that look at the lease of a dead one in turn find it free after
// its length.
func TestManyMachinesFreeLeaseOfDeadOne(t *testing.T) {
	base := local.Dir{Path: t.TempDir()}
	dead := &machine{wall: newMachine().wall, boot: time.Hour, start: "dead"}
	held(t, base.On(dead.tell), 10*time.Second)
	var all []*machine
	for i := range 64 {
		all = append(all, &machine{wall: dead.wall, boot: time.Duration(i+1) * time.Hour, start: fmt.Sprintf("m%d", i)})
	}
	live := true
	for range 12 {
		for _, m := range all {
			m.pass(time.Second)
			r, err := base.On(m.tell).Read(t.Context(), "app/job")
			if err != nil {
				t.Fatal(err)
			}
			live = r.State.Live()
		}
	}
	if live {
		t.Error("the lease of 10 s is not free after 12 s")
	}
}
