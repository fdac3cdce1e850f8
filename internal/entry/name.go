// Package entry names the entries of an app that belong to no job: "<number>-<kind>-<rest>". The name
// of a job begins with a letter, so none of them is a job's.
//
// The names of locks are data, such as "tenant-42" or "Kunde/Müller", and a store takes lower-case
// letters, digits and hyphens. So a name is escaped: lower-case letters, digits and single hyphens
// stand for themselves, and every other byte becomes "--" and two hexadecimal digits. A hyphen before
// such a byte, or before another hyphen, is escaped too. A name that is too long for a store becomes its beginning, "--x" and
// a digest of the whole, as no other escaped name has an "x" there. No two names become the same.
package entry

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is what an entry is for.
type Kind string

const (
	Job    Kind = "job"    // a job or a singleton: the entry has its name
	Lock   Kind = "lock"   // a slot of a lock
	Group  Kind = "group"  // a slot of a group of jobs
	Once   Kind = "once"   // what is done once for a key
	Member Kind = "member" // a replica that is up
)

// How long a name may be, in bytes: that of a lock or a group, and that of Once once it is escaped.
const (
	MaxName = 512
	MaxOnce = 32
)

// How long an escaped name of a lock or a group is at most, and its beginning where it is cut.
const (
	maxEscaped = 48
	maxHead    = maxEscaped - len(cutMark) - cutDigest
)

// What is between the beginning and the digest of a name that is cut, and how many characters of five bits each the digest has.
const (
	cutMark   = "--x"
	cutDigest = 26
)

// MaxSlots is how many slots a lock or a group may have.
const MaxSlots = 100

// MaxKey is how long a key of Once may be, in bytes.
const MaxKey = 200

// OfSlot returns the name of the entry of one slot of a lock or a group.
func OfSlot(kind Kind, slot int, name string) string {
	return strconv.Itoa(slot) + "-" + string(kind) + "-" + fit(name)
}

// fit escapes the name of a lock or a group, and cuts it if it is too long.
func fit(name string) string {
	whole := escape(name)
	if len(whole) <= maxEscaped {
		return whole
	}
	cut := 0
	for i, c := range name {
		if len(escape(name[:i])) > maxHead {
			break
		}
		if c != '-' {
			cut = i
		}
	}
	return escape(strings.TrimRight(name[:cut], "-")) + cutMark + digest(name, cutDigest)
}

func digest(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:length]
}

// OfKey returns the name of the entry for one key of Once. The number is always zero. The key is a
// digest in it, since a key may be long.
func OfKey(name, key string) string {
	return "0-" + string(Once) + "-" + escape(name) + "-" + digest(key, digestLen)
}

// digestLen is how many characters of a digest a name has, of five bits each.
const digestLen = 20

// A Name is an entry's name, taken apart.
type Name struct {
	Kind   Kind
	Number int    // of the slot; zero for a job
	Name   string // of the job, lock, group or Once, not escaped, see Shown; of Member: what the entry's name has
}

// Parse takes the name of an entry apart. It returns false if nothing here has made it.
func Parse(name string) (n Name, ok bool) {
	if name == "" || name[0] < '0' || name[0] > '9' {
		return Name{Kind: Job, Name: name}, name != ""
	}
	number, rest, _ := strings.Cut(name, "-")
	kind, rest, _ := strings.Cut(rest, "-")
	n = Name{Kind: Kind(kind), Name: rest}
	var err error
	if n.Number, err = strconv.Atoi(number); err != nil || rest == "" {
		return Name{}, false
	}
	switch n.Kind {
	case Lock, Group:
		n.Name, ok = shown(rest)
		return n, ok
	case Once:
		cut := len(rest) - digestLen - 1
		if cut < 1 || rest[cut] != '-' {
			return Name{}, false
		}
		n.Name, ok = unescape(rest[:cut])
		return n, ok
	case Member:
		return n, true
	}
	return Name{}, false
}

// Shown returns what [Parse] has of the name of a lock or a group: all of it, or its beginning and a digest.
func Shown(name string) string {
	text, _ := shown(fit(name))
	return text
}

func shown(fitted string) (string, bool) {
	head, sum, cut := strings.Cut(fitted, cutMark)
	text, ok := unescape(head)
	if !cut {
		return text, ok
	}
	return text + "..." + sum, ok && len(sum) == cutDigest && strings.Trim(sum, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Check returns what is wrong with the name of a lock or a group, nil if nothing is.
func Check(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("it has %d bytes: allowed are %d", len(name), MaxName)
	}
	return check(name, MaxName)
}

// CheckOnce returns what is wrong with the name of a Once, nil if nothing is.
func CheckOnce(name string) error {
	const counted = "lower-case letters, digits and single hyphens count as one, other bytes as four"
	if n := len(escape(name)); n > MaxOnce {
		return fmt.Errorf("it has %d bytes where %s: allowed are %d", n, counted, MaxOnce)
	}
	return check(name, MaxOnce)
}

func check(name string, longest int) error {
	switch {
	case name == "":
		return fmt.Errorf("it is empty: allowed is text of up to %d bytes", longest)
	case !printable(name):
		return fmt.Errorf("it is not printable: allowed is text of up to %d bytes", longest)
	}
	return nil
}

// CheckKey returns what is wrong with the key of Once, nil if nothing is.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("it is empty: allowed is text of 1 to %d bytes, such as the version of a build", MaxKey)
	case !printable(key), len(key) > MaxKey:
		return fmt.Errorf("it has %d bytes, or is not printable: allowed is text of 1 to %d bytes", len(key), MaxKey)
	}
	return nil
}

// printable reports whether people can read s.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// plain reports whether a byte stands for itself.
func plain(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		single := c == '-' && (i+1 == len(name) || plain(name[i+1]))
		if plain(c) || single {
			b.WriteByte(c)
		} else {
			b.WriteString("--" + hex.EncodeToString([]byte{c}))
		}
	}
	return b.String()
}

// unescape undoes escape. It returns false for what escape does not return.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for rest := s; rest != ""; {
		if code, found := strings.CutPrefix(rest, "--"); found {
			if len(code) < 2 {
				return "", false
			}
			c, err := hex.DecodeString(code[:2])
			if err != nil {
				return "", false
			}
			b.Write(c)
			rest = code[2:]
			continue
		}
		b.WriteByte(rest[0])
		rest = rest[1:]
	}
	name := b.String()
	return name, escape(name) == s
}
