package host

import (
	"fmt"
)

// arguments are what follows a command's name.
type arguments struct {
	job                string // or the directory
	n                  int
	json, now, yes     bool
	at, zone, schedule string
	binary             string
	warmup, tick       bool
	set                map[string]bool // the flags that are given, with an empty value too
}

// count is what is wrong with -n.
func (g *arguments) count() error {
	if g.n < 1 || g.n > 1000 {
		return fmt.Errorf("-n is %d: want 1 to 1000", g.n)
	}
	return nil
}
