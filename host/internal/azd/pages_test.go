package azd_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/internal/azd"
)

const top = "../../.."

// shipped returns the files of the repository, by path, whose text a user follows: pages, manifests, advice in the code.
func shipped(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && (base == ".git" || base == "testdata" || base == "node_modules" || base == ".vitepress") {
			return fs.SkipDir
		}
		known := slices.Contains([]string{".md", ".go", ".yaml", ".json", ".tmpl", ".bicep"}, filepath.Ext(base)) || strings.HasPrefix(base, "Dockerfile")
		if !d.Type().IsRegular() || !known || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		all[strings.TrimPrefix(filepath.ToSlash(name), top+"/")] = string(text)
		return err
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("got %d files, %v", len(all), err)
	}
	return all
}

// What pages have to say, and in which order.
func TestPages(t *testing.T) {
	t.Parallel()
	files := shipped(t)
	files["README.md of containers"] = string(filesOf(t, program(azd.Job))["README.md"])
	for page, wants := range map[string][]string{
		// What Flex Consumption does to runs and calls; no other plan comes first.
		"docs/functions.md": {"Flex Consumption", "No run on Flex Consumption over 55 minutes", "SOLOIST_ALARM_LEAD=150s", "siteUpdateStrategy: RollingUpdate",
			"30 September\n2028", "Do not use it"},
		"docs/azd.md":           {"no more than 55 minutes", "TasksOperationsNotAllowed", "remoteBuild"},
		"docs/containerapps.md": {"ten minutes to become ready"},
		"docs/which.md":         {"Core Tools 4.12", "az 2.87.0", "azd 1.26.0", "preview", "SIGTERM and shutdown hooks", "55 minutes on Flex Consumption"},
		"README.md":             {"(docs/which.md)"},
		// A trial subscription may not have its registry build, so the pages say how to build here.
		"README.md of containers": {"TasksOperationsNotAllowed", "`remoteBuild: false`"},
		"deploy/README.md": {"TasksOperationsNotAllowed", "docker build --platform linux/amd64", "docker push",
			// az containerapp update sets cooldownPeriod to 300 again.
			"`az containerapp update`", "`cooldownPeriod`", "az 2.87.0"},
	} {
		wantText(t, page, files[page], wants...)
	}
	plan := regexp.MustCompile(`(Flex|Linux) Consumption|Premium|Dedicated`).FindString(files["docs/functions.md"])
	if plan != "Flex Consumption" {
		t.Errorf("docs/functions.md names %q before Flex Consumption", plan)
	}
	// Queue, container and the role of whoever runs wake are there before it.
	rest := files["deploy/README.md"]
	for _, step := range []string{"az storage container-rm create --name soloist ", `/queueServices/default/queues/soloist-alarm?api-version=`,
		"Storage Queue Data Contributor", "Storage Queue Data Message Sender", "az ad signed-in-user show", "go run ./jobs wake\n"} {
		_, after, found := strings.Cut(rest, step)
		if rest = after; !found {
			t.Fatalf("deploy/README.md lacks %q, or has it too late", step)
		}
	}
}

// What no page, manifest or advice may say.
func TestNoPageSays(t *testing.T) {
	t.Parallel()
	files := shipped(t)
	for never, where := range map[string]func(name string) bool{
		// Owner and Contributor are roles of the control plane: with --auth-mode login the service answers them 403
		// (https://learn.microsoft.com/azure/storage/blobs/authorize-data-operations-cli).
		`--auth-mode login|az storage (container|queue|table|share) create`: nil,
		`(?m)^ *az containerapp update`:                                     nil, // it resets the cool-down
		`(?i)no docker is needed`:                                           nil,
		`Linux Consumption`: func(name string) bool { // which is retired
			return strings.HasSuffix(name, ".md") && name != "CHANGELOG.md" && name != "docs/functions.md"
		},
		`Test/Run`: func(name string) bool { return name == "docs/reaching.md" }, // whose calls were killed
	} {
		pattern := regexp.MustCompile(never)
		for name, text := range files {
			if said := pattern.FindString(text); said != "" && (where == nil || where(name)) {
				t.Errorf("%s says %q", name, said)
			}
		}
	}
}

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
	passesAMonth = month / time.Minute
)

// A way is how a job may run: always, or for each of its ticks and at some other times.
type way struct {
	name      string
	functions bool
	replicas  time.Duration // that are always up
	tick      time.Duration // for which something is up for each tick
	daily     time.Duration // and once a day
	minute    time.Duration // and each minute without a tick
}

