package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/host/internal/format"
)

// here names this program among replicas that it is none of.
const here = "this environment"

// sides lists values and who has them: "a on r1; b on r2 and r3".
func sides(values map[string][]string) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return compareNames(values[a], values[b]) })
	var all []string
	for _, key := range keys {
		all = append(all, cmp.Or(format.Brief(key), "none")+" "+where(values[key]))
	}
	return strings.Join(all, "; ")
}

// where says where something is: "in this environment and on r1, r2".
func where(names []string) string {
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == here })
	switch {
	case len(rest) == len(names):
		return "on " + format.Names(rest)
	case len(rest) == 0:
		return "in " + here
	}
	return "in " + here + " and on " + format.Names(rest)
}

// compareNames orders lists of names; this program comes first.
func compareNames(a, b []string) int {
	switch {
	case slices.Contains(a, here):
		return -1
	case slices.Contains(b, here):
		return 1
	}
	return slices.Compare(a, b)
}
