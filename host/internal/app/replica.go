package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
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
		w[g.Name] = presence.Settings{Other: words(append([]Setting{{Name: "singleton"}}, ofSingleton(&g)...))}
	}
	return defined{w, presence.Self{Version: Version(), Revision: RevisionName(), Platform: platform(), Program: Path(), Work: w.Digest()}}
}

// Everywhere is what the settings of a job say first that each replica runs for itself.
const Everywhere = "on each replica"

// settingsOf is what the settings of a job say. Two texts of one schedule are the same.
func settingsOf(j *soloist.Job) presence.Settings {
	text := j.Schedule + " in " + cmp.Or(j.TimeZone, "UTC")
	if s, err := TicksOf(*j); err == nil {
		text = s.String()
	}
	if len(j.After.Jobs) > 0 {
		text = "after " + strings.Join(j.After.Jobs, ", ")
	}
	return presence.Settings{Schedule: text, Paused: j.Paused,
		Other: words(ofJob(j))}
}

// A Setting is one of a job or singleton that is not its default.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"` // empty: there is no more to it than that it is set
}

// ofJob are the settings of a job, without those of when it has ticks.
func ofJob(j *soloist.Job) []Setting {
	return given(Everywhere, j.EveryReplica, "shards", j.Shards, "group", j.Group, "whatever the outcome", j.After.Any, "claimed ahead", j.ClaimAhead,
		"lease", j.Lease, "time-out", j.Timeout, "heartbeat time-out", j.HeartbeatTimeout, "starting deadline", j.Late.Start, "finish by", j.Late.Finish,
		"missed", string(j.Late.Missed), "overlap", string(j.Overlap), "interrupted", string(j.Interrupted),
		"tries", j.Retry.MaxTries, "backoff", j.Retry.Backoff, "pause after failures", j.Retry.PauseAfter)
}

func ofSingleton(g *soloist.Singleton) []Setting {
	return given("shards", g.Shards, "lease", g.Lease, "heartbeat time-out", g.HeartbeatTimeout, "backoff", g.Backoff)
}

// given are the settings that are not zero, from pairs of a name and a value.
func given(pairs ...any) (all []Setting) {
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch value := pairs[i+1].(type) {
		case bool:
			if value {
				all = append(all, Setting{Name: name})
			}
		case time.Duration, int, string:
			if value != time.Duration(0) && value != 0 && value != "" {
				all = append(all, Setting{name, fmt.Sprint(value)})
			}
		}
	}
	return all
}

// words are settings in one line.
func words(all []Setting) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = strings.TrimSpace(s.Name + " " + s.Value)
	}
	return strings.Join(texts, ", ")
}
