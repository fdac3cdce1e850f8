package host

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
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
		p.console().Tell("help: %v", &unknownCommand{c.Command, p.Name, commandNames(k)})
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

// completionCommand prints the script that makes a shell complete the program's
// arguments. The script asks the program itself, by its command __complete.
type completionCommand struct {
	Shell string `arg:"" name:"SHELL" enum:"bash,zsh,fish" missing:"for which shell: bash, zsh or fish?" help:"bash, zsh or fish"`
}

var (
	//go:embed completion/bash
	bashScript string
	//go:embed completion/zsh
	zshScript string
	//go:embed completion/fish
	fishScript string
)

func (c *completionCommand) run(_ context.Context, p *Program) int {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	if !isPlain(p.Name) {
		p.console().Tell("completion: the name of the program is %q: want letters, digits, and any of . _ - after the first, so that no shell takes it for more", p.Name)
		return exitUsage
	}
	fmt.Fprint(p.Stdout, strings.NewReplacer("PROGRAM", p.Name, "FUNCTION", "_"+strings.NewReplacer(".", "_", "-", "_").Replace(p.Name)+"_complete").Replace(script))
	return exitOK
}

// isPlain reports whether a shell takes the name as it is.
func isPlain(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == "" && !strings.HasPrefix(name, "-")
}

// completeCommand prints what the last of some words can be, a line each. It asks
// no storage.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

func (c *completeCommand) run(_ context.Context, p *Program) int {
	words := c.Words
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	for _, text := range candidates(p, words[:len(words)-1], last) {
		if strings.HasPrefix(text, last) {
			fmt.Fprintln(p.Stdout, text)
		}
	}
	return exitOK
}

// candidates are what may follow the words before.
func candidates(p *Program, before []string, last string) []string {
	k := newParser(p)
	if len(before) == 0 {
		return commandNames(k)
	}
	one := commandNamed(k, before[0])
	if one == nil {
		return nil
	}
	before = before[1:]
	if name, _, given := strings.Cut(last, "="); given && strings.HasPrefix(last, "--") {
		all := valuesOf(p, k, flagNamed(one, name))
		for i := range all {
			all[i] = name + "=" + all[i]
		}
		return all
	}
	if strings.HasPrefix(last, "-") {
		return flagNames(one)
	}
	if len(before) > 0 {
		if f := flagNamed(one, before[len(before)-1]); f != nil && !f.IsBool() {
			return valuesOf(p, k, f)
		}
	}
	if n := arguments(one, before); n < len(one.Positional) {
		return valuesOf(p, k, one.Positional[n])
	}
	return flagNames(one)
}

// arguments counts the words that are neither flags nor values of flags.
func arguments(c *kong.Node, words []string) (n int) {
	value := false // the next word is the value of a flag
	for _, word := range words {
		isFlag := !value && strings.HasPrefix(word, "-")
		if !isFlag && !value {
			n++
		}
		f := flagNamed(c, word)
		value = isFlag && f != nil && !f.IsBool()
	}
	return n
}

// flagNamed returns the value of the flag that is written so, or nil.
func flagNamed(c *kong.Node, written string) *kong.Value {
	for _, f := range c.Flags {
		if written == "--"+f.Name || f.Short != 0 && written == "-"+string(f.Short) {
			return f.Value
		}
	}
	return nil
}

// valuesOf are what an argument or the value of a flag can be, by its tags. nil: there is no such flag.
func valuesOf(p *Program, k *kong.Kong, v *kong.Value) []string {
	switch {
	case v == nil:
		return nil
	case v.Enum != "":
		return v.EnumSlice()
	}
	a, _ := p.open(mode{}) // mistakes in settings are no matter now
	switch v.Tag.Get("complete") {
	case "job":
		return withShards(a, a.Jobs())
	case "work":
		return withShards(a, a.Wholes())
	case "command":
		return commandNames(k)
	case "outcome":
		return format.Outcomes()
	}
	return nil
}

// withShards adds the names of shards.
func withShards(a *app.App, wholes []string) (names []string) {
	for _, whole := range wholes {
		if names = append(names, whole); len(a.Shards(whole)) > 1 {
			names = append(names, a.Shards(whole)...)
		}
	}
	return names
}

func flagNames(c *kong.Node) (names []string) {
	for _, f := range c.Flags {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	}
	return append(names, "--help")
}
