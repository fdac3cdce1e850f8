package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

// environment gives the test these variables and none of the machine's that
// matter, not even one that is empty: it would be a setting that there is not.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	others := proctest.Environ()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(others, pair) {
			t.Setenv(name, "") // which sets it again after the test
			os.Unsetenv(name)
		}
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// result is what one run of a program came to.
type result struct {
	code     int
	out, err string
}

func run(ctx context.Context, p host.Program, args ...string) result {
	var out, errs strings.Builder
	p.Name, p.Args, p.Stdout, p.Stderr = "demo", append([]string{}, args...), &out, &errs
	code := p.Run(ctx)
	return result{code, out.String(), errs.String()}
}

func do(context.Context, *soloist.Run) error { return nil }

func fail(context.Context, *soloist.Run) error { return errors.New("no\npaper") }

// work is two jobs and a singleton.
func work() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do},
		soloist.Job{Name: "night-report", Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Do: fail},
		soloist.Singleton{Name: "leader", Do: do},
	}
}

// zoneData is the line about the data of time zones, which are those of the machine.
var zoneData = regexp.MustCompile(`\nzone data .*\n\z|(?m:^)zone data .*\n|,\n *"zones": .*`)

// goldenWant compares texts line by line, without the margin of the golden one and the line of zoneData.
func goldenWant(t *testing.T, what, got, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", "")
	if got = zoneData.ReplaceAllString(got, ""); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// wantRun wants a command to come to this code and output, and to say nothing else.
func wantRun(t *testing.T, p host.Program, command string, code int, out string) {
	t.Helper()
	if errs := wantOut(t, p, command, code, out); errs != "" {
		t.Errorf("%s: got on standard error %s", command, errs)
	}
}

// wantOut returns what the command writes to standard error, such as a job's log.
func wantOut(t *testing.T, p host.Program, command string, code int, out string) (errs string) {
	t.Helper()
	got := run(t.Context(), p, strings.Fields(command)...)
	goldenWant(t, command, got.out, out)
	if got.code != code {
		t.Errorf("%s: got %+v, want code %d", command, got, code)
	}
	return got.err
}

// wantLines wants a command to come to this code and to print all of these texts.
func wantLines(t *testing.T, p host.Program, command string, code int, texts ...string) {
	t.Helper()
	run(t.Context(), p, strings.Fields(command)...).wants(t, command, code, texts...)
}

// wants wants this code, and each of these texts among what was printed.
func (r result) wants(t *testing.T, what string, code int, texts ...string) {
	t.Helper()
	wantText(t, what, r.out+r.err, texts...)
	if r.code != code {
		t.Errorf("%s: got %+v, want code %d", what, r, code)
	}
}

// wantTook wants that time to have passed since it began, at least and at most.
func wantTook(t *testing.T, begin time.Time, least, most time.Duration) {
	t.Helper()
	if took := time.Since(begin); took < least || took > most {
		t.Errorf("it took %s, want %s to %s", took, least, most)
	}
}

// wantText wants each of these parts in a text.
func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: got no %q in\n%s", what, part, text)
		}
	}
}

// wantNone wants none of these parts in a text.
func wantNone(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s: got %q in\n%s", what, part, text)
		}
	}
}

// must ends a test that cannot go on.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantEqual compares values of any kind.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// bubble runs a test with these variables and in virtual time, which begins at midnight, 1 January 2000, UTC.
func bubble(t *testing.T, variables []string, test func(t *testing.T)) {
	t.Helper()
	environment(t, variables...)
	synctest.Test(t, test)
}

// wantJSON wants a command to come to this code and to print this value, which may be broken into lines anywhere. It
// returns what the command writes to standard error, as wantOut does.
func wantJSON(t *testing.T, p host.Program, command string, code int, want string) (errs string) {
	t.Helper()
	got := run(t.Context(), p, strings.Fields(command)...)
	var compact bytes.Buffer
	must(t, json.Compact(&compact, []byte(zoneData.ReplaceAllString(got.out, ""))))
	wantEqual(t, command, compact.String(), strings.NewReplacer("\n", "", "\t", "").Replace(want))
	wantCode(t, got.code, code)
	return got.err
}
