package app

import (
	"fmt"
	"io"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/logging"
)

// A Console is where a program prints its answers and its mistakes.
type Console struct {
	Name     string    // of the program
	Stdout   io.Writer // for answers, and the logs of serve
	Stderr   io.Writer // for mistakes, and the logs of other commands
	Terminal bool      // both are one, whatever they are
}

// OnTerminal reports whether w is a terminal.
func (c Console) OnTerminal(w io.Writer) bool { return c.Terminal || logging.IsTerminal(w) }

// Tell writes a line to Stderr that begins with the program's name. Arguments may be text of any kind.
func (c Console) Tell(layout string, args ...any) {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Name, format.Hanging(fmt.Sprintf(layout, args...)))
}

// Complain lists all mistakes, a line each.
func (c Console) Complain(err error) {
	all := format.Lines(err)
	c.Tell("%s", format.Plural(len(all), "mistake"))
	for _, text := range all {
		fmt.Fprintf(c.Stderr, "  %s\n", format.Hanging(text))
	}
}

// JSON answers in JSON and reports whether that could be written.
func (c Console) JSON(body any) bool {
	err := format.WriteJSON(c.Stdout, body, "  ")
	if err != nil {
		c.Tell("the answer cannot be written as JSON: %s", format.Line(err.Error()))
	}
	return err == nil
}
