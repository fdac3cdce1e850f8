package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/internal/fields"
	"github.com/soloist-go/soloist/store"
)

// Version is what the build says of the program: the version of its module, else the
// revision of its source; empty if neither is known.
var Version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return ""
})

// Path identifies this program, whatever its version: the path of its main package, which begins with
// its module's path. Empty: it was built from files, or without modules.
var Path = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "command-line-arguments" {
		return info.Path
	}
	return ""
})

// platform names what the program runs on.
func platform() string {
	switch {
	case InFunctions():
		return "Functions"
	case InContainerApps():
		return "Container Apps"
	case os.Getenv("WEBSITE_SITE_NAME") != "":
		return "App Service"
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return "Kubernetes"
	}
	return runtime.GOOS
}

// Condition is the health of this replica in one word: ok, degraded, stuck or overrun. Only
// a restart helps against the last two.
func (a *App) Condition(h soloist.Health) string {
	switch {
	case len(h.Overrun) > 0:
		return "overrun"
	case len(h.Stuck) > 0 || a.LogBlocked(h) != nil:
		return "stuck"
	case len(h.Broken) > 0 || h.Storage != nil || h.Events != nil:
		return "degraded"
	}
	return "ok"
}

// Self is what other replicas are shown of this one. It has the names of jobs and fixed
// words: the text of an error may have a secret in it.
func (a *App) Self() presence.Self {
	h, self := a.Scheduler.Health(), a.work().still
	self.Health, self.Skew, self.Reasons = a.Condition(h), format.SkewSeconds(h.Skew), reasons(h, a.LogBlocked(h))
	return self
}

// Replicas returns what reads the replicas; nil: SOLOIST_PRESENCE is 0, or the store keeps no documents.
func (a *App) Replicas() *presence.Reader {
	documents, ok := a.Scheduler.Store.(store.Documenter)
	if a.Settings.Presence == 0 || !ok {
		return nil
	}
	return &presence.Reader{Store: documents, App: a.Settings.App}
}

// alone reports whether the replicas can be read and no other one is up. It reads them again: the replica that takes over
// in a deployment has started a moment ago.
func (a *App) alone(ctx context.Context) bool {
	reader := a.Replicas()
	if reader == nil {
		return false
	}
	r, err := reader.Read(ctx)
	return err == nil && r.Alone(a.Scheduler.Replica)
}

// reasons are why a replica is not ok. They complete the word of [App.Condition], and do not repeat it.
func reasons(h soloist.Health, log error) (all []string) {
	for _, reason := range []struct {
		words string
		jobs  []string
	}{{"runs go on though their context has ended: ", slices.Sorted(maps.Keys(h.Overrun))}, {"nothing looks after ", h.Stuck}, {"cannot be run: ", slices.Sorted(maps.Keys(h.Broken))}} {
		if len(reason.jobs) > 0 {
			all = append(all, reason.words+strings.Join(reason.jobs, ", "))
		}
	}
	for _, reason := range []struct {
		words string
		err   error
	}{{"the store does not answer", h.Storage}, {"the log is blocked", log}, {"the receiver of events is blocked", h.Events}} {
		if reason.err != nil {
			all = append(all, reason.words)
		}
	}
	return all
}

// Work is what this program's settings say of its jobs and singletons, and its digest.
func (a *App) Work() (presence.Work, string) {
	d := a.work()
	return d.work, d.still.Work
}

func (a *App) define() defined {
	w := presence.Work{}
	for i := range a.Scheduler.Jobs {
		w[a.Scheduler.Jobs[i].Name] = settingsOf(&a.Scheduler.Jobs[i])
	}
	for _, g := range a.Scheduler.Singletons {
		w[g.Name] = presence.Settings{Other: others(g, "singleton")}
	}
	return defined{w, presence.Self{Version: Version(), Revision: RevisionName(), Platform: platform(), Program: Path(), Work: w.Digest()}}
}

// Everywhere is what Other of a job says, between commas, that each replica runs for itself.
const Everywhere = "EveryReplica true"

// settingsOf is what the settings of a job say. Two texts of one schedule are the same.
func settingsOf(j *soloist.Job) presence.Settings {
	text := j.Schedule + " in " + cmp.Or(j.TimeZone, "UTC")
	if s, err := TicksOf(*j); err == nil {
		text = s.String()
	}
	if len(j.After.Jobs) > 0 {
		text = "after " + strings.Join(j.After.Jobs, ", ")
	}
	return presence.Settings{Schedule: text, Paused: j.Paused, Other: others(j)}
}

// A Setting is one field of a job or singleton that is not zero.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// given are the fields of a job or singleton that are not zero. A function cannot be compared, the name is known, and the
// schedule is said elsewhere, with its calendars and its bounds.
func given(work soloist.Work) (all []Setting) {
	for name, v := range fields.Of(work) {
		switch v.Kind() {
		case reflect.Bool, reflect.Int, reflect.Int64, reflect.String:
			if !v.IsZero() && !slices.Contains([]string{"Name", "Schedule", "TimeZone", "Paused"}, name) {
				all = append(all, Setting{name, fmt.Sprint(v)})
			}
		}
	}
	return all
}

// others lists those fields after some words.
func others(work soloist.Work, words ...string) string {
	for _, s := range given(work) {
		words = append(words, s.Name+" "+s.Value)
	}
	return strings.Join(words, ", ")
}