var ways = []way{
	{name: "an app that is always on, 1 replica", replicas: 1},
	{name: "an app that is always on, 2 replicas", replicas: 2},
	{name: "an app with an alarm", tick: lead + run + polling + coolDown, daily: dailyWindow},
	{name: "a job with an alarm", tick: lead + run, daily: idlePass},
	{name: "a job once a minute", tick: run, minute: idlePass},
	{name: "Functions with an alarm", functions: true, tick: flexLead + run, daily: idlePass},
	{name: "Functions with a timer", functions: true, tick: run, minute: leastCall},
}

// inMonth is for how long something is up in a month for a job of this period, and how often it is called.
func (w way) inMonth(period time.Duration) (up time.Duration, calls int) {
	if w.replicas > 0 {
		return w.replicas * month, 0
	}
	ticks, calls := month/period, int(passesAMonth)
	up = min(month, min(w.tick, period)*ticks+30*w.daily+(passesAMonth-ticks)*w.minute)
	if w.minute == 0 {
		calls = int(ticks) + 30
	}
	return up, calls
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
	must(t, err)
	for _, w := range ways {
		cells := []string{"| " + w.name}
		for _, period := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
			up, calls := w.inMonth(period)
			all, rest := w.dollars(up, calls)
			cells = append(cells, fmt.Sprintf("%s h, $%.2f, $%.2f", thousands(up.Hours()), all, rest))
		}
		wantText(t, "docs/costs.md", string(page), strings.Join(cells, " | ")+" |\n")
	}
	rules := strings.Count(string(filesOf(t, program(azd.App))["infra/modules/alerts.bicep"]), "    where: ")
	wantText(t, "docs/costs.md", string(page), fmt.Sprintf("%d rules, $%.2f, and $%.2f more for each further job",
		rules, float64(rules)*alertRule, float64(rules)*alertSeries))
	var infra strings.Builder
	for _, kind := range kinds {
		files := filesOf(t, program(kind))
		infra.Write(append(files["infra/jobs.bicep"], files["infra/modules/functions.bicep"]...))
	}
	wantText(t, "one of the templates, from which the costs are computed,", infra.String(),
		"pollingInterval: 30\n", "cooldownPeriod: 60\n", "start: '7 3 * * *'", "end: '12 3 * * *'", "json('0.25')", "'0.5Gi'", "instanceMemoryMB: 512\n")
	wantText(t, "docs/costs.md", string(page), "$0.000024", "$0.000003", "180,000", "360,000", "$0.000026", "$0.40", "100,000", "250,000")
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

// Each image that a Dockerfile pulls can be replaced by a copy of one's own. All Dockerfiles pull the same ones, and put the
// licences of all that is linked into the image by the same command, which .ci/image checks.
func TestDockerfiles(t *testing.T) {
	t.Parallel()
	var images [][]string
	licences := map[string]bool{}
	for name, text := range map[string]string{
		"Dockerfile":               shipped(t)["Dockerfile"],
		"that of containerapp":     string(filesOf(t, program(azd.App))["Dockerfile"]),
		"that of containerapp-job": string(filesOf(t, program(azd.Job))["Dockerfile"]),
	} {
		declared := regexp.MustCompile(`(?m)^ARG ([A-Z]+_IMAGE)=(\S+)$`).FindAllStringSubmatch(text, -1)
		var known, pulled []string
		for _, m := range declared {
			known, pulled = append(known, m[1]), append(pulled, m[2])
		}
		images = append(images, pulled)
		licences[regexp.MustCompile(`(?ms)^RUN mkdir /licenses .*?[^\\]$`).FindString(text)] = true
		if !strings.Contains(text, "\nCOPY --from=build /licenses /licenses\n") {
			t.Errorf("%s: the image has no licences", name)
		}
		for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1) {
			if arg, ok := strings.CutPrefix(m[1], "$"); !ok || !slices.Contains(known, arg) {
				t.Errorf("%s: FROM %s is no argument", name, m[1])
			}
		}
	}
	if len(images[0]) != 2 || !slices.Equal(images[0], images[1]) || !slices.Equal(images[0], images[2]) {
		t.Errorf("got %q", images)
	}
	if len(licences) != 1 || licences[""] {
		t.Errorf("got %d commands that collect licences, want the same in each Dockerfile: %v", len(licences), licences)
	}
}
