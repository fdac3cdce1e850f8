package replica

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func at(seconds int) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds) * time.Second)
}

func TestLogIsReadAsItWasWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	lines := []Line{{Start, at(1), at(0), "job-0", "a", 7}, {End, at(2), at(0), "job-0", "b", 8}}
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if err := log.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil || !slices.EqualFunc(got, lines, func(a, b Line) bool { return a.String() == b.String() }) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "start", "start now 0 job a 7"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestTicks(t *testing.T) {
	j := Job{Every: 20 * time.Second, At: 3 * time.Second}
	for now, want := range map[time.Time]time.Time{
		at(3): at(3), at(3).Add(-time.Millisecond): at(3), at(3).Add(-time.Second): at(-17), at(22): at(3), at(23).Add(time.Millisecond): at(23),
	} {
		if got := j.Tick(now); !got.Equal(want) {
			t.Errorf("the tick at %s: got %s, want %s", now, got, want)
		}
	}
	if got := j.Next(at(3)); !got.Equal(at(23)) {
		t.Errorf("got %s after a tick", got)
	}
	if got := j.Cron(); got != "3-59/20 * * * * *" {
		t.Errorf("got %s", got)
	}
}
