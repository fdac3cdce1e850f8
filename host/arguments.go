package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/near"
)

// oneForm writes the flags of a command as kong reads them: each by its long
// name after two dashes. As with package flag, one dash will do for any flag, two
// for one of a letter, and a value may follow after "=" in each case.
func oneForm(k *kong.Kong, args []string) []string {
	if len(args) == 0 || args[0] == "__complete" { // whose words belong to another call
		return args
	}
	long := map[string]string{"h": "help"}
	if c := commandNamed(k, args[0]); c != nil {
		for _, f := range c.Flags {
			long[string(f.Short)] = f.Name
		}
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		rest, dashed := strings.CutPrefix(arg, "-")
		name, value, given := strings.Cut(strings.TrimPrefix(rest, "-"), "=")
		if !dashed || name == "" {
			continue
		}
		if args[i] = "--" + cmp.Or(long[name], name); given {
			args[i] += "=" + value
		}
	}
	return args
}

// commandNamed returns the command of that name, or nil.
func commandNamed(k *kong.Kong, name string) *kong.Node {
	for _, c := range k.Model.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// plain says what is wrong with the arguments, and what is right: kong's own
// words name neither the command nor its flags.
func plain(k *kong.Kong, selected *kong.Node, text string) error {
	argument, unexpected := strings.CutPrefix(text, "unexpected argument ")
	argument, _, _ = strings.Cut(argument, ", did you mean ")
	flag, unknown := strings.CutPrefix(text, "unknown flag ")
	flag, _, _ = strings.Cut(flag, ", did you mean ")
	if utf8.RuneCountInString(flag) == len("--n") {
		flag = flag[1:]
	}
	switch {
	case selected == nil && unexpected:
		return unknownCommand(k, argument)
	case selected == nil && unknown:
		return fmt.Errorf("unknown flag %s: flags follow the command", flag)
	case selected == nil:
		return errors.New(text)
	case unexpected:
		return fmt.Errorf("%s: unexpected argument %q", selected.Name, argument)
	case unknown:
		return fmt.Errorf("%s: unknown flag %s: %s", selected.Name, flag, flagsOf(selected, flag))
	case strings.HasPrefix(text, "expected ") && len(selected.Positional) > 0:
		return fmt.Errorf("%s: %s", selected.Name, selected.Positional[0].Tag.Get("missing"))
	}
	if name, missing := strings.CutSuffix(text, ` but got "EOL" (<EOL>)`); missing {
		name, _, _ = strings.Cut(name, ":")
		return fmt.Errorf("%s: %s needs a value", selected.Name, name)
	}
	return fmt.Errorf("%s: %s", selected.Name, strings.NewReplacer("<", "", ">", "").Replace(text))
}

func unknownCommand(k *kong.Kong, name string) error {
	return fmt.Errorf("unknown command %q%s", name, app.DidYouMean(": ", name, commandNames(k)))
}

// flagsOf says which flag of the command is meant, or which flags it has.
func flagsOf(c *kong.Node, wrong string) string {
	var names, written []string
	for _, f := range c.Flags {
		names, written = append(names, f.Name), append(written, dashed(f))
	}
	meant := near.Name(strings.TrimLeft(wrong, "-"), names)
	switch {
	case meant != "":
		return "did you mean --" + meant + "?"
	case names == nil:
		return "it takes none"
	}
	return "want " + strings.Join(written, ", ")
}

// dashed writes a flag that has a value in its shortest form, another in full.
func dashed(f *kong.Flag) string {
	if f.Short != 0 && !f.IsBool() {
		return "-" + string(f.Short)
	}
	return "--" + f.Name
}

// commandNames returns the names of the commands that help shows.
func commandNames(k *kong.Kong) (names []string) {
	for _, c := range k.Model.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}
