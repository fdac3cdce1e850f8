package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

const key = "c2VjcmV0c2VjcmV0c2VjcmV0" // of an account that does not exist

func TestSettings(t *testing.T) {
	connection := "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=" + key + ";EndpointSuffix=core.windows.net"
	alarms := []string{"SOLOIST_ALARM=queue", "SOLOIST_STORAGE=" + connection}
	for _, test := range []struct {
		name string
		env  []string
		ok   string   // what validate says
		bad  []string // else the mistakes
	}{
		{name: "nothing", ok: "app demo on directory .soloist"},
		{name: "app", env: []string{"SOLOIST_APP=shop-2"}, ok: "app shop-2 on directory .soloist"},
		{name: "app wrong", env: []string{"SOLOIST_APP=My Shop"}, bad: []string{
			`SOLOIST_APP is "My Shop": want up to 63 lower-case letters, digits and hyphens, no hyphen first`}},
		{name: "container apps job", env: []string{"CONTAINER_APP_JOB_NAME=Nightly", "SOLOIST_STORAGE=memory:"}, ok: "app nightly on memory of this process"},
		{name: "site", env: []string{"WEBSITE_SITE_NAME=My_Shop", "WEBSITE_SLOT_NAME=Production"}, ok: "app my-shop on"},
		{name: "a slot of a long name", env: []string{"WEBSITE_SITE_NAME=contoso-europe-west-production-billing-nightly-reports-app", "WEBSITE_SLOT_NAME=staging"}, ok: "app contoso-europe-west-production-billing-nightly-reports-83bedd1d on"},
		{name: "slot", env: []string{"WEBSITE_SITE_NAME=shop", "WEBSITE_SLOT_NAME=Staging"}, ok: "app shop-staging on"},
		{name: "memory", env: []string{"SOLOIST_STORAGE=memory:"}, ok: "on memory of this process"},
		{name: "dir", env: []string{"SOLOIST_STORAGE=dir:/x/y"}, ok: "on directory /x/y"},
		{name: "dir without path", env: []string{"SOLOIST_STORAGE=dir:"}, bad: []string{
			"SOLOIST_STORAGE is dir: without a path: want dir:PATH"}},
		{name: "storage wrong", env: []string{"SOLOIST_STORAGE=" + key}, bad: []string{
			"SOLOIST_STORAGE: want memory:, dir:PATH, a blob service URL or a connection string"}},
		{name: "no store for it", env: []string{"SOLOIST_STORAGE=postgres://u:" + key + "@h/db?sslmode=disable"}, bad: []string{
			"SOLOIST_STORAGE begins with postgres://, and this program brings no store for it: want host.Program.OpenStore, such as host.Program{OpenStore: postgres.OpenURL}"}},
		{name: "no store that is known", env: []string{"SOLOIST_STORAGE=redis://u:" + key + "@h"}, bad: []string{
			"SOLOIST_STORAGE begins with redis://, and this program brings no store for it: want host.Program.OpenStore"}},
		{name: "connection string", env: []string{"SOLOIST_STORAGE=" + connection}, ok: "on https://acct.blob.core.windows.net/soloist"},
		{name: "emulator", env: []string{"SOLOIST_STORAGE=UseDevelopmentStorage=true"}, ok: "on http://127.0.0.1:10000/devstoreaccount1/soloist"},
		{name: "signed URL", env: []string{"SOLOIST_STORAGE=https://acct.blob.core.windows.net/?sv=1&sig=" + key}, ok: "on https://acct.blob.core.windows.net/soloist"},
		{name: "host's identity", env: []string{"SOLOIST_STORAGE=https://other.blob.core.windows.net", "AzureWebJobsStorage__accountName=acct",
			"AzureWebJobsStorage__credential=magic"}, bad: []string{"azure: AzureWebJobsStorage__credential"}},
		{name: "host's connection", env: []string{"AzureWebJobsStorage=" + connection}, ok: "on https://acct.blob.core.windows.net/soloist"},
		{name: "host's URL", env: []string{"AzureWebJobsStorage__blobServiceUri=https://b.blob.core.windows.net"}, ok: "on https://b.blob.core.windows.net/soloist"},
		{name: "host's account", env: []string{"AzureWebJobsStorage__accountName=acct", "AzureWebJobsStorage__credential=managedidentity",
			"AzureWebJobsStorage__clientId=1"}, ok: "on https://acct.blob.core.windows.net/soloist"},
		{name: "host's principal", env: []string{"AzureWebJobsStorage__accountName=acct", "AzureWebJobsStorage__tenantId=t", "AzureWebJobsStorage__clientSecret=" + key}, bad: []string{
			"azure: AzureWebJobsStorage__tenantId, __clientId and __clientSecret go together"}},
		{name: "host's account missing", env: []string{"AzureWebJobsStorage__credential=managedidentity"}, bad: []string{"azure: no storage"}},
		{name: "functions", env: []string{"FUNCTIONS_CUSTOMHANDLER_PORT=1234"}, bad: []string{"SOLOIST_STORAGE is not set, nor is AzureWebJobsStorage"}},
		{name: "functions port", env: []string{"FUNCTIONS_CUSTOMHANDLER_PORT=x", "SOLOIST_STORAGE=memory:"}, bad: []string{`FUNCTIONS_CUSTOMHANDLER_PORT is "x": want a port`}},
		{name: "container", env: []string{"SOLOIST_CONTAINER=ab-c", "SOLOIST_STORAGE=" + connection}, ok: "windows.net/ab-c"},
		{name: "lease beyond the store", env: []string{"SOLOIST_LEASE=90s"}, bad: []string{`SOLOIST_LEASE is "90s": want whole seconds from 1s to 1m0s`}},
		{name: "addr is a port", env: []string{"SOLOIST_ADDR=8080"}, bad: []string{`SOLOIST_ADDR is "8080": want host:port or :port`}},
		{name: "plain ones", env: []string{"SOLOIST_LEASE=45s", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=0s", "SOLOIST_TICK_TIMEOUT=30m", "SOLOIST_LOG_FORMAT=text",
			"SOLOIST_LOG_LEVEL=warn"}, ok: "demo"},
		{name: "history in days", env: []string{"SOLOIST_HISTORY=90d"}, ok: "demo"},
		{name: "history of a minute", env: []string{"SOLOIST_HISTORY=1m"}, bad: []string{`SOLOIST_HISTORY is "1m": want 0, or a duration of an hour or more`}},
		{name: "grace negative", env: []string{"SOLOIST_GRACE=-2s"}, bad: []string{`SOLOIST_GRACE is "-2s": want a duration of zero or more`}},
		{name: "log format wrong", env: []string{"SOLOIST_LOG_FORMAT=xml"}, bad: []string{`SOLOIST_LOG_FORMAT is "xml": want text or json`}},
		{name: "log level wrong", env: []string{"SOLOIST_LOG_LEVEL=loud"}, bad: []string{`SOLOIST_LOG_LEVEL is "loud": want debug, info, warn or error`}},
		{name: "job", env: []string{"SOLOIST_JOB_NIGHT_REPORT_SCHEDULE=0 3 * * *", "SOLOIST_JOB_NIGHT_REPORT_TIMEZONE=UTC", "SOLOIST_JOB_BEAT_PAUSED=true"}, ok: "demo"},
		{name: "job's schedule", env: []string{"SOLOIST_JOB_BEAT_SCHEDULE=often"}, bad: []string{`SOLOIST_JOB_BEAT_SCHEDULE is "often": byte 0: 1 fields, want 5`}},
		{name: "job's union with a mistake", env: []string{"SOLOIST_JOB_BEAT_SCHEDULE=@daily ; 0 9 * * fri#6"}, bad: []string{
			`SOLOIST_JOB_BEAT_SCHEDULE is "@daily ; 0 9 * * fri#6": byte 17, day-of-week field: fri#6 never fires, want fri#1 to fri#5`}},
		{name: "job's zone", env: []string{"SOLOIST_JOB_NIGHT_REPORT_TIMEZONE=Nowhere"}, bad: []string{`SOLOIST_JOB_NIGHT_REPORT_TIMEZONE is "Nowhere": it is unknown; want an IANA name`}},
		{name: "token", env: []string{"SOLOIST_READ_TOKEN=s3cret\n"}, bad: []string{"SOLOIST_READ_TOKEN (not shown)"}},
		{name: "short admin token", env: []string{"SOLOIST_ADMIN_TOKEN=0123456789abcde"}, bad: []string{"SOLOIST_ADMIN_TOKEN (not shown) has less than 16 characters, so it can be guessed: want a random one, such as openssl rand -hex 16 prints"}},
		{name: "tokens", env: []string{"SOLOIST_ADMIN_TOKEN=a:b~!0123456789a", "SOLOIST_READ_TOKEN=" + key}, ok: "demo"},
		{name: "job's pause", env: []string{"SOLOIST_JOB_BEAT_PAUSED=perhaps"}, bad: []string{`SOLOIST_JOB_BEAT_PAUSED is "perhaps": want true or false`}},
		{name: "alerts", env: []string{"SOLOIST_ALERT_WEBHOOK=https://me:" + key + "@hooks.example/x?sig=1", "SOLOIST_ALERT_SECRET=" + key, "SOLOIST_ALERT_FAILURES=3"}, ok: "demo"},
		{name: "alerts to no URL", env: []string{"SOLOIST_ALERT_WEBHOOK=" + key}, bad: []string{"SOLOIST_ALERT_WEBHOOK (not shown) is no URL: want https://HOST/PATH"}},
		{name: "alerts with a short secret", env: []string{"SOLOIST_ALERT_WEBHOOK=https://hooks.example", "SOLOIST_ALERT_SECRET=x"}, bad: []string{"SOLOIST_ALERT_SECRET (not shown) has less than 16 characters"}},
		{name: "secret of no alerts", env: []string{"SOLOIST_ALERT_SECRET=" + key}, bad: []string{"SOLOIST_ALERT_SECRET signs nothing without SOLOIST_ALERT_WEBHOOK"}},
		{name: "failures of alerts", env: []string{"SOLOIST_ALERT_FAILURES=0"}, bad: []string{`SOLOIST_ALERT_FAILURES is "0": want a number from 1 to 1000`}},
		{name: "job's ping", env: []string{"SOLOIST_JOB_NIGHT_REPORT_PING=https://hc.example/" + key}, ok: "demo"},
		{name: "job's ping to no URL", env: []string{"SOLOIST_JOB_BEAT_PING=" + key}, bad: []string{"SOLOIST_JOB_BEAT_PING (not shown) is no URL"}},
		{name: "alarm", env: []string{"SOLOIST_ALARM=queue", "SOLOIST_STORAGE=" + connection}, ok: "windows.net/soloist"},
		{name: "alarm, all of it", env: []string{"SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE=wake-up", "SOLOIST_ALARM_LEAD=0", "SOLOIST_STAY=0", "AzureWebJobsStorage__accountName=acct",
			"AzureWebJobsStorage__queueServiceUri=https://acct.queue.core.windows.net"}, ok: "windows.net/soloist"},
		{name: "alarm of an app whose name is no queue's", env: []string{"SOLOIST_ALARM=queue", "SOLOIST_APP=a--" + strings.Repeat("b", 60), "SOLOIST_STORAGE=" + connection}, ok: "windows.net/soloist"},
		{name: "alarm of another kind", env: []string{"SOLOIST_ALARM=clock"}, bad: []string{`SOLOIST_ALARM is "clock": want queue, or not set`}},
		{name: "alarm in memory", env: []string{"SOLOIST_ALARM=queue", "SOLOIST_STORAGE=memory:"}, bad: []string{
			"SOLOIST_ALARM is queue, which is in a storage account"}},
		{name: "alarm on a directory", env: []string{"SOLOIST_ALARM=queue"}, bad: []string{"SOLOIST_ALARM is queue, which is in a storage account of Azure, and the settings name none: want one in SOLOIST_STORAGE or AzureWebJobsStorage, or no alarm"}},
		{name: "queue wrong", env: append(alarms, "SOLOIST_ALARM_QUEUE=Wake_Up"), bad: []string{`SOLOIST_ALARM_QUEUE is "Wake_Up": want 3 to 56 lower-case letters, digits and single hyphens between them`}},
		{name: "lead of an alarm negative", env: append(alarms, "SOLOIST_ALARM_LEAD=-1s"), bad: []string{`SOLOIST_ALARM_LEAD is "-1s": want a duration from 0 to 1h`}},
		{name: "time of a pass too short", env: []string{"SOLOIST_TICK_TIMEOUT=0"}, bad: []string{`SOLOIST_TICK_TIMEOUT is "0": want a duration of a second or more, such as 30m`}},
		{name: "stay too short", env: append(alarms, "SOLOIST_STAY=500ms"), bad: []string{`SOLOIST_STAY is "500ms": want 0, or a duration from 1s to 24h`}},
		{name: "stay shorter than the lead", env: append(alarms, "SOLOIST_ALARM_LEAD=3m"), bad: []string{"SOLOIST_ALARM_LEAD is 3m0s and SOLOIST_STAY 2m0s, so a replica would end before the tick that it was woken up for: want a stay of at least the lead, or 0"}},
		{name: "presence too often", env: []string{"SOLOIST_PRESENCE=5s"}, bad: []string{`SOLOIST_PRESENCE is "5s": want 0, or a duration from 10s to 20m`}},
		{name: "sweep of what is used", env: []string{"SOLOIST_SWEEP=5m"}, bad: []string{`SOLOIST_SWEEP is "5m": want a duration of an hour or more, such as 36h or 30d`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t, test.env...)
			got := run(t.Context(), host.Program{Work: work()}, "validate")
			wantText(t, "a secret is told", got.out+got.err, "!"+key)
			if test.ok != "" {
				if got.code != 0 || !strings.HasPrefix(got.out, "ok: 2 jobs, 1 singleton, app ") || !strings.Contains(got.out, test.ok) || got.err != "" {
					t.Errorf("got %+v, want ok and %q", got, test.ok)
				}
				return
			}
			checkMistakes(t, got, test.bad)
		})
	}
}

