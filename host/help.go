package host

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/soloist-go/soloist/host/internal/app"
)

// helpCommand explains the program, or one command. It reads no settings: they
// may be wrong.
type helpCommand struct {
	Command string `arg:"" optional:"" name:"COMMAND" complete:"command" help:"the command to explain"`
}

func (c *helpCommand) run(_ context.Context, p *Program) int {
	k := newParser(p)
	if c.Command == "" {
		fmt.Fprint(p.Stdout, usage(k), codesHelp, app.SettingsHelp())
		return exitOK
	}
	one := commandNamed(k, c.Command)
	if one == nil {
		p.console().Tell("help: %v", unknownCommand(k, c.Command))
		return exitUsage
	}
	fmt.Fprint(p.Stdout, usageOf(p.Name, one))
	return exitOK
}

// usage lists the commands.
func usage(k *kong.Kong) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s [COMMAND]\n\n", k.Model.Name)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range k.Model.Children {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(w, "  %s\t%s\n", c.Name, c.Help)
		if args := argumentsOf(c); args != "" {
			fmt.Fprintf(w, "  \t%s\n", args)
		}
	}
	w.Flush()
	return b.String()
}

// usageOf explains one command.
func usageOf(program string, c *kong.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n%s\n\n", strings.TrimSpace(program+" "+c.Name+" "+argumentsOf(c)), c.Help)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, a := range c.Positional {
		fmt.Fprintf(w, "  %s\t%s\n", a.Name, a.Help)
	}
	for _, f := range c.Flags {
		if !f.Hidden {
			fmt.Fprintf(w, "  %s\t%s\n", bothForms(f), f.Help)
		}
	}
	w.Flush()
	return b.String()
}

// argumentsOf are the arguments and flags of a command, in one line.
func argumentsOf(c *kong.Node) string {
	var all []string
	for _, a := range c.Positional {
		if a.Required {
			all = append(all, a.Name)
		} else {
			all = append(all, "["+a.Name+"]")
		}
	}
	for _, f := range c.Flags {
		if !f.Hidden {
			all = append(all, "["+flagUsage(f)+"]")
		}
	}
	return strings.Join(all, " ")
}

// flagUsage is a flag, with what its value is.
func flagUsage(f *kong.Flag) string {
	switch {
	case f.IsBool():
		return dashed(f)
	case f.HasDefault:
		return dashed(f) + " " + f.Default
	}
	return dashed(f) + " " + f.PlaceHolder
}

// bothForms is flagUsage with the long name too.
func bothForms(f *kong.Flag) string {
	if f.Short != 0 {
		return "-" + string(f.Short) + ", --" + f.Name + strings.TrimPrefix(flagUsage(f), dashed(f))
	}
	return flagUsage(f)
}

// codesHelp is about what a platform sees of the program.
var codesHelp = fmt.Sprintf(`
Exit codes: %d done, %d something went wrong, %d mistakes in arguments or settings, 130 a second signal.
%d, in Functions %d: a run went on without its lease, and the process was ended before another replica had it.

/healthz answers 503 where a restart would help: "overrun", a run goes on though its context has ended, or "stuck".
`, exitOK, exitFail, exitUsage, exitOverrun, exitRestart)
