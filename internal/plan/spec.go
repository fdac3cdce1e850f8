package plan

import "strings"

// The hash of a definition has up to three parts: the hash of the texts, which every replica can read, and the sums of what
// replicas may have under the same names: the rules of the time zone, and the days of the calendars. So two replicas
// that differ can say in what.
const (
	zonePart = ".z"
	daysPart = ".d"
)

// SpecWith returns the hash of a definition from its parts. An empty sum is left out: without one the hash is
// the hash of the texts alone.
func SpecWith(texts, zone, days string) string {
	if zone != "" {
		texts += zonePart + zone
	}
	if days != "" {
		texts += daysPart + days
	}
	return texts
}

// parts returns the parts of a hash.
func parts(spec string) (texts, zone, days string) {
	spec, days, _ = strings.Cut(spec, daysPart)
	texts, zone, _ = strings.Cut(spec, zonePart)
	return texts, zone, days
}

// Difference says what two hashes of one job differ in, if the texts are the same: empty, they are not, or nothing differs.
func Difference(a, b string) string {
	textsA, zoneA, daysA := parts(a)
	textsB, zoneB, daysB := parts(b)
	switch {
	case textsA != textsB:
		return ""
	case zoneA != zoneB && daysA != daysB:
		return "the rules of the time zone and the days of the calendars"
	case zoneA != zoneB:
		return "the rules of the time zone"
	case daysA != daysB:
		return "the days of the calendars"
	}
	return ""
}
