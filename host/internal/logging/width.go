package logging

import (
	"io"
	"os"
	"strconv"
)

const (
	usualWidth = 80
	leastWidth = 20 // below that there is no table
)

// Width is how many columns there are to write on: those of COLUMNS, of the terminal, or as many as are usual.
func Width(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(n, leastWidth)
	}
	if f, ok := w.(*os.File); ok {
		if n := columnsOf(f); n > 0 {
			return max(n, leastWidth)
		}
	}
	return usualWidth
}
