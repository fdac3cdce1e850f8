package entry

import (
	"regexp"
	"strings"
	"testing"
)

var stored = regexp.MustCompile(`^[a-z0-9-]{1,63}$`) // package store says so

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"tenant-42": "0-lock-tenant-42",
		"Tenant":    "0-lock---54enant",
		"a/b":       "0-lock-a--2fb",
		"a--b":      "0-lock-a--2d-b",
		"-":         "0-lock--",
		"ü":         "0-lock---c3--bc",
		"a-/":       "0-lock-a--2d--2f",
	} {
		got := OfSlot(Lock, 0, name)
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		if back, ok := Parse(got); !ok || back != (Name{Lock, 0, name}) {
			t.Errorf("%q: %s is read as %v, %t", name, got, back, ok)
		}
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"":                       "empty",
		"a\nb":                   "printable",
		"\xff":                   "printable",
		strings.Repeat("a", 300): "300 bytes",
		strings.Repeat("ü", 7):   "56 bytes",
	} {
		if err := Check(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if err := Check(strings.Repeat("a", MaxEscaped)); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"", "a\tb", strings.Repeat("x", MaxKey+1)} {
		if CheckKey(key) == nil {
			t.Errorf("the key %q is accepted", key)
		}
	}
	if err := CheckKey("sha256:" + strings.Repeat("0", 64)); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoName(t *testing.T) {
	for _, name := range []string{"", "0", "0-", "0-lock", "0-lock-", "x-lock-", "0-fish-a", "0-lock-a--", "0-lock-a--2", "0-lock---61", "0-lock-a---2d"} {
		if n, ok := Parse(name); ok && n.Kind != Job {
			t.Errorf("%q is read as %v", name, n)
		}
	}
	if n, ok := Parse("report"); !ok || n != (Name{Job, 0, "report"}) {
		t.Errorf("a job is read as %v, %t", n, ok)
	}
}

// Two names that became the same would be one lock, and one that the store refuses none.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"tenant-42", "a--b", "---", "-/-", "x--2d", "\x00"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, name string, slot int) {
		if slot < 0 || slot >= MaxSlots || Check(name) != nil {
			return
		}
		e := OfSlot(Group, slot, name)
		if back, ok := Parse(e); !stored.MatchString(e) || !ok || back != (Name{Group, slot, name}) {
			t.Fatalf("%q is stored as %q, and read as %v, %t", name, e, back, ok)
		}
		if e = OfKey(name, "v1"); CheckOnce(name) == nil && !stored.MatchString(e) {
			t.Fatalf("%q is stored as %q", name, e)
		}
	})
}
