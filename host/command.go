package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/near"
)

// A command is one thing that the program does.
type command struct {
	name, args, doc string
	run             func(ctx context.Context, a *app.App, given arguments) int
	// bare is in place of run: it reads the settings itself, if it needs any.
	bare func(ctx context.Context, p *Program, given arguments) int
	n    int  // what -n is unless given
	mode mode // how it uses the program
}

// commands is a function, since help is one of them and lists them all.
func commands() []command {
	return []command{
		{name: "serve", doc: "run all jobs and singletons, and answer HTTP, until told to stop (the default)", run: serve, mode: mode{serves: true}},
		{name: "tick", args: "[--json]", doc: "run once what is due now, singletons left out; 1: a run failed", run: tick, mode: mode{runs: true}},
		{name: "status", args: "[--json]", doc: "what the records tell: who runs what, last and next tick", run: status},
		{name: "history", args: "[JOB] [-n 20] [--json]", n: 20, doc: "what became of the last ticks, by the records; 1: one cannot be read", run: history},
		{name: "next", args: "[JOB] [-n 10] [--at TIME] [--tz ZONE] [--schedule TEXT] [--json]", n: 10,
			doc: "explain schedules, or the one given: in words, and by the next ticks; it asks no storage", bare: next},
		{name: "unlock", args: "JOB [--now] [--yes]", run: unlock, mode: mode{byOperator: true},
			doc: "free a hung job: when its lease expires, or --now, while its holder may still work. Where that can end the holder's process it tells so and wants --yes; 0: done, or no replica has the lease"},
		{name: "functions", args: "DIR [--binary FILE] [--tick] [--warmup]", bare: writeFunctions,
			doc: "write a directory that can be deployed to Azure Functions, with this program or, as for another system, FILE; a timer for each job, or --tick, one for all"},
		{name: "validate", args: "[--json]", doc: "check jobs and settings without asking the storage; 2: mistakes", bare: validate},
		{name: "doctor", args: "[--json]", doc: "try settings, network, credentials and storage one after the other, and say what to do; 1: something fails, 2: settings", bare: diagnose},
		{name: "help", doc: "this text", bare: help},
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
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return nil, arguments{}, fmt.Errorf("unknown command %q%s", name, app.DidYouMean(": ", name, names))
}

// parse takes flags before and after the job.
func (c *command) parse(args []string) (given arguments, err error) {
	given.set = map[string]bool{}
	flags := c.flags(&given)
	for takesJob := strings.Contains(c.args, "JOB") || strings.Contains(c.args, "DIR"); ; takesJob = false {
		if err := flags.Parse(args); err != nil {
			return given, fmt.Errorf("%s: %w", c.name, flagError(flags, err))
		}
		args = flags.Args()
		switch {
		case len(args) == 0 && given.job == "" && strings.HasPrefix(c.args, "JOB"):
			return given, fmt.Errorf("%s: of which job?", c.name)
		case len(args) == 0 && given.job == "" && strings.HasPrefix(c.args, "DIR"):
			return given, fmt.Errorf("%s: into which directory?", c.name)
		case len(args) == 0:
			flags.Visit(func(f *flag.Flag) { given.set[f.Name] = true })
			return given, nil
		case !takesJob:
			return given, fmt.Errorf("%s: unexpected argument %q", c.name, args[0])
		}
		given.job, args = args[0], args[1:]
	}
}

// flagError names the flags that there are where package flag says only which
// one there is not.
func flagError(flags *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	var names, written []string
	flags.VisitAll(func(f *flag.Flag) {
		names, written = append(names, f.Name), append(written, dashed(f.Name))
	})
	meant := near.Name(name, names)
	switch {
	case meant != "":
		return fmt.Errorf("unknown flag %s: did you mean %s?", dashed(name), dashed(meant))
	case names == nil:
		return fmt.Errorf("unknown flag %s: it takes none", dashed(name))
	}
	return fmt.Errorf("unknown flag %s: want %s", dashed(name), strings.Join(written, ", "))
}

// dashed writes a flag as help does.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// flags are those that the command's args show.
func (c *command) flags(given *arguments) *flag.FlagSet {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if c.n > 0 {
		flags.IntVar(&given.n, "n", c.n, "")
	}
	for name, set := range map[string]*bool{"json": &given.json, "now": &given.now, "yes": &given.yes, "warmup": &given.warmup, "tick": &given.tick} {
		if strings.Contains(c.args, "--"+name+"]") {
			flags.BoolVar(set, name, false, "")
		}
	}
	for name, text := range map[string]*string{"at": &given.at, "tz": &given.zone, "schedule": &given.schedule, "binary": &given.binary} {
		if strings.Contains(c.args, "--"+name+" ") {
			flags.StringVar(text, name, "", "")
		}
	}
	return flags
}

func help(_ context.Context, p *Program, _ arguments) int {
	fmt.Fprint(p.Stdout, usage(p.Name), codesHelp, app.SettingsHelp())
	return exitOK
}

// usage lists the commands.
func usage(program string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s [COMMAND]\n\n", program)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %s\t%s\n", c.name, c.doc)
		if c.args != "" {
			fmt.Fprintf(w, "  \t%s\n", c.args)
		}
	}
	w.Flush()
	return b.String()
}

// codesHelp is about what a platform sees of the program.
var codesHelp = fmt.Sprintf(`
Exit codes: %d done, %d something went wrong, %d mistakes in arguments or settings, 130 a second signal.
%d, in Functions %d: a run went on without its lease, and the process was ended before another replica had it.

/healthz answers 503 where a restart would help: "overrun", a run goes on though its context has ended, or "stuck".
`, exitOK, exitFail, exitUsage, exitOverrun, exitRestart)

// A verdict is what validate tells in JSON.
type verdict struct {
	OK       bool     `json:"ok"`
	App      string   `json:"app"`
	Store    string   `json:"store,omitempty"`
	Mistakes []string `json:"mistakes"`
	Warnings []string `json:"warnings"` // variables that look like settings and are none
}

// validate reads the settings itself, since its answer is what is wrong with
// them.
func validate(_ context.Context, p *Program, given arguments) int {

	if !given.json {
		a, code := p.openOr(mode{})
		if code == exitOK {
			fmt.Fprintf(a.Console.Stdout, "ok: %s, app %s on %s\n",
				format.Join(format.Plural(len(a.Scheduler.Jobs), "job"), format.Plural(len(a.Scheduler.Singletons), "singleton")), a.Settings.App, a.Place)
		}
		return code
	}
	a, err := p.open(mode{})
	v := verdict{OK: err == nil, App: a.Settings.App, Store: a.Place, Mistakes: []string{}, Warnings: append([]string{}, a.Strange...)}
	code := exitOK
	if err != nil {
		v.Mistakes, code = format.Lines(err), exitUsage
	}
	return max(code, printed(a.Console.JSON(v)))
}