// checkMistakes wants each mistake to be told once, and no other.
func checkMistakes(t *testing.T, got result, want []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(got.err), "\n")
	if got.code != 2 || got.out != "" || !strings.HasPrefix(lines[0], "demo: ") || len(lines) != 1+len(want) {
		t.Errorf("got %+v, want code 2 and %d mistakes", got, len(want))
	}
	for _, w := range want {
		wantEqual(t, "mistakes like "+w, strings.Count(got.err, "\n  "+w), 1)
	}
}

func TestMistakesOfSettingsAndJobsComeTogether(t *testing.T) {
	environment(t, "SOLOIST_GRACE=x", "SOLOIST_STORAGE=y", "SOLOIST_JOB_REPORT_SCHEDULE=@daily")
	var none *soloist.Job
	got := call(t, host.Program{Work: append(chain(),
		soloist.Job{Name: "Beat", Schedule: "@every 1m"}, nil, none, &soloist.Singleton{Name: "leader", Do: do, Backoff: -1},
	)}, "serve")
	checkMistakes(t, got, []string{
		`SOLOIST_GRACE is "x"`,
		"SOLOIST_STORAGE: want",
		"SOLOIST_JOB_REPORT_SCHEDULE is set: the ticks of report are those of the jobs that it follows, import",
		"work 4 of 6 is <nil>: want a soloist.Job or a soloist.Singleton",
		"work 5 of 6 is a nil *soloist.Job",
		`job "Beat": Name is "Beat"`,
		`job "Beat": Do is nil`,
		`singleton "leader": Backoff is -1ns`,
	})
}

