package azd_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/internal/azd"
)

// Prices, as docs/costs.md has them with their sources.
const (
	vcpuSecond   = 0.000024 // of a replica that is at work
	gibSecond    = 0.000003
	freeVCPU     = 180_000 // seconds a month
	freeGiB      = 360_000
	functionGB   = 0.000026 // for a second
	functionCall = 0.40 / 1e6
	freeGB       = 100_000
	freeCalls    = 250_000
	alertRule    = 1.50 // a month, asked each five minutes, for one series, here a job
	alertSeries  = 0.15 // a month, for each further series
)

// What the templates and the defaults of the settings say.
const (
	vcpus, gib   = 0.25, 0.5
	instanceGB   = 0.5
	lead         = time.Minute
	flexLead     = 150 * time.Second // of functions.bicep
	polling      = 30 * time.Second
	coolDown     = time.Minute
	month        = 30 * 24 * time.Hour
	run          = 10 * time.Second
	leastCall    = time.Second     // of a call that finds nothing due
	idlePass     = 3 * time.Second // of a program that is started and finds nothing due
	dailyWindow  = 5*time.Minute + polling + coolDown
	passesAMonth = int(month / time.Minute)
)

// A way is how a job may run: for how long something is up for it in a month,
// and how often it is called.
type way struct {
	name      string
	functions bool
	up        func(period time.Duration) (time.Duration, int)
}

// within is a time for each of the ticks of a month, at most all of it.
func within(each, period time.Duration) time.Duration {
	return min(each, period) * (month / period)
}

func ticks(period time.Duration) int { return int(month / period) }

var ways = []way{
	{"an app that is always on, 1 replica", false, func(time.Duration) (time.Duration, int) { return month, 0 }},
	{"an app that is always on, 2 replicas", false, func(time.Duration) (time.Duration, int) { return 2 * month, 0 }},
	{"an app with an alarm", false, func(p time.Duration) (time.Duration, int) {
		return min(month, within(lead+run+polling+coolDown, p)+30*dailyWindow), 0
	}},
	{"a job with an alarm", false, func(p time.Duration) (time.Duration, int) {
		return min(month, within(lead+run, p)+30*idlePass), 0
	}},
	{"a job once a minute", false, func(p time.Duration) (time.Duration, int) {
		return time.Duration(passesAMonth-ticks(p))*idlePass + within(run, p), 0
	}},
	{"Functions with an alarm", true, func(p time.Duration) (time.Duration, int) {
		return min(month, within(flexLead+run, p)+30*idlePass), ticks(p) + 30
	}},
	{"Functions with a timer", true, func(p time.Duration) (time.Duration, int) {
		return time.Duration(passesAMonth-ticks(p))*leastCall + within(run, p), passesAMonth
	}},
}

// dollars is what that costs, without and with what is free in a month.
func (w way) dollars(up time.Duration, calls int) (all, rest float64) {
	s := up.Seconds()
	if w.functions {
		return s*instanceGB*functionGB + float64(calls)*functionCall,
			max(0, s*instanceGB-freeGB)*functionGB + max(0, float64(calls)-freeCalls)*functionCall
	}
	return s*vcpus*vcpuSecond + s*gib*gibSecond, max(0, s*vcpus-freeVCPU)*vcpuSecond + max(0, s*gib-freeGiB)*gibSecond
}

// What docs/costs.md says of a program by where it runs follows from prices,
// settings and templates.
func TestCosts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		row := "| " + w.name
		for _, period := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
			up, calls := w.up(period)
			all, rest := w.dollars(up, calls)
			row += fmt.Sprintf(" | %s h, $%.2f, $%.2f", thousands(up.Hours()), all, rest)
		}
		if row += " |"; !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/costs.md has no row\n%s", row)
		}
	}
	rules := strings.Count(string(filesOf(t, program(azd.App))["infra/modules/alerts.bicep"]), "    where: ")
	if want := fmt.Sprintf("%d rules, $%.2f, and $%.2f more for each further job", rules, float64(rules)*alertRule, float64(rules)*alertSeries); !strings.Contains(string(page), want) {
		t.Errorf("docs/costs.md does not say %q", want)
	}
	var infra strings.Builder
	for _, kind := range kinds {
		files := filesOf(t, program(kind))
		infra.Write(append(files["infra/jobs.bicep"], files["infra/modules/functions.bicep"]...))
	}
	for _, text := range []string{"pollingInterval: 30\n", "cooldownPeriod: 60\n", "start: '7 3 * * *'", "end: '12 3 * * *'", "json('0.25')", "'0.5Gi'", "instanceMemoryMB: 512\n"} {
		if !strings.Contains(infra.String(), text) {
			t.Errorf("the templates do not say %q any more, which the costs are computed from", text)
		}
	}
	for _, text := range []string{"$0.000024", "$0.000003", "180,000", "360,000", "$0.000026", "$0.40", "100,000", "250,000"} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/costs.md does not tell the price or grant %s", text)
		}
	}
}

// thousands writes hours: 1,440 or 4.5.
func thousands(hours float64) string {
	if hours < 10 {
		return fmt.Sprintf("%.1f", hours)
	}
	n := fmt.Sprintf("%.0f", hours)
	if len(n) > 3 {
		n = n[:len(n)-3] + "," + n[len(n)-3:]
	}
	return n
}
