package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/logging"
)

// Settings are those that each program has; a job's own are jobSettings. The
// tags are the documentation, which help prints: what it is, what unset means,
// what is wanted of a value. A tag one has all values that there are.
type Settings struct {
	App             string         `envconfig:"SOLOIST_APP" doc:"namespace of the records; programs of one name share their ticks" unset:"CONTAINER_APP_NAME, CONTAINER_APP_JOB_NAME, WEBSITE_SITE_NAME with its slot, else the program's name" want:"up to 63 lower-case letters, digits and hyphens, no hyphen first"`
	Storage         string         `envconfig:"SOLOIST_STORAGE" doc:"connection string, blob service URL, dir:PATH, memory:, or the URL of a store that the program brings, such as postgres://HOST/DATABASE" unset:"the AzureWebJobsStorage family, else dir:.soloist" secret:"true"`
	Container       string         `envconfig:"SOLOIST_CONTAINER" doc:"blob container" unset:"soloist" want:"3 to 63 lower-case letters, digits and single hyphens between them"`
	Lease           time.Duration  `envconfig:"SOLOIST_LEASE" doc:"how long a dead replica keeps the others away" unset:"30s" want:"whole seconds within what the store takes, such as 30s"`
	Addr            string         `envconfig:"SOLOIST_ADDR" doc:"where HTTP listens" unset:"127.0.0.1:8080, which only this machine reaches, or the next free port; :8080 on Container Apps, App Service and Kubernetes, and as the first process of a container; in Functions the port that the host names" want:"host:port or :port, with a port up to 65535"`
	Grace           time.Duration  `envconfig:"SOLOIST_GRACE" doc:"time for running jobs after SIGTERM" unset:"25s" want:"a duration of zero or more, such as 25s"`
	History         time.Duration  `envconfig:"SOLOIST_HISTORY" doc:"for how long to keep all outcomes in a log beside each record, which costs a write for each ten of them, and details of failures, which cost one each; 0: the record keeps the last 20" unset:"30d" want:"0, or a duration of an hour or more, such as 36h or 90d"`
	Presence        time.Duration  `envconfig:"SOLOIST_PRESENCE" doc:"how often at least a replica that serves writes that it is up, for the list of replicas; 0: never" unset:"2m" want:"0, or a duration from 10s to 20m"`
	Sweep           time.Duration  `envconfig:"SOLOIST_SWEEP" doc:"a replica that serves, outside of Functions, removes once a day locks that nobody has held for so long" unset:"they stay" want:"a duration of an hour or more, such as 36h or 30d"`
	Alarm           Alarm          `envconfig:"SOLOIST_ALARM" doc:"queue: a message in Azure Queue Storage wakes the app up before its next tick, so that no replica has to be up between two ticks" unset:"a replica is up all the time, or a timer of the platform wakes the app up" one:"queue" want:"queue, or not set"`
	AlarmQueue      string         `envconfig:"SOLOIST_ALARM_QUEUE" doc:"that queue, in the storage account of the records" unset:"the app's name with -alarm" want:"3 to 56 lower-case letters, digits and single hyphens between them"`
	AlarmLead       time.Duration  `envconfig:"SOLOIST_ALARM_LEAD" doc:"how long before a tick the app is woken up, for the platform to notice and to start it" unset:"60s" want:"a duration from 0 to 1h, such as 60s"`
	Stay            time.Duration  `envconfig:"SOLOIST_STAY" doc:"with SOLOIST_ALARM: a replica waits for ticks that are due within that time, and ends when none is and nothing has run for so long; 0: serve stays until the platform ends it" unset:"120s" want:"0, or a duration from 1s to 24h that is no shorter than SOLOIST_ALARM_LEAD"`
	TickTimeout     time.Duration  `envconfig:"SOLOIST_TICK_TIMEOUT" doc:"how long the command tick may go on, two minutes less than replicaTimeout of a job of Container Apps: before that it stops its runs and leaves the rest to the next execution" unset:"it goes on until nothing is to be done" want:"a duration of a second or more, such as 30m"`
	ReadToken       string         `envconfig:"SOLOIST_READ_TOKEN" doc:"when set, /api/v1 and /metrics ask for it: Authorization: Bearer TOKEN, and the page has a form for it; 16 characters at least" unset:"they are open" secret:"true"`
	AdminToken      string         `envconfig:"SOLOIST_ADMIN_TOKEN" doc:"what each change over HTTP asks for, in the same way; 16 characters at least" unset:"nothing over HTTP changes state" secret:"true"`
	By              string         `envconfig:"SOLOIST_BY" doc:"whom pause, resume, run, cancel and step-down name as the one who orders it" unset:"the user and machine that call the program"`
	AlertWebhook    string         `envconfig:"SOLOIST_ALERT_WEBHOOK" doc:"URL that gets a message when something is wrong with a job, and when it is right again" unset:"no messages" secret:"true"`
	AlertSecret     string         `envconfig:"SOLOIST_ALERT_SECRET" doc:"signs these messages; 16 characters at least" unset:"they are not signed" secret:"true"`
	AlertFailures   int            `envconfig:"SOLOIST_ALERT_FAILURES" doc:"how many failures of a job in a row are worth a message" unset:"1" want:"a number from 1 to 1000"`
	FunctionTimeout time.Duration  `envconfig:"SOLOIST_FUNCTION_TIMEOUT" doc:"in Functions, how long an invocation may take" unset:"functionTimeout of host.json, else the plan's default" want:"a duration of a second or more, such as 10m"`
	FunctionFailure Failure        `envconfig:"SOLOIST_FUNCTION_FAILURE" doc:"in Functions, what an invocation answers after a run has failed: log, all is well but for the log, since the record has it; or error. It is an error anyway that a job could not be looked after" unset:"log" one:"log error" want:"log or error"`
	LogFormat       logging.Format `envconfig:"SOLOIST_LOG_FORMAT" doc:"text or json; on a terminal, text is short and, without NO_COLOR, in colour" unset:"text on a terminal, else json" one:"text json" want:"text or json"`
	LogLevel        slog.Level     `envconfig:"SOLOIST_LOG_LEVEL" doc:"debug, info, warn or error" unset:"info" want:"debug, info, warn or error"`
}