// A program can bring the store for a URL. What the store says is shown, without the password.
func TestProgramOpensURL(t *testing.T) {
	const url = "postgres://u:" + key + "@h/db?sslmode=disable"
	environment(t, "SOLOIST_STORAGE="+url)
	got := ""
	p := host.Program{Work: work(), OpenStore: func(url string) (store.Store, error) { got = url; return &local.Memory{}, nil }}
	wantLines(t, p, "validate", 0, "on *local.Memory")
	wantEqual(t, "URL", got, url)
	closed := 0
	p.OpenStore = func(string) (store.Store, error) { return closes{&local.Memory{}, func() { closed++ }}, nil }
	wantLines(t, p, "validate", 0, "app demo on")
	wantEqual(t, "closed", closed, 1)
	p.Store = closes{&local.Memory{}, func() { t.Error("a store that was given is closed") }}
	wantLines(t, p, "validate", 0, "app demo on")
	p.Store = nil
	p.OpenStore = func(string) (store.Store, error) { return nil, errors.New("no such database") }
	wantLines(t, p, "validate", 2, "\n  SOLOIST_STORAGE: no such database", "!"+key)
	p.OpenStore = func(string) (store.Store, error) {
		return newGated(&local.Memory{}, refuse(errors.New("refused "+key))), nil
	}
	site, log := logged(t, p)
	site.tick()
	if text := log.String(); !strings.Contains(text, "refused") || strings.Contains(text, key) {
		t.Errorf("want refusals without the password:\n%s", text)
	}
}

