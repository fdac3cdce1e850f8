package functions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/safefile"
)

// How long an invocation lasts unless host.json says otherwise
// (https://learn.microsoft.com/azure/azure-functions/functions-scale#timeout).
const (
	consumptionTimeout = 5 * time.Minute
	otherTimeout       = 30 * time.Minute
)

// maxMargin is what is left of an invocation for the records, at most: see [app.Divide].
const maxMargin = 30 * time.Second

// Limits divide an invocation's time. When that time is over, the
// host kills this process, without notice and with all that runs in it.
type Limits = app.Limits

// LimitsOf reads how long an invocation lasts. With an error that is the default.
func LimitsOf(a *app.App) (Limits, error) {
	timeout, err := functionTimeout(&a.Settings)
	return app.Divide(timeout, a.Settings.Grace), err
}

// WarnOfGuess logs why the default counts in place of what is set.
func WarnOfGuess(log *slog.Logger, why error) {
	log.Warn("how long an invocation lasts is not known, so the default counts", "error", why, "timeout", defaultTimeout())
}

// TooLong names the jobs that no invocation has the time for.
func TooLong(a *app.App, limits Limits) (all []string) {
	for _, j := range a.Scheduler.Jobs {
		if limits.Run > 0 && j.Timeout > limits.Run {
			all = append(all, fmt.Sprintf("job %s is never started: it may take %s, and of an invocation runs have %s", j.Name, j.Timeout, limits.Run))
		}
	}
	return all
}

// functionTimeout is how long an invocation lasts, zero if that has no end. With
// an error it is the default.
func functionTimeout(s *app.Settings) (time.Duration, error) {
	if s.FunctionTimeout > 0 {
		return s.FunctionTimeout, nil
	}
	return hostTimeout(AppRoot())
}

// hostTimeout is how long the host of the app below root lets an invocation last,
// zero if that has no end. With an error it is the default.
func hostTimeout(root string) (time.Duration, error) {
	from := "AzureFunctionsJobHost__functionTimeout" // it overrides the file
	text, err := os.Getenv(from), error(nil)
	if text == "" && root != "" {
		from = filepath.Join(root, "host.json")
		text, err = timeoutIn(from)
	}
	if err == nil && text == "" {
		return defaultTimeout(), nil
	}
	var d time.Duration
	if err == nil {
		d, err = timeSpan(text)
	}
	if err != nil {
		return defaultTimeout(), fmt.Errorf("%s: %w", from, err)
	}
	return d, nil
}

func defaultTimeout() time.Duration {
	if os.Getenv("WEBSITE_SKU") == "Dynamic" {
		return consumptionTimeout
	}
	return otherTimeout
}

// timeoutIn reads a host.json, which need not be there.
func timeoutIn(path string) (string, error) {
	text, err := safefile.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	var settings struct{ FunctionTimeout string }
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &settings)
	}
	return settings.FunctionTimeout, err
}

var timeSpanRule = regexp.MustCompile(`^(?:(\d{1,4})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.\d{1,7})?)?$`)

// timeSpan reads the host's durations, [d.]hh:mm[:ss]; -1 is without end.
func timeSpan(text string) (d time.Duration, err error) {
	if text == "-1" {
		return 0, nil
	}
	m := timeSpanRule.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("functionTimeout is %.40q: want hh:mm:ss or -1", text)
	}
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi("0" + m[i+1])
		d += time.Duration(n) * unit
	}
	if d < time.Second {
		return 0, fmt.Errorf("functionTimeout is %.40q: want a second at least", text)
	}
	return d, nil
}

// hostSpan writes a duration as the host reads it, for whom 24:00:00 is 24 days.
func hostSpan(d time.Duration) string {
	s := int(d / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		return fmt.Sprintf("%d.%s", days, text)
	}
	return text
}

// The hosting plans, as far as the files of an app depend on them.
const (
	FlexConsumption = "flex"
	Consumption     = "consumption"
	OtherPlan       = "other" // Premium, Dedicated: instances that stay
)

// consumptionMost is the longest functionTimeout of the Consumption plan.
const consumptionMost = 10 * time.Minute

// flexMost is how long a run may take on Flex Consumption. The platform scales by the visible messages, and the message of
// a running call is hidden: so it takes the instance away, and waits for 60 minutes at most
// (https://learn.microsoft.com/azure/azure-functions/functions-scale#timeout).
const flexMost = 55 * time.Minute

// leastTimeout is the functionTimeout of host.json unless a job needs more.
func leastTimeout(plan string) time.Duration {
	if plan == Consumption {
		return consumptionMost
	}
	return otherTimeout
}

// OnFlex reports whether this process runs on Flex Consumption.
func OnFlex() bool { return os.Getenv("WEBSITE_SKU") == "FlexConsumption" }

// TooLongForFlex says of each job whose run Flex Consumption may kill what to do about it.
func TooLongForFlex(a *app.App) (all []string) {
	for _, j := range a.Scheduler.Jobs {
		if j.Timeout > flexMost {
			all = append(all, fmt.Sprintf("job %s may take %s: Flex Consumption takes an instance away while a run goes on, 60 minutes after it has scaled in. "+
				"Give the job a Timeout of at most %s, or deploy to another plan or to Container Apps", j.Name, j.Timeout, flexMost))
		}
	}
	return all
}

// tooLongForConsumption says so of a job that needs a functionTimeout of span, which is its Timeout and some more.
func tooLongForConsumption(j soloist.Job, span, more time.Duration) string {
	return fmt.Sprintf("job %s may take %s, which needs a functionTimeout of %s: an app on the Consumption plan, whose most is %s, would not start. "+
		"Deploy to another plan, or give the job a Timeout of at most %s", j.Name, j.Timeout, hostSpan(span), hostSpan(consumptionMost), max(0, consumptionMost-more))
}
