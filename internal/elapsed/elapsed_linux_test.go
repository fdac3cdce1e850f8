package elapsed

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestShift(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0,
		"monotonic           0         0\nboottime            0         0\n": 0,
		"monotonic           7         0\nboottime       100000         5\n": 100_000*time.Second + 5,
		"monotonic           0         0\nboottime           -1 500000000\n": -time.Second / 2,
	} {
		if got, ok := shift(text); got != want || !ok {
			t.Errorf("%q: got %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"monotonic 0 0\n", "boottime", "boottime x 0", "7"} {
		if got, ok := shift(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// A suspension counts from the first reading on. In a time namespace that reading
// may be far below zero, or far above.
func TestASuspensionCountsFromTheFirstReading(t *testing.T) {
	for _, first := range []time.Duration{-10 * time.Hour, 0, 10 * time.Hour} {
		var g growth
		for _, want := range []time.Duration{0, time.Minute, time.Hour} {
			if got := g.since(first + want); got != want {
				t.Errorf("first %v, suspended for %v: got %v", first, want, got)
			}
		}
	}
}

// A look at the kernel's clocks serves for a moment, unless the wall clock has moved: it does
// that by the time of a suspension.
func TestLookServesForAMoment(t *testing.T) {
	var none *look
	l := &look{apart: time.Hour, at: time.Minute}
	for _, c := range []struct {
		of        *look
		apart, at time.Duration
		want      bool
	}{
		{none, 0, 0, false},
		{l, time.Hour, time.Minute, true},
		{l, time.Hour + 50*time.Microsecond, time.Minute + lookAgain/2, true},
		{l, time.Hour, time.Minute + lookAgain, false},
		{l, time.Hour + time.Millisecond, time.Minute + 1, false}, // suspended for a millisecond
		{l, 0, time.Minute + 1, false},                            // the clock was put back
		{l, time.Hour, time.Minute - 1, false},                    // of another bubble of virtual time
	} {
		if got := c.of.serves(c.apart, c.at); got != c.want {
			t.Errorf("%+v serves %s, %s: got %t, want %t", c.of, c.apart, c.at, got, c.want)
		}
	}
}

// Two processes of one machine read one clock, even from two time namespaces.
func TestBootInATimeNamespace(t *testing.T) {
	const variable = "ELAPSED_TEST_BOOT"
	if os.Getenv(variable) != "" {
		now, id := Boot()
		fmt.Println("boot", int64(now), id)
		return
	}
	before, want := Boot()
	if want == "" {
		t.Skip("the system tells no start")
	}
	cmd := exec.Command("unshare", "--time", "--boottime", "100000", "--fork", os.Args[0], "-test.run=^TestBootInATimeNamespace$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("no time namespace to be had: %v: %s", err, out)
	}
	after, _ := Boot()
	_, line, _ := strings.Cut(string(out), "boot ")
	var now int64
	var id string
	if _, err := fmt.Sscanf(line, "%d %s", &now, &id); err != nil {
		t.Fatalf("it said %q: %v", out, err)
	}
	if got := time.Duration(now); got < before || got > after || id != want {
		t.Errorf("got %v of %q, want %v to %v of %q", got, id, before, after, want)
	}
}
