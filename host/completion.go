package host

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
)

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
		return prefixed(name+"=", valuesOf(p, k, flagNamed(one, name)))
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
		return valuesFor(p, k, one.Positional[n])
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

// flagNamed returns the flag that is written so, or nil.
func flagNamed(c *kong.Node, written string) *kong.Flag {
	for _, f := range c.Flags {
		if written == "--"+f.Name || f.Short != 0 && written == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func valuesOf(p *Program, k *kong.Kong, f *kong.Flag) []string {
	if f == nil {
		return nil
	}
	return valuesFor(p, k, f.Value)
}

// valuesFor are what an argument or the value of a flag can be, by its tags.
func valuesFor(p *Program, k *kong.Kong, v *kong.Value) (all []string) {
	if v.Enum != "" {
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
		for _, s := range format.Outcomes() {
			all = append(all, string(s))
		}
	}
	return all
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

func prefixed(prefix string, all []string) (with []string) {
	for _, text := range all {
		with = append(with, prefix+text)
	}
	return with
}
