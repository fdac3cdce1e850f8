package schedule

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/near"
)

//go:embed zones.txt
var zoneText string

//go:embed windows.txt
var windowsText string

// names are what zones are called.
type names struct {
	all     []string          // the IANA names: first those that Windows has a name for, then other places
	windows map[string]string // IANA names by Windows names, in small letters
}

var zoneNames = sync.OnceValue(func() names {
	n := names{windows: map[string]string{}}
	for line := range strings.Lines(windowsText) {
		if name, zone, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			n.windows[strings.ToLower(name)] = zone
			n.all = append(n.all, zone)
		}
	}
	for _, places := range []bool{true, false} {
		for zone := range strings.FieldsSeq(zoneText) {
			if isPlace(zone) == places && !slices.Contains(n.all, zone) {
				n.all = append(n.all, zone)
			}
		}
	}
	return n
})

func isPlace(zone string) bool {
	return strings.Contains(zone, "/") && !strings.HasPrefix(zone, "Etc/")
}

const maxMeant = 4 // zones that are advised

// meantZone completes the error of a name that is no zone: those that it may mean, which keep its time. Only a slip of the pen
// is judged by its letters, and not in a short name, where other letters are another time.
func meantZone(name string) string {
	n, key := zoneNames(), strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "_")
	for _, guess := range []func(names, string) []string{names.called, names.ofWindows, names.offset, names.shown, names.slip} {
		if zones := distinct(guess(n, key)); len(zones) > 0 {
			return "; did you mean " + joinBy(" or ", zones) + "?"
		}
	}
	return ""
}

// called are the zones of that name or city.
func (n names) called(key string) (zones []string) {
	if key == "z" {
		return []string{"UTC"}
	}
	for _, zone := range n.all {
		if _, city, _ := strings.Cut(zone, "/"); strings.EqualFold(zone, key) || isPlace(zone) && strings.EqualFold(city, key) {
			zones = append(zones, zone)
		}
	}
	return zones
}

func (n names) ofWindows(key string) []string {
	if zone := n.windows[strings.ReplaceAll(key, "_", " ")]; zone != "" {
		return []string{zone}
	}
	return nil
}

var offsetText = regexp.MustCompile(`^(?:etc/)?(?:utc|gmt)?([+-])(\d{1,2})(?::?(\d{2}))?$`)

// offset are the zones that always keep an offset as in UTC+3 or -08:00. The sign in Etc/GMT-3 is the other way round.
func (n names) offset(key string) (zones []string) {
	part := offsetText.FindStringSubmatch(strings.ReplaceAll(key, "_", ""))
	if part == nil {
		return nil
	}
	hours, _ := strconv.Atoi(part[2])
	minutes, _ := strconv.Atoi(part[3])
	seconds := (hours*60 + minutes) * 60
	if part[1] == "-" {
		seconds = -seconds
	}
	for _, zone := range append([]string{"UTC", fmt.Sprintf("Etc/GMT%+d", -seconds/3600)}, n.all...) {
		if all := offsets(zone); len(all) > 0 && all[0] == seconds && len(slices.Compact(all)) == 1 {
			return []string{zone}
		}
	}
	return nil
}

// shown are the zones whose clock has an abbreviation.
func (n names) shown(key string) (zones []string) {
	if len(key) < 3 || len(key) > 5 {
		return nil
	}
	for _, zone := range n.all {
		loc, err := time.LoadLocation(zone)
		for month := time.January; err == nil && month <= time.July; month += 6 {
			if name, _ := time.Date(sampleYear, month, 1, 0, 0, 0, 0, time.UTC).In(loc).Zone(); strings.EqualFold(name, key) {
				zones = append(zones, zone)
			}
		}
	}
	return zones
}

// slip returns the place whose name differs from key by a typing error only.
func (n names) slip(key string) []string {
	places := slices.DeleteFunc(slices.Clone(n.all), func(zone string) bool { return !isPlace(zone) })
	if zone := near.Slip(key, places); zone != "" {
		return []string{zone}
	}
	return nil
}

// sampleYear is a year whose rules distinguish zones. It is fixed, as nothing here asks a clock.
const sampleYear = 2026

// distinct leaves out zones that show the same as one before, and more than are worth reading.
func distinct(zones []string) (few []string) {
	var seen [][]int
	for _, zone := range zones {
		all := offsets(zone)
		if len(few) < maxMeant && all != nil && !slices.ContainsFunc(seen, func(other []int) bool { return slices.Equal(other, all) }) {
			few, seen = append(few, zone), append(seen, all)
		}
	}
	return few
}

// offsets returns the offsets of a zone in each week of some years; nil: there is no such zone.
func offsets(zone string) (all []int) {
	loc, err := time.LoadLocation(zone)
	for week := 0; err == nil && week < 3*52; week++ {
		_, off := time.Date(sampleYear, 1, 1+7*week, 12, 0, 0, 0, time.UTC).In(loc).Zone()
		all = append(all, off)
	}
	return all
}
