package host

import (
	"fmt"
	"strconv"
)

// jsonFlag is embedded by each command that can answer in JSON.
type jsonFlag struct {
	JSON bool `name:"json" help:"answer with one JSON value"`
}

// A number is the value of a flag. Its own type has an error that says what is wanted.
type number int

func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("%.70q is no number: want 1 to 1000", text)
	}
	*n = number(v)
	return nil
}

// maxOutcomes is the most that -n can ask for.
const maxOutcomes = 1000

// checkLimit returns what is wrong with -n.
func checkLimit(n number) error {
	if n < 1 || n > maxOutcomes {
		return fmt.Errorf("-n is %d: want 1 to %d", n, maxOutcomes)
	}
	return nil
}
