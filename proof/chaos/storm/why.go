//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A Reason is what the program answers about a tick that did not run.
type Reason struct {
	Job      string
	Asked    time.Time     // the tick
	By       string        // the replica whose page was asked; empty: the command why was
	Outcome  event.Outcome // of the tick, or of the range that it lies in
	Changed  bool          // what wrote it brought another definition
	Cause    string
	Sentence string
	NotKnown []string
}

func (r *Reason) String() string {
	return fmt.Sprintf("%s %s@%s, %s (%s): %s: %s; not known: %s", r.By, r.Job, clock(r.Asked),
		r.Outcome.Status, r.Outcome.Reason, r.Cause, r.Sentence, strings.Join(r.NotKnown, ", "))
}

// names reports whether a part of the answer is about a replica.
func names(text, replica string) bool {
	return regexp.MustCompile(`\b` + replica + `\b`).MatchString(text)
}

// tells reports whether the answer is about a run, if it names one.
func (r *Reason) tells(t *term) bool {
	return names(r.Sentence, t.replica) || !strings.Contains(r.Sentence, ", on ")
}

// doubts reports whether the answer leaves open for how long the runner of a term lived.
func (r *Reason) doubts(t *term) bool {
	return slices.ContainsFunc(r.NotKnown, func(text string) bool {
		return text == "how long its runner lived" || names(text, t.replica)
	})
}

// mostAsked bounds how many ticks are asked about.
const mostAsked = 200

// unrun are the ticks that no run was claimed for: the missed ones first, the newest first.
func unrun(s Story, versions map[string]string) (all []Reason) {
	specs, seen := map[string]string{}, map[string]bool{}
	for _, q := range s.Requests {
		if q.Record == nil || q.Job == leader {
			continue
		}
		was := cmp.Or(specs[q.Job], q.Record.Definition.Spec)
		specs[q.Job] = q.Record.Definition.Spec
		for _, o := range q.Record.History {
			key := fmt.Sprint(q.Job, o.From.UnixNano(), o.Tick.UnixNano(), o.Status)
			if seen[key] || o.Token != 0 || o.Status != event.Missed && o.Status != event.Skipped {
				continue
			}
			seen[key] = true
			for _, tick := range ticksOf(q.Job, versions[q.Job+" "+was], o) {
				all = append(all, Reason{Job: q.Job, Asked: tick, Outcome: o, Changed: was != q.Record.Definition.Spec})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Outcome.Status, b.Outcome.Status), b.Asked.Compare(a.Asked))
	})
	return all[:min(len(all), mostAsked)]
}

// ticksOf are the ticks of an outcome.
func ticksOf(job, version string, o event.Outcome) (all []time.Time) {
	if o.From.IsZero() {
		return []time.Time{o.Tick}
	}
	for _, d := range definitions(version) {
		if d.Name == job {
			for at := o.From.Truncate(d.Every).Add(d.Every); !at.After(o.Tick); at = at.Add(d.Every) {
				all = append(all, at)
			}
		}
	}
	return all
}

// explain asks the program why each of the ticks did not run.
func (s *storm) explain(ctx context.Context, versions map[string]string) ([]Reason, error) {
	// A job that is no more cannot be asked about.
	all := slices.DeleteFunc(unrun(s.scribe.sofar(), versions), func(r Reason) bool {
		return !slices.ContainsFunc(definitions(s.now()), func(d trace.Definition) bool { return d.Name == r.Job })
	})
	for i, r := range all { // the pages in turn: they know when their replica was cut off
		r.By = s.replicas[i%len(s.replicas)].name
		all = append(all, r)
	}
	var both sync.WaitGroup
	errs := make(chan error, len(all))
	for half := range 2 {
		both.Go(func() {
			for i := half; i < len(all); i += 2 {
				errs <- s.ask(ctx, &all[i])
			}
		})
	}
	both.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ask asks as an operator does: with the command over a line that is well, or on the page of a replica.
func (s *storm) ask(ctx context.Context, r *Reason) (err error) {
	at, body := r.Asked.UTC().Format(time.RFC3339), []byte(nil)
	if r.By == "" {
		body, err = s.command(ctx, "why", r.Job, at, "--json")
	} else {
		i := slices.IndexFunc(s.replicas, func(n *node) bool { return n.name == r.By })
		body, err = s.replicas[i].get(ctx, "/api/v1/jobs/"+r.Job+"/why?at="+at)
	}
	if err == nil {
		err = json.Unmarshal(body, r)
	}
	if err != nil {
		return fmt.Errorf("why %s %s %s: %w: %s", r.By, r.Job, at, err, body)
	}
	return nil
}

// command returns what the program prints.
func (s *storm) command(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, proctest.Self(), args...)
	c.Env = slices.Concat(proctest.Environ(), s.env, []string{proctest.As("operator"), versionEnv + "=" + s.now(),
		"SOLOIST_STORAGE=" + s.storage("operator", "")})
	if _, err := c.StdinPipe(); err != nil { // it ends with this process
		return nil, err
	}
	return c.Output()
}