// closes is a store that is told of its end.
type closes struct {
	*local.Memory
	end func()
}

func (s closes) Close() { s.end() }

func TestOneTokenForBothIsWarnedOf(t *testing.T) {
	for token, warned := range map[string]string{adminToken: "", readToken: "!"} {
		environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken, "SOLOIST_READ_TOKEN="+token)
		wantLines(t, host.Program{Work: work()}, "validate", 0, warned+"SOLOIST_READ_TOKEN is the same as SOLOIST_ADMIN_TOKEN: whoever may read may change all", "!"+token)
	}
}

func TestUnknownSettingsAreWarnedOf(t *testing.T) {
	environment(t, "SOLOIST_LAESE=1", "SOLOIST_READ_TOKENS="+key, "SOLOIST_ADMIN_TOKEN="+key, "SOLOIST_JOB_NIGHTREPORT_PAUSED=true",
		"SOLOIST_JOB_GONE_TIMEZONE=UTC", "SOLOIST_LOG_FORMAT=text", "SOLOIST_STAY=1m")
	p := host.Program{Work: work()}
	got := wantLines(t, p, "next beat", 0, "!"+key, "!ADMIN") // which is a setting that there is
	for _, want := range []string{
		`msg="SOLOIST_LAESE is not a setting: did you mean SOLOIST_LEASE?"`,
		`msg="SOLOIST_READ_TOKENS is not a setting: did you mean SOLOIST_READ_TOKEN?"`,
		`msg="SOLOIST_JOB_NIGHTREPORT_PAUSED is not a setting of any job of this program: did you mean SOLOIST_JOB_NIGHT_REPORT_PAUSED?"`,
		`msg="SOLOIST_JOB_GONE_TIMEZONE is not a setting of any job of this program"`,
		`msg="SOLOIST_STAY has no effect without SOLOIST_ALARM=queue"`,
	} {
		wantEqual(t, "warnings like "+want, strings.Count(got.err, want), 1)
	}
	// They may be the cause of a mistake, and are mistakes where these are asked for.
	for want, grace := range map[string]string{"demo: 4 mistakes\n  SOLOIST_JOB_GONE": "", "demo: 5 mistakes\n  SOLOIST_GRACE": "x"} {
		t.Setenv("SOLOIST_GRACE", grace)
		got = wantLines(t, p, "validate", 2, want, "\n  SOLOIST_LAESE is not a setting: did you mean SOLOIST_LEASE?\n")
		wantEqual(t, "how often it is told", strings.Count(got.err, "LAESE is not"), 1)
	}
	t.Setenv("SOLOIST_GRACE", "x")
	wantLines(t, p, "next", 2, "demo: 1 mistake\n  SOLOIST_GRACE", "\n  SOLOIST_LAESE is not")
	// What Kubernetes says of a service is nobody's mistake.
	environment(t, "SOLOIST_SERVICE_HOST=10.0.0.1", "SOLOIST_SERVICE_PORT=80", "SOLOIST_SERVICE_PORT_HTTP=80", "SOLOIST_PORT=tcp://10.0.0.1:80",
		"SOLOIST_PORT_80_TCP=tcp://10.0.0.1:80", "SOLOIST_PORT_80_TCP_ADDR=10.0.0.1", "SOLOIST_JOBS_PORT_80_TCP_PROTO=tcp")
	wantLines(t, p, "validate", 0, "!is not a setting")
	environment(t, "SOLOIST_SWEEP=720h", "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	_, log := logged(t, host.Program{Store: &local.Memory{}, Work: work()[:1]})
	wantText(t, "log", log.String(), "SOLOIST_SWEEP has no effect in Functions")
}

// TestScheduleWarnings has them where a program is checked, and at the start: next alone is asked too late.
func TestScheduleWarnings(t *testing.T) {
	environment(t, "SOLOIST_STORAGE=memory:", "SOLOIST_LOG_FORMAT=text", "SOLOIST_ADDR=127.0.0.1:0", "TZ=America/Denver")
	jobs := []soloist.Work{
		soloist.Job{Name: "fine", Schedule: "@every 1m", Do: do},
		soloist.Job{Name: "often", Schedule: "* */15 * * * *", Do: do},
		soloist.Job{Name: "either", Schedule: "0 0 1-7 * 1", TimeZone: "UTC", Do: do},
	}
	const (
		often  = "often: * in the second field: 60 runs in each minute that matches"
		either = "either: both day-of-month and day-of-week are set: either will do"
		zone   = `TZ is \"America/Denver\", which has no effect: a schedule without a time zone is in UTC, ` +
			`such as that of often; set TimeZone, or SOLOIST_JOB_OFTEN_TIMEZONE`
	)
	got := wantLines(t, host.Program{Work: jobs}, "validate", 0, "warning: "+often, "warning: "+either)
	wantEqual(t, "validate: of the zone", strings.Count(got.err, zone), 1)
	over, stop := context.WithCancel(t.Context())
	stop()
	got = run(over, host.Program{Work: jobs}, "serve")
	for _, want := range []string{often, either, zone} {
		wantEqual(t, "serve: "+want, strings.Count(got.out, want), 1)
	}
	wantLines(t, host.Program{Work: jobs[:1]}, "validate", 0, "!TZ", "!warning")
}

// Whatever a variable is set to is taken, or named as a mistake; what is secret
// of it is told in neither case, and nothing that moves a terminal's cursor.
func FuzzSettings(f *testing.F) {
	// Variables whose values may be told, and those with a place for a secret, which is %.
	settings := strings.Fields(`SOLOIST_APP=% SOLOIST_CONTAINER=% SOLOIST_LEASE=% SOLOIST_ADDR=% SOLOIST_GRACE=% SOLOIST_HISTORY=%
		SOLOIST_FUNCTION_TIMEOUT=% SOLOIST_TICK_TIMEOUT=% SOLOIST_FUNCTION_FAILURE=% SOLOIST_LOG_FORMAT=% SOLOIST_LOG_LEVEL=%
		SOLOIST_JOB_BEAT_SCHEDULE=% SOLOIST_JOB_BEAT_TIMEZONE=% SOLOIST_JOB_BEAT_PAUSED=% SOLOIST_ALERT_FAILURES=%
		FUNCTIONS_CUSTOMHANDLER_PORT=% WEBSITE_SITE_NAME=% WEBSITE_SLOT_NAME=% CONTAINER_APP_NAME=% AzureWebJobsStorage__accountName=%`)
	shown := len(settings)
	settings = append(settings, strings.Fields(`SOLOIST_ALERT_WEBHOOK=% SOLOIST_ALERT_WEBHOOK=https://me:%@hooks.example/
		SOLOIST_ALERT_SECRET=% SOLOIST_JOB_BEAT_PING=https://hc.example/% SOLOIST_READ_TOKEN=% SOLOIST_ADMIN_TOKEN=%
		AzureWebJobsStorage__clientSecret=% AzureWebJobsStorage__blobServiceUri=https://acct.blob.core.windows.net/?sig=%
		SOLOIST_STORAGE=https://acct.blob.core.windows.net/?sig=% SOLOIST_STORAGE=https://me:%@acct.blob.core.windows.net/
		SOLOIST_STORAGE=AccountName=acct;AccountKey=% SOLOIST_STORAGE=BlobEndpoint=https://x;SharedAccessSignature=sig=%
		AzureWebJobsStorage=AccountName=acct;AccountKey=% AzureWebJobsStorage=BlobEndpoint=https://x;SharedAccessSignature=sig=%`)...)
	for i := range settings {
		if i < shown {
			for _, value := range []string{"", "x", "45s", "-1s", "\x1b[2J\r\n", "TZ=UTC", "é", strings.Repeat("9", 300)} {
				f.Add(byte(i), "", value)
			}
			continue
		}
		for _, more := range []string{"", ";", "\n", "&", "%", ";AccountKey=", ";BlobEndpoint=:", "/?"} {
			f.Add(byte(i), "", more)
			f.Add(byte(i), more, "")
		}
	}
	f.Fuzz(func(t *testing.T, which byte, before, after string) {
		n, hidden := int(which)%len(settings), key
		if n < shown {
			hidden = ""
		}
		name, value, _ := strings.Cut(settings[n], "=")
		value = strings.Replace(value, "%", before+hidden+after, 1)
		if strings.ContainsRune(value, 0) {
			return // none can have that
		}
		pairs := []string{name + "=" + value}
		if !strings.Contains(name, "orage") {
			pairs = append(pairs, "SOLOIST_STORAGE=memory:") // which the platforms ask for
		}
		environment(t, pairs...)
		got := call(t, host.Program{Work: work()}, "validate")
		told := got.out + got.err
		wantText(t, name+": a secret is told", told, "!"+key)
		if i := strings.IndexFunc(told, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }); i >= 0 {
			t.Errorf("%s=%q: %q is told raw", name, value, told[i:])
		}
		family, _, _ := strings.Cut(name, "__")
		if got.code != 0 && (got.code != 2 || !strings.Contains(told, family)) {
			t.Errorf("%s=%q: got code %d, %s", name, value, got.code, told)
		}
	})
}