// JobSettings change one job without a new build: SOLOIST_JOB_<NAME>_...
type JobSettings struct {
	Schedule string `envconfig:"SCHEDULE" doc:"schedule of one job"`
	TimeZone string `envconfig:"TIMEZONE" doc:"its time zone"`
	Paused   bool   `envconfig:"PAUSED" doc:"true: its ticks are skipped" want:"true or false"`
	Ping     string `envconfig:"PING" doc:"URL of a dead-man's switch, such as healthchecks.io, that hears of each run" secret:"true"`
}

// read returns all that is wrong with the variables, each of which then has
// its default.
func (s *Settings) read(program string) []error {
	preset := Settings{
		App:       defaultApp(program),
		Container: "soloist",
		Lease:     30 * time.Second,
		Addr:      defaultAddr(),
		Grace:     25 * time.Second,
		History:   30 * 24 * time.Hour,
		Presence:  2 * time.Minute,
		AlarmLead: time.Minute,
		Stay:      2 * time.Minute,

		AlertFailures: 1,
	}
	*s = preset
	errs := readFields("", s)
	for _, rule := range []struct {
		name string
		ok   bool
	}{
		{"SOLOIST_APP", appRule.MatchString(s.App)},
		{"SOLOIST_CONTAINER", isContainer(s.Container)},
		{"SOLOIST_LEASE", s.Lease > 0},
		{"SOLOIST_GRACE", s.Grace == 0 || s.Grace >= time.Millisecond},
		{"SOLOIST_HISTORY", s.History == 0 || s.History >= time.Hour},
		{"SOLOIST_SWEEP", s.Sweep == 0 || s.Sweep >= time.Hour},
		{"SOLOIST_PRESENCE", s.Presence == 0 || s.Presence >= 10*time.Second && s.Presence <= 20*time.Minute},
		{"SOLOIST_ALARM_QUEUE", s.AlarmQueue == "" || isQueue(s.AlarmQueue)},
		{"SOLOIST_ALARM_LEAD", s.AlarmLead >= 0 && s.AlarmLead <= time.Hour},
		{"SOLOIST_STAY", s.Stay == 0 || s.Stay >= time.Second && s.Stay <= 24*time.Hour},
		{"SOLOIST_TICK_TIMEOUT", os.Getenv("SOLOIST_TICK_TIMEOUT") == "" || s.TickTimeout >= time.Second},
		{"SOLOIST_ALERT_FAILURES", s.AlertFailures >= 1 && s.AlertFailures <= 1000},
		{"SOLOIST_FUNCTION_TIMEOUT", os.Getenv("SOLOIST_FUNCTION_TIMEOUT") == "" || s.FunctionTimeout >= time.Second},
	} {
		if !rule.ok {
			f := setting(rule.name)
			errs = append(errs, mistake(rule.name, f.Tag.Get("want")))
			reflect.ValueOf(s).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(preset).FieldByIndex(f.Index))
		}
	}
	errs = append(errs, s.checkTokens()...)
	errs = append(errs, s.checkAlerts(), s.checkStay())
	s.AlarmQueue = cmp.Or(s.AlarmQueue, queueOf(s.App))
	return append(errs, s.checkAddr())
}

