package functions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
)

func TestFunctionTimeout(t *testing.T) {
	const override = "AzureFunctionsJobHost__functionTimeout"
	for _, test := range []struct {
		name, file, override, sku string
		setting                   time.Duration
		want                      time.Duration
		wrong                     string
	}{
		{name: "nothing", want: 30 * time.Minute},
		{name: "consumption", sku: "Dynamic", want: 5 * time.Minute},
		{name: "file without it", file: `{"version":"2.0"}`, sku: "Dynamic", want: 5 * time.Minute},
		{name: "file", file: `{"functionTimeout":"00:10:00"}`, want: 10 * time.Minute},
		{name: "days", file: `{"functionTimeout":"1.02:03:04"}`, want: 26*time.Hour + 3*time.Minute + 4*time.Second},
		{name: "short", file: `{"functionTimeout":"00:01"}`, want: time.Minute},
		{name: "byte order mark", file: "\ufeff" + `{"functionTimeout":"00:10:00"}`, want: 10 * time.Minute},
		{name: "no end", file: `{"functionTimeout":"-1"}`, want: 0},
		{name: "garbage", file: `{"functionTimeout":"soon"}`, want: 30 * time.Minute, wrong: `functionTimeout is "soon": want hh:mm:ss or -1`},
		{name: "nothing of it", file: `{"functionTimeout":"00:00:00"}`, want: 30 * time.Minute, wrong: "want a second at least"},
		{name: "no JSON", file: `version 2`, want: 30 * time.Minute, wrong: "host.json"},
		{name: "override", file: `{"functionTimeout":"00:10:00"}`, override: "00:07:00", want: 7 * time.Minute},
		{name: "wrong override", file: `{"functionTimeout":"00:10:00"}`, override: "7m", want: 30 * time.Minute, wrong: override},
		{name: "setting", file: `{"functionTimeout":"00:10:00"}`, override: "00:07:00", setting: time.Minute, want: time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			if test.file != "" {
				os.WriteFile(filepath.Join(root, "host.json"), []byte(test.file), 0o644)
			}
			t.Setenv("FUNCTIONS_APP_ROOT_PATH", root)
			t.Setenv("WEBSITE_SKU", test.sku)
			t.Setenv(override, test.override)
			got, err := functionTimeout(&app.Settings{FunctionTimeout: test.setting})
			if got != test.want || (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %s, %v; want %s, %q", got, err, test.want, test.wrong)
			}
		})
	}
}

// Runs, grace and margin never exceed the time-out.
func TestInvocationLimits(t *testing.T) {
	for _, test := range []struct{ timeout, grace, run, left time.Duration }{
		{0, 25 * time.Second, 0, 25 * time.Second},
		{10 * time.Minute, 25 * time.Second, 9*time.Minute + 5*time.Second, 25 * time.Second},
		{5 * time.Minute, 0, 4*time.Minute + 30*time.Second, 0},
		{10 * time.Second, 25 * time.Second, 6500 * time.Millisecond, 2500 * time.Millisecond},
		{time.Second, 25 * time.Second, 650 * time.Millisecond, 250 * time.Millisecond},
	} {
		if got := app.Divide(test.timeout, test.grace); got.Run != test.run || got.Grace != test.left {
			t.Errorf("%s, %s: got %+v", test.timeout, test.grace, got)
		}
	}
}

// What is written is read as the same, also beyond a day: the host takes 30:00:00
// for thirty days.
func TestHostSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{10 * time.Minute: "00:10:00", 23*time.Hour + 59*time.Second: "23:00:59",
		24 * time.Hour: "1.00:00:00", 30*time.Hour + 2*time.Minute: "1.06:02:00"} {
		got := hostSpan(d)
		if back, err := timeSpan(got); got != want || err != nil || back != d {
			t.Errorf("%s: got %q, read as %s, %v; want %q", d, got, back, err, want)
		}
	}
}

// The text of a timer fires at the job's ticks, or there is none.
func TestNcrontab(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, test := range []struct{ schedule, zone, want string }{
		{"* * * * *", "", "0 * * * * *"},
		{"30 2 * * *", "", "0 30 2 * * *"},
		{"30 2 * * *", "Etc/UTC", "0 30 2 * * *"},
		{"30 2 * * *", "Europe/Berlin", ""},
		{"30 2 * * *", "Africa/Abidjan", "0 30 2 * * *"},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "", ""},
		{"0 * * * *", "Asia/Tokyo", "0 0 * * * *"}, // the same in all zones of whole hours
		{"0 * * * *", "Asia/Kolkata", ""},          // half an hour off
		{"15 30 2 * * *", "", "15 30 2 * * *"},
		{"0 0 13 * 5", "", ""},                        // on the 13th or a Friday
		{"ncrontab 0 0 0 13 * 5", "", "0 0 0 13 * 5"}, // on Friday the 13th
		{"0 0 L * *", "", ""},
		{"0 0 15W * *", "", ""},
		{"0 0 * * fri#3", "", ""},
		{"0 0 * * friL", "", ""},
		{"0 9 * * * ; 30 17 * * *", "", ""},
		{"@every 5m ; @every 10m", "", ""},
		{"ncrontab 0 9 * * * ; 0 17 * * *", "", ""},
		{"0 9 * * mon-fri", "", "0 0 9 * * 1-5"},
		{"0 9 * * 7", "", "0 0 9 * * 0"},
		{"0 9 ? * 1", "", "0 0 9 * * 1"},
		{"0 9 29 2 *", "", "0 0 9 29 2 *"},
		{"5/10 * * * *", "", "0 5-59/10 * * * *"},
		{"*/7 * * * *", "", "0 */7 * * * *"},
		{"@hourly", "", "0 0 * * * *"},
		{"@daily", "", "0 0 0 * * *"},
		{"@weekly", "", "0 0 0 * * 0"},
		{"@every 10s", "", "*/10 * * * * *"},
		{"@every 1m", "", "0 * * * * *"},
		{"@every 60s", "Europe/Berlin", "0 * * * * *"},
		{"@every 5m", "", "0 */5 * * * *"},
		{"@every 6h", "", "0 0 */6 * * *"},
		{"@every 24h", "", "0 0 0 * * *"},
		{"@every 7m", "", ""},
		{"@every 90s", "", ""},
		{"@every 48h", "", ""},
		{"* * * * * *", "", "* * * * * *"},
	} {
		got, ok := ncrontab(soloist.Job{Name: "job", Schedule: test.schedule, TimeZone: test.zone}, now)
		if ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s %s: got %q, %t; want %q", test.schedule, test.zone, got, ok, test.want)
		}
	}
}
