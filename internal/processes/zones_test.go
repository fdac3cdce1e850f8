//go:build unix

package processes

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// rulesOf returns the rules of a zone, in the format of RFC 8536, which is east of UTC by so many seconds for ever.
func rulesOf(east int32) []byte {
	b := bytes.NewBufferString("TZif")
	b.Write(make([]byte, 16))                                // version 1
	binary.Write(b, binary.BigEndian, [6]uint32{4: 1, 5: 4}) // one offset, and the four bytes of its name
	binary.Write(b, binary.BigEndian, east)
	b.WriteString("\x00\x00CET\x00")
	return b.Bytes()
}

// Two databases of time zones in one cluster. The replicas that began first say within a minute of the change that the rules
// differ, and leave the job to the one that began last. No tick is run twice, and the ticks of both do not mix.
func TestOtherRulesUnderOneZone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schedule string
		east     int32
	}{
		"a second east of it": {"*/2 * * * * *", 3601}, // each names ticks that the other one does not
		"without summer time": {"0 0 1 1 *", 3600},     // none is near
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frequent := test.east%2 == 1
			if !frequent { // the others look once a minute
				furtherCase(t)
			}
			f := newFleet(t, order{Schedule: test.schedule, Zone: "Europe/Berlin", Takes: 50 * time.Millisecond})
			for _, name := range []string{"a", "b"} {
				f.start(name, 0)
				f.have(name, func(e event) bool { return e.Replica == name && e.What == "ready" })
			}
			proctest.Poll(t, "the record", patience, func() bool {
				_, err := f.storage.Store.Read(t.Context(), "e2e/work")
				return err == nil
			})
			proctest.Pause(t.Context(), 2*time.Second) // the clock of the storage shows seconds
			if frequent {
				f.await("a run", started(""))
			}
			f.useRules(test.east)
			f.start("young", 0)
			begin := f.have("the change", logged("young", "the schedule has changed")).At
			for _, name := range []string{"a", "b"} {
				e := f.have("word of other rules", logged(name, "the same text, but the rules of the time zone differ"))
				took := e.At.Sub(begin)
				t.Logf("%s said so after %s", name, ms(took))
				if took > limit(time.Minute) {
					t.Errorf("%s said so after %s", name, took)
				}
			}
			if frequent {
				proctest.Poll(t, "runs by the other rules", patience, func() bool { return f.runsOf("young") > 4 })
				f.checkRules()
			}
		})
	}
}

// useRules gives the replicas that are started from now on other rules of the zone.
func (f *fleet) useRules(east int32) {
	f.t.Helper()
	zones := f.t.TempDir()
	file := filepath.Join(zones, "Europe", "Berlin")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(file, rulesOf(east), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.Env = append(f.Env, "ZONEINFO="+zones)
}

func (f *fleet) runsOf(name string) (n int) {
	for _, e := range f.Events() {
		if started(name)(e) {
			n++
		}
	}
	return n
}

// checkRules checks that each replica ran ticks of its own rules, all of the young one after all of the others, and each
// once.
func (f *fleet) checkRules() {
	f.t.Helper()
	var last, first time.Time // of the old rules, of the other ones
	for _, e := range f.Events() {
		if e.What != "start" {
			continue
		}
		if odd := e.Tick.Second()%2 == 1; odd != (e.Replica == "young") {
			f.t.Errorf("%s ran the tick %s", e.Replica, e.Tick)
		} else if odd && (first.IsZero() || e.Tick.Before(first)) {
			first = e.Tick
		} else if !odd && e.Tick.After(last) {
			last = e.Tick
		}
	}
	if !last.Before(first) {
		f.t.Errorf("the tick %s of the first rules is not before %s, the first one of the other rules", last, first)
	}
	for at, n := range f.ticks() {
		if n > 1 {
			f.t.Errorf("tick %s ran %d times", time.Unix(0, at.at).UTC(), n)
		}
	}
}