// get reads a page of the replica.
func (n *node) get(ctx context.Context, path string) ([]byte, error) {
	n.mu.Lock()
	url := n.url
	n.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// reportReasons prints the causes that were told.
func reportReasons(w io.Writer, s Story) {
	j, wrong, counts := &judge{Story: s}, 0, map[string]int{}
	for i := range s.Reasons {
		r := &s.Reasons[i]
		if j.wrong(r) != "" {
			wrong++
		}
		kind := string(r.Outcome.Status) + ", " + r.Cause
		if r.By != "" {
			kind = "on pages: " + kind
		}
		if isOpen(r) {
			kind += ": left open"
		} else if len(r.NotKnown) > 0 {
			kind += ": in part"
		}
		counts[kind]++
	}
	fmt.Fprintf(w, "TICKS NOT RUN, %d ASKED ABOUT\tCOUNT\tSHARE\n", len(s.Reasons)/2)
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s\t%d\t%d%%\n", kind, counts[kind], 200*counts[kind]/len(s.Reasons))
	}
	fmt.Fprintf(w, "told falsely\t%d\n\n", wrong)
}

// isOpen reports whether an answer leaves the cause open, and says so.
func isOpen(r *Reason) bool {
	return slices.Contains([]string{"unclaimed", "no-tick", "not-kept", "unread"}, r.Cause) && len(r.NotKnown) > 0
}

// A term is a claim of a job, and how it ended.
type term struct {
	replica       string
	claimed, end  time.Time // zero end: it goes on
	held          time.Time // until when its lease was held at the latest, had its holder died
	hasEnd, other bool      // it wrote its outcome; another replica settled it
}

// termAt returns the last claim of a job that was decided before an instant: the service sees it later, over a slow line by
// seconds.
func (j *judge) termAt(job string, at time.Time) (t *term) {
	token, lease := int64(0), ""
	for _, q := range j.Requests {
		switch {
		case q.Job != job:
		case q.Op == "claim" && !instant.Earlier(q.Time, q.Record.Run.Claimed).After(at) && (t == nil || q.Record.Token != token):
			t, token, lease = &term{replica: q.Replica, claimed: q.Time, held: q.Time.Add(shortest)}, q.Record.Token, q.Lease
		case t == nil || !t.end.IsZero():
		case q.Lease == lease && (q.Op == "finish" || q.Op == "take back"):
			t.end, t.hasEnd = q.Time, true
		case q.Lease == lease:
			t.held = q.Time.Add(shortest)
		case q.Record != nil && q.Lease != "":
			t.end, t.other = q.Time, true
		}
	}
	return t
}

// allowed is how much later than a process its parent may note what happens to it, and the other way round.
const allowed = 2 * time.Second

// reasons: no tick that did not run is told a cause that is false by what the storm knows.
func (j *judge) reasons() {
	for i := range j.Reasons {
		r := &j.Reasons[i]
		if wrong := j.wrong(r); wrong != "" {
			j.bad("why %s: %s", r, wrong)
		}
	}
}