var (
	appRule       = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	containerRule = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)
)

func isContainer(name string) bool {
	return len(name) >= 3 && len(name) <= 63 && containerRule.MatchString(name)
}

// checkAddr blames the variable that the address comes from.
func (s *Settings) checkAddr() error {
	if _, port, err := net.SplitHostPort(s.Addr); err == nil && isPort(port) && (port != "0" || !InFunctions() || os.Getenv("SOLOIST_ADDR") != "") {
		return nil
	}
	if os.Getenv("SOLOIST_ADDR") == "" {
		return mistake("FUNCTIONS_CUSTOMHANDLER_PORT", "a port")
	}
	return mistake("SOLOIST_ADDR", setting("SOLOIST_ADDR").Tag.Get("want"))
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// readFields fills the struct that spec points to. envconfig stops at the
// first error, so it gets the fields one by one. An empty variable counts as
// unset: many a manifest cannot leave one out.
func readFields(prefix string, spec any) (errs []error) {
	v := reflect.ValueOf(spec).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := variable(prefix, f)
		if os.Getenv(name) == "" {
			continue
		}
		if err := readField(prefix, f, v.Field(i)); err != nil {
			errs = append(errs, mistake(name, f.Tag.Get("want")))
		}
	}
	return errs
}

// readField fills the field f, which is to, from its variable. A duration may be in days.
func readField(prefix string, f reflect.StructField, to reflect.Value) error {
	text := os.Getenv(variable(prefix, f))
	if values, closed := f.Tag.Lookup("one"); closed && !slices.Contains(strings.Fields(values), text) {
		return errors.New("not one of " + values)
	}
	if f.Type == reflect.TypeFor[time.Duration]() {
		d, err := format.Duration(text)
		if err == nil {
			to.SetInt(int64(d))
		}
		return err
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{f}))
	err := envconfig.Process(prefix, one.Interface())
	if err == nil {
		to.Set(one.Elem().Field(0))
	}
	return err
}

func variable(prefix string, f reflect.StructField) string {
	return strings.TrimPrefix(prefix+"_"+f.Tag.Get("envconfig"), "_")
}

// mistake is one wrong variable. It is not for secrets: it shows the value.
func mistake(name, want string) error {
	return fmt.Errorf("%s is %.80q: want %s", name, os.Getenv(name), want)
}

// setting is the field of a variable.
func setting(name string) (f reflect.StructField) {
	for f = range reflect.TypeFor[Settings]().Fields() {
		if variable("", f) == name {
			break
		}
	}
	return f
}

// checkAlerts returns what is wrong with the receiver of alerts. It does not show it.
func (s *Settings) checkAlerts() error {
	if s.AlertWebhook == "" {
		if s.AlertSecret != "" {
			return errors.New("SOLOIST_ALERT_SECRET signs nothing without SOLOIST_ALERT_WEBHOOK: want both, or neither")
		}
		return nil
	}
	return checkURL("SOLOIST_ALERT_WEBHOOK", s.AlertWebhook)
}

