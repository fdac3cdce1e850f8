package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
)

// A command is one thing that the program does.
type command struct {
	name, args, doc string
	run             func(ctx context.Context, a *app, given arguments) int
	serves          bool // its output is its log
	runs            bool // it runs jobs, whose logs are wanted
	bare            bool // it needs no settings
}

// arguments are what follows a command's name.
type arguments struct {
	job  string
	n    int
	json bool
}

// commands is a function, since help is one of them and lists them all.
func commands() []command {
	return []command{
		{name: "serve", doc: "run all jobs and singletons, and answer HTTP, until told to stop (the default)", run: serve, serves: true},
		{name: "tick", doc: "run once what is due now, singletons left out; 1: a run failed", run: tick, runs: true},
		{name: "status", args: "[--json]", doc: "what the records tell: who runs what, last and next tick", run: status},
		{name: "next", args: "[JOB] [-n 5]", doc: "the next ticks, by the schedules alone", run: next},
		{name: "validate", doc: "check jobs and settings without asking the storage; 2: mistakes", run: validate},
		{name: "help", doc: "this text", run: help, bare: true},
	}
}

// parse finds the command and reads what follows its name.
func parse(args []string) (*command, arguments, error) {
	name := "serve"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if name == "-h" || name == "-help" || name == "--help" {
		name = "help"
	}
	for _, c := range commands() {
		if c.name == name {
			given, err := c.parse(args)
			if errors.Is(err, flag.ErrHelp) {
				return parse([]string{"help"})
			}
			return &c, given, err
		}
	}
	return nil, arguments{}, fmt.Errorf("unknown command %q", name)
}

// parse takes flags before and after the job.
func (c *command) parse(args []string) (given arguments, err error) {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if strings.Contains(c.args, "-json") {
		flags.BoolVar(&given.json, "json", false, "")
	}
	if strings.Contains(c.args, "-n") {
		flags.IntVar(&given.n, "n", 5, "")
	}
	for takesJob := strings.Contains(c.args, "JOB"); ; takesJob = false {
		if err := flags.Parse(args); err != nil {
			return given, fmt.Errorf("%s: %w", c.name, err)
		}
		args = flags.Args()
		switch {
		case len(args) == 0 && flags.Lookup("n") != nil && (given.n < 1 || given.n > 1000):
			return given, fmt.Errorf("%s: -n is %d: want 1 to 1000", c.name, given.n)
		case len(args) == 0:
			return given, nil
		case !takesJob:
			return given, fmt.Errorf("%s: unexpected argument %q", c.name, args[0])
		}
		given.job, args = args[0], args[1:]
	}
}

func help(_ context.Context, a *app, _ arguments) int {
	fmt.Fprint(a.Stdout, a.usage(), settingsHelp())
	return exitOK
}

// usage lists the commands.
func (p *Program) usage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s [COMMAND]\n\n", p.Name)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(c.name+" "+c.args), c.doc)
	}
	w.Flush()
	return b.String()
}

// settingsHelp lists the settings, as their tags tell.
func settingsHelp() string {
	var b strings.Builder
	b.WriteString("\nSettings are environment variables; an empty one counts as not set.\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for f := range reflect.TypeFor[settings]().Fields() {
		fmt.Fprintf(w, "  %s\t%s\n", variable("", f), f.Tag.Get("doc"))
		fmt.Fprintf(w, "  \tnot set: %s\n", f.Tag.Get("unset"))
	}
	for f := range reflect.TypeFor[jobSettings]().Fields() {
		fmt.Fprintf(w, "  %s\t%s\n", variable("SOLOIST_JOB_<NAME>", f), f.Tag.Get("doc"))
	}
	w.Flush()
	return b.String()
}

// validate has nothing left to do: mistakes end the program before it.
func validate(_ context.Context, a *app, _ arguments) int {
	fmt.Fprintf(a.Stdout, "ok: %s, app %s on %s\n",
		join(plural(len(a.sched.Jobs), "job"), plural(len(a.sched.Singletons), "singleton")), a.App, a.store)
	return exitOK
}