// wrong says what is wrong with an answer; empty: nothing is.
func (j *judge) wrong(r *Reason) string {
	t := j.termAt(r.Job, r.Asked.Add(allowed))
	switch r.Cause {
	case "unclaimed":
		_, up, _ := strings.Cut(r.Sentence, ", though ")
		for _, name := range j.replicas() {
			if names(up, name) && !j.lives(name, r.Asked) {
				return name + " was not up"
			}
		}
	case "down":
		for _, name := range j.replicas() {
			if j.isWell(name, r.Asked) {
				return name + " was up"
			}
		}
		return ""
	case "overlap":
		if t == nil || t.other || t.hasEnd && t.end.Before(r.Asked.Add(-allowed)) || !r.tells(t) {
			return fmt.Sprintf("no such run was under way: %+v", t)
		}
		return ""
	case "died":
		switch {
		case t == nil || t.hasEnd || !r.tells(t):
			return fmt.Sprintf("no such runner died: %+v", t)
		case !j.suffered(t):
			return t.replica + " did not suffer anything"
		case t.held.Before(r.Asked.Add(-allowed)) && !r.doubts(t):
			return fmt.Sprintf("the lease of its runner had ended at %s", clock(t.held))
		}
		return ""
	case "outage":
		if j.isWell(r.By, r.Asked) && slices.ContainsFunc(j.Requests, func(q *trace.Event) bool {
			return q.Replica == r.By && !q.Time.Before(r.Asked) && q.Time.Before(r.Asked.Add(allowed))
		}) {
			return r.By + " reached the service"
		}
		return ""
	case "definition":
		if !r.Changed {
			return "it had not changed"
		}
		return ""
	}
	if !isOpen(r) {
		return "no storm has that cause"
	}
	return ""
}

// suffered reports whether anything happened to the runner of a term before another replica settled it: a fault, or its end.
func (j *judge) suffered(t *term) bool {
	end := t.end
	if end.IsZero() {
		end = time.Now()
	}
	return slices.ContainsFunc(j.Faults, func(f Fault) bool { return hits(f, t.replica, t.claimed, end) }) ||
		slices.ContainsFunc(j.Exits, func(e Exit) bool { return e.Replica == t.replica && e.At.After(t.claimed) && e.At.Before(end) })
}

// replicas are the names of those that were ever up.
func (j *judge) replicas() (all []string) {
	for _, e := range j.processesOf("") {
		if !slices.Contains(all, e.Replica) {
			all = append(all, e.Replica)
		}
	}
	return all
}

// processesOf are the lives of a replica, or of all.
func (j *judge) processesOf(replica string) (all []Exit) {
	return slices.DeleteFunc(slices.Concat(j.Exits, j.Alive), func(e Exit) bool { return replica != "" && e.Replica != replica })
}

// lives reports whether a replica had a process at an instant, or a little earlier or later.
func (j *judge) lives(replica string, at time.Time) bool {
	return slices.ContainsFunc(j.processesOf(replica), func(e Exit) bool {
		return !e.Start.After(at.Add(allowed)) && (e.At.IsZero() || e.At.After(at.Add(-allowed)))
	})
}

// isWell reports whether a replica was certainly up at an instant, and nothing kept it from its work.
func (j *judge) isWell(replica string, at time.Time) bool {
	from, to := at.Add(-allowed), at.Add(allowed)
	if slices.ContainsFunc(j.Faults, func(f Fault) bool { return hits(f, replica, from, to) }) {
		return false
	}
	return slices.ContainsFunc(j.processesOf(replica), func(e Exit) bool {
		return e.Listened && e.Start.Before(from.Add(-allowed)) &&
			(e.At.IsZero() || e.At.After(to)) && (e.AskedAt.IsZero() || e.AskedAt.After(to))
	})
}

// hits reports whether a fault happened to a replica within a time.
func hits(f Fault, replica string, from, to time.Time) bool {
	return (f.Replica == "" || f.Replica == replica) && f.Kind != "rolling deploy" && !f.Begin.After(to) && !f.End.Before(from)
}
