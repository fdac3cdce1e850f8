package format

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table aligns columns under their titles. Flush prints it.
func Table(w io.Writer, titles string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, titles)
	return t
}
