//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/proof/zero/judge"
	"github.com/soloist-go/soloist/proof/zero/platform"
)

// What is the same in each measurement, before -pace.
const (
	polling = 30 * time.Second // from one look of the scaler to the next
	lead    = time.Minute      // SOLOIST_ALARM_LEAD
)

// late is how late a tick may start, without the platform's part, whatever the pace is.
const late = 2 * time.Second

// options are the flags of the command line. All times are before -pace.
type options struct {
	length, coolDown, stay time.Duration
	pace                   int
	job                    bool
	schedules              []string
}

// parse reads the arguments and checks them.
func parse(args []string, usage io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("zero", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.DurationVar(&o.length, "for", 24*time.Hour, "how long")
	flags.IntVar(&o.pace, "pace", 1, "how many times as fast all is, 1 to 60")
	flags.BoolVar(&o.job, "job", false, "an event-driven job that runs tick, and not an app that runs serve")
	flags.DurationVar(&o.coolDown, "cooldown", 5*time.Minute, "from the scaler's last message to no replica, of an app")
	flags.DurationVar(&o.stay, "stay", 2*time.Minute, "SOLOIST_STAY")
	flags.Func("schedule", "of a job; once for each (default @every 15m, @every 1h, @every 24h)", func(text string) error {
		o.schedules = append(o.schedules, text)
		return nil
	})
	if err = flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if len(o.schedules) == 0 {
		o.schedules = []string{"@every 15m", "@every 1h", "@every 24h"}
	}
	return o, o.check()
}

func (o options) check() error {
	switch {
	case o.pace < 1 || o.pace > 60:
		return fmt.Errorf("-pace %d: want 1 to 60", o.pace)
	case o.each(o.length) < 10*time.Second:
		return fmt.Errorf("-for %s: want at least 10s after it is divided by the pace", o.length)
	case o.coolDown <= 0 || o.stay < 0:
		return errors.New("-cooldown has to be above zero, and -stay not below")
	}
	for name, text := range o.jobs() {
		if _, err := schedule.Parse(text, "", name); err != nil {
			return fmt.Errorf("-schedule of %s: %w", name, err)
		}
	}
	return nil
}

// each is a time as it is at the pace.
func (o options) each(d time.Duration) time.Duration { return d / time.Duration(o.pace) }

// jobs returns the schedules by job, at the pace.
func (o options) jobs() map[string]string {
	all := map[string]string{}
	for n, text := range o.schedules {
		if every, ok := strings.CutPrefix(text, "@every "); ok {
			if d, err := time.ParseDuration(every); err == nil {
				text = "@every " + o.each(d).String()
			}
		}
		all[fmt.Sprintf("job-%d", n+1)] = text
	}
	return all
}

func (o options) rules() platform.Rules {
	return platform.Rules{
		Job: o.job, Grace: 30 * time.Second, // as real time: processes do not end sooner
		Polling: o.each(polling), CoolDown: o.each(o.coolDown), Restart: o.each(10 * time.Second),
	}
}

// verdict prints the table, and returns what is wrong.
func (o options) verdict(out io.Writer, story judge.Story, ticks []judge.Tick, failures []string) error {
	kind := "app with serve"
	if o.job {
		kind = "event-driven job with tick"
	}
	fmt.Fprintf(out, "an %s, %s at a pace of %d: polling %s, cool-down %s, lead %s, stay %s\n\n", kind, o.length, o.pace,
		o.each(polling), o.each(o.coolDown), o.each(lead), o.each(o.stay))
	story.Report(out, ticks)
	if len(ticks) == 0 {
		failures = append(failures, "no tick was due")
	}
	if failures = append(failures, judge.Faults(ticks, late)...); len(failures) > 0 {
		return fmt.Errorf("%d faults:\n%s", len(failures), strings.Join(failures, "\n"))
	}
	fmt.Fprintf(out, "\neach tick was run once, and started at most %s after it was due, without the platform's part\n", late)
	return nil
}
