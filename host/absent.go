package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/near"
)

// lister is a store that can list the apps that have entries in it.
// fs.ErrNotExist: its place does not exist, such as a container.
type lister interface {
	Apps(ctx context.Context) ([]string, error)
}

// maxListed bounds how many apps an answer names.
const maxListed = 20

// absence is why status, history and unlock have nothing to show: no job of the app has
// a record. The first line is the mistake, the others help to find its cause.
// It is empty if there is a record, or if a record could not be read.
func absence(a *app.App, ctx context.Context, all []soloist.JobStatus) []string {
	asked := false
	for _, st := range all {
		if st.EveryReplica {
			continue
		}
		if st.Err != nil || st.Lease != "" {
			return nil
		}
		asked = true
	}
	if !asked {
		return nil
	}
	// What comes before the jobs makes its record first.
	if others, _ := locksOf(ctx, a); !others.Empty() {
		return nil
	}
	return []string{
		fmt.Sprintf("no records of app %q in %s", a.Settings.App, a.Place),
		instead(a, ctx),
		"replicas create the records when they start (" + a.Console.Name + " serve, or tick): if none of this app has started yet, there is nothing wrong",
	}
}

// instead says what the store has instead of the records of this app.
func instead(a *app.App, ctx context.Context) string {
	check := "check SOLOIST_APP, SOLOIST_CONTAINER and SOLOIST_STORAGE"
	s, ok := a.Store.(lister)
	if !ok {
		return check
	}
	apps, err := s.Apps(ctx)
	apps = slices.DeleteFunc(apps, func(app string) bool { return app == a.Settings.App }) // which has documents alone
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist: " + check
	case err != nil:
		return "what it has instead cannot be listed (" + format.Line(err.Error()) + "): " + check
	case len(apps) == 0:
		return "it has no records of any app: " + check
	}
	text := "it has records of the app " + listed(apps)
	if len(apps) > 1 {
		text = "it has records of the apps " + listed(apps)
	}
	if app := near.Name(a.Settings.App, apps); app != "" {
		return text + fmt.Sprintf(": did you mean SOLOIST_APP=%s?", format.Line(app))
	}
	return text + ": " + check
}

// listed names the first of many.
func listed(names []string) string {
	names = slices.Sorted(slices.Values(names))
	more := len(names) - maxListed
	text := format.Line(strings.Join(names[:min(len(names), maxListed)], ", "))
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// absent is the answer of a command that has nothing to show. Its body has the same lines.
func (f jsonFlag) absent(a *app.App, lines []string, body any) int {
	return f.answer(a, exitFail, body, func() {
		fmt.Fprintf(a.Console.Stderr, "%s: %s\n", a.Console.Name, lines[0])
		for _, text := range lines[1:] {
			fmt.Fprintf(a.Console.Stderr, "  %s\n", text)
		}
	})
}