// checkURL returns what is wrong with a URL that is called. It may have a secret in it, so it
// is not shown.
func checkURL(name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return errors.New(name + " (not shown) is no URL: want https://HOST/PATH, or http://HOST/PATH within a network of your own")
	}
	return nil
}

// checkTokens returns what is wrong with the tokens, without showing them.
func (s *Settings) checkTokens() (errs []error) {
	for _, token := range []struct{ name, value string }{{"SOLOIST_READ_TOKEN", s.ReadToken}, {"SOLOIST_ADMIN_TOKEN", s.AdminToken}, {"SOLOIST_ALERT_SECRET", s.AlertSecret}} {
		switch {
		case strings.ContainsFunc(token.value, func(c rune) bool { return c <= ' ' || c > '~' }):
			errs = append(errs, errors.New(token.name+" (not shown) has a blank, a line break or another character that no header can carry: want printable ASCII"))
		case token.value != "" && len(token.value) < shortestToken:
			errs = append(errs, fmt.Errorf("%s (not shown) has less than %d characters, so it can be guessed: want a random one, such as openssl rand -hex 16 prints", token.name, shortestToken))
		}
	}
	return errs
}

// shortestToken is the least number of characters of a token. 16 random ones
// cannot be guessed over HTTP, however fast.
const shortestToken = 16

// A Failure is what an invocation answers after a run has failed.
type Failure string

const (
	FailLog   Failure = "log"
	FailError Failure = "error"
)

// An Alarm is what wakes the app up when no replica is: ByQueue, or nothing.
type Alarm string

// ByQueue is a message in Azure Queue Storage.
const ByQueue Alarm = "queue"

// AlarmFunction is the function that Functions calls with an alarm. While alarms are on, no job can have its name.
const AlarmFunction = "alarm"

// checkStay returns what is wrong with lead and stay together.
func (s *Settings) checkStay() error {
	if s.Stay == 0 || s.Stay >= s.AlarmLead {
		return nil
	}
	lead, stay := s.AlarmLead, s.Stay
	s.AlarmLead = stay
	return fmt.Errorf("SOLOIST_ALARM_LEAD is %s and SOLOIST_STAY %s, so a replica would end before the tick that it was woken up for: want a stay of at least the lead, or 0", lead, stay)
}

// idle warns of settings that have no effect, or not the one that they are for.
func (s *Settings) idle() (warnings []string) {
	for _, name := range []string{"SOLOIST_ALARM_QUEUE", "SOLOIST_ALARM_LEAD", "SOLOIST_STAY"} {
		if s.Alarm == "" && os.Getenv(name) != "" {
			warnings = append(warnings, name+" has no effect without SOLOIST_ALARM=queue")
		}
	}
	if s.ReadToken != "" && s.ReadToken == s.AdminToken {
		warnings = append(warnings, "SOLOIST_READ_TOKEN is the same as SOLOIST_ADMIN_TOKEN: whoever may read may change all")
	}
	return warnings
}

// mostQueue is how long the name of a queue can be that Functions reads: it adds "-poison" to that.
const mostQueue = 63 - len("-poison")

var hyphens = regexp.MustCompile(`-+`)

// isQueue reports whether a queue can have the name: by the rule for containers, except for its length.
func isQueue(name string) bool { return isContainer(name) && len(name) <= mostQueue }

// queueOf is the queue of an app. Names of queues are shorter than names of apps and cannot have two hyphens in a row:
// a name that has to be changed ends in a hash, so that no two apps get one queue.
func queueOf(app string) string {
	const end = "-alarm"
	if name := app + end; isQueue(name) {
		return name
	}
	name := strings.Trim(hyphens.ReplaceAllString(app, "-"), "-")
	return strings.TrimLeft(cut(name, mostQueue, "-"+digest(app)+end), "-")
}

// Patience is how long a replica waits for the next tick before it leaves the tick to the alarm. It is longer
// than the lead: the app may just have been woken up for that tick, by a message whose time is truncated to a second.
func (s *Settings) Patience() time.Duration { return max(s.Stay, s.AlarmLead+5*time.Second) }