// validate and doctor tell what a lease costs that is shorter than the store's shortest, and no other.
func TestPriceOfShortLease(t *testing.T) {
	program := host.Program{Work: []soloist.Work{
		soloist.Singleton{Name: "feed", Lease: 3 * time.Second, Do: do},
		soloist.Singleton{Name: "parts", Lease: time.Second, Shards: 4, Do: do},
		soloist.Job{Name: "report", Schedule: "@hourly", Lease: 5 * time.Second, Do: do},
		soloist.Job{Name: "nightly", Schedule: "@daily", Do: do},
	}}
	environment(t, "SOLOIST_STORAGE=UseDevelopmentStorage=true")
	wantRun(t, program, "validate", 0, `
		ok: 2 jobs, 2 singletons, app demo on http://127.0.0.1:10000/devstoreaccount1/soloist
		feed: lease 3s, shorter than the 15s of the store, so its holder beats: about $1.37 a month for the replica that runs it and $1.14 for each other one
		parts: lease 1s, shorter than the 15s of the store, so its holder beats: about $3.65 a month for the replica that runs it and $3.42 for each other one, for each of 4 shards
		report: lease 5s, shorter than the 15s of the store, so its holder beats: about $0.0013 for each hour of its runs, and as much at most for each other replica
	`)
	wantLines(t, program, "validate --json", 0, `"feed: lease 3s,`)
	environment(t, "SOLOIST_STORAGE=UseDevelopmentStorage=true", "SOLOIST_LEASE=2s")
	wantLines(t, program, "validate", 0, "nightly: lease 2s,")
	environment(t, "SOLOIST_STORAGE=memory:")
	wantText(t, "validate", run(t.Context(), program, "validate").out, "!beats")
}

