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

// Names may be data of any length: an address, a path, a digest.
func TestLongNames(t *testing.T) {
	const mail, hash = "anna-maria.von-der-heydt-mueller@marketing.example.com", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for name, want := range map[string]string{
		mail:                      "0-lock-anna-maria--2evon-d--x",
		hash:                      "0-lock-9f86d081884c7d659a2--x",
		"a" + hash[1:]:            "0-lock-af86d081884c7d659a2--x",
		hash[:63] + "9":           "0-lock-9f86d081884c7d659a2--x",
		"/var/lib/a/b/c/d/e/f/g":  "0-lock---2fvar--2flib--2fa--x",
		strings.Repeat("ü", 200):  "0-lock---c3--bc--c3--bc--x",
		strings.Repeat("a--", 99): "0-lock-a--2d-a--2d-a--x",
	} {
		got := OfSlot(Lock, 0, name)
		if !strings.HasPrefix(got, want) || !stored.MatchString(OfSlot(Group, MaxSlots-1, name)) {
			t.Errorf("%q: %s, want %s and a digest", name, got, want)
		}
		if back, ok := Parse(got); !ok || back.Name != Shown(name) || back.Name == name || Check(name) != nil {
			t.Errorf("%q: %s is read as %v, %t", name, got, back, ok)
		}
	}
	if OfSlot(Lock, 0, hash) == OfSlot(Lock, 0, hash[:63]+"9") {
		t.Error("two names have one entry")
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"":                       "empty",
		"a\nb":                   "printable",
		"\xff":                   "printable",
		strings.Repeat("a", 513): "513 bytes: allowed are 512",
	} {
		if err := Check(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if err := Check(strings.Repeat("a", MaxName)); err != nil {
		t.Error(err)
	}
	if err := CheckOnce(strings.Repeat("ü", 5)); err == nil || !strings.Contains(err.Error(), "40 bytes") {
		t.Errorf("a long name of Once: %v", err)
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
	for _, name := range []string{"", "0", "0-", "0-lock", "0-lock-", "x-lock-", "0-fish-a", "0-lock-a--", "0-lock-a--2", "0-lock---61", "0-lock-a---2d", "0-lock-a--xb", "0-lock-a--x"} {
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
		if back, ok := Parse(e); !stored.MatchString(e) || !ok || back != (Name{Group, slot, Shown(name)}) || len(escape(name)) <= maxEscaped && back.Name != name {
			t.Fatalf("%q is stored as %q, and read as %v, %t", name, e, back, ok)
		}
		if e = OfKey(name, "v1"); CheckOnce(name) == nil && !stored.MatchString(e) {
			t.Fatalf("%q is stored as %q", name, e)
		}
	})
}
