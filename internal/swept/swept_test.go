package swept_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/swept"
	"github.com/soloist-go/soloist/store"
)

var (
	noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	lock = entry.OfSlot(entry.Lock, 0, "old")
)

// What was seen of a lock or a slot before the latest time of a sweep counts as never seen. A sweep removes no job and no Once,
// so what was seen of them counts.
func TestWhatIsForgotten(t *testing.T) {
	for name, tt := range map[string]struct {
		noted []time.Duration // after noon
		entry string
		seen  time.Duration
		want  bool
	}{
		"seen before a sweep":                    {[]time.Duration{0}, lock, -1, true},
		"a slot of a group":                      {[]time.Duration{0}, entry.OfSlot(entry.Group, 3, "imports"), -1, true},
		"seen since":                             {[]time.Duration{0}, lock, 0, false},
		"before the second sweep":                {[]time.Duration{0, time.Hour}, lock, time.Minute, true},
		"before the first, whose note came last": {[]time.Duration{time.Hour, 0}, lock, time.Minute, true},
		"no sweep":                               {nil, lock, -1, false},
		"a job":                                  {[]time.Duration{0}, "old", -1, false},
		"done once":                              {[]time.Duration{0}, entry.OfKey("old", "v1"), -1, false},
	} {
		var s local.Memory
		for _, at := range tt.noted {
			if err := swept.Note(t.Context(), &s, "app", noon.Add(at)); err != nil {
				t.Fatal(err)
			}
		}
		if got := swept.Forgets(t.Context(), &s, "app", tt.entry, noon.Add(tt.seen)); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A note that is garbage says nothing, and the next sweep replaces it. A store without documents has none.
func TestNoteThatCannotBeRead(t *testing.T) {
	var s local.Memory
	if _, err := s.WriteDocument(t.Context(), "app/.swept", "", []byte("{")); err != nil {
		t.Fatal(err)
	}
	if swept.Forgets(t.Context(), &s, "app", lock, noon) {
		t.Error("garbage says that a sweep was later")
	}
	if err := swept.Note(t.Context(), &s, "app", noon); err != nil || !swept.Forgets(t.Context(), &s, "app", lock, noon.Add(-1)) {
		t.Errorf("garbage stays: %v", err)
	}
	bare := struct{ store.Store }{&s}
	if err := swept.Note(t.Context(), bare, "app", noon); err != nil || swept.Forgets(t.Context(), bare, "app", lock, noon.Add(-1)) {
		t.Errorf("a store without documents: %v", err)
	}
}