// TestDeadlinesThatNothingKeeps has ways of running that look for ticks once a minute.
func TestDeadlinesThatNothingKeeps(t *testing.T) {
	const apps, functions, none = "CONTAINER_APP_JOB_NAME=demo", "FUNCTIONS_CUSTOMHANDLER_PORT=1", "X=1"
	const minutely, half, s = "* * * * *", "30 * * * * *", time.Second
	for name, tt := range map[string]struct {
		where string
		job   soloist.Job
		want  string // empty: it can be kept
	}{
		"less than a start":                   {apps, soloist.Job{Schedule: minutely, Late: soloist.Late{Start: 5 * s}}, "its starting deadline is 5s"},
		"a start":                             {apps, soloist.Job{Schedule: minutely, Late: soloist.Late{Start: 10 * s}}, ""},
		"between two looks":                   {apps, soloist.Job{Schedule: half, Late: soloist.Late{Start: 39 * s}}, ":30Z 40s after it at the earliest"},
		"long enough":                         {apps, soloist.Job{Schedule: half, Late: soloist.Late{Start: 40 * s}}, ""},
		"one lease, as late ones are skipped": {apps, soloist.Job{Schedule: "@every 30s", Late: soloist.Late{Missed: soloist.SkipMissed}}, "its starting deadline is 30s"},
		"no deadline":                         {apps, soloist.Job{Schedule: half}, ""},
		"a replica that serves":               {none, soloist.Job{Schedule: minutely, Late: soloist.Late{Start: s}}, ""},
		"a timer of its own":                  {functions, soloist.Job{Schedule: half, Late: soloist.Late{Start: 5 * s}}, ""},
		"the timer for all":                   {functions, soloist.Job{Schedule: "30 2 * * * ; 30 5 12 * * *", Late: soloist.Late{Start: 5 * s}}, "the function tick looks for the tick of"},
		"the timer for all, at whole minutes": {functions, soloist.Job{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Late: soloist.Late{Start: 5 * s}}, ""},
	} {
		environment(t, tt.where, "SOLOIST_STORAGE=memory:")
		tt.job.Name, tt.job.Do = "x", do
		p := host.Program{Work: []soloist.Work{tt.job}, Now: spring}
		code, says := 0, "!its starting deadline"
		if tt.want != "" {
			code, says = 2, "its starting deadline"
		}
		for _, command := range []string{"validate", "doctor"} {
			wantLines(t, p, command, code, tt.want, says)
		}
		wantEqual(t, name+": code of next", call(t, p, "next").code, 0)
	}
}
