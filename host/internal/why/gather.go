package why

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/internal/desk"
)

// A Source is where facts come from.
type Source struct {
	App    *app.App
	Logs   *past.Cache // nil: the record alone
	Status func(ctx context.Context, job string) (desk.Status, error)
	Known  Facts // which are the same for each job: the orders, the replicas, what is here, and what of that was not read
}

// mostSiblings is how many jobs of its group are looked at.
const mostSiblings = 20

// documentTime bounds the reads of the orders and of the list of replicas: an answer without them is better than none.
const documentTime = 3 * time.Second

// Read reads what is known besides the record: the orders and the replicas. What cannot be read within some seconds is left out.
func Read(ctx context.Context, a *app.App) *Source {
	s := &Source{App: a, Status: a.Status}
	if a.Logs != nil {
		s.Logs = past.NewCache(a)
	}
	ctx, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	var both sync.WaitGroup
	var unread error
	both.Go(func() {
		if reader := a.Replicas(); reader != nil {
			s.Known.Replicas, unread = reader.Read(ctx)
		}
	})
	control, err := a.Control(ctx)
	both.Wait()
	if s.Known.Control = control; err != nil && !errors.Is(err, desk.ErrNoOrders) {
		s.Known.LeftOut = append(s.Known.LeftOut, "what operators have ordered: "+format.Error(err))
	}
	if unread != nil {
		s.Known.LeftOut = append(s.Known.LeftOut, "which replicas were up: "+format.Error(unread))
	}
	return s
}

// Facts gathers what is known of a job and a moment. Its log is read back as far as the moment needs.
func (s *Source) Facts(ctx context.Context, job string, m Moment) *Facts {
	st, err := s.Status(ctx, job)
	if err != nil {
		st.Name, st.Err = job, err
	}
	f := s.With(ctx, st, past.OfRecord(&st))
	if st.Err == nil && st.Lease != "" && s.Logs != nil && !f.enough(m) {
		lines, whole, err := s.Logs.Of(ctx, &st, past.Filter{Since: m.From})
		if f.Lines, f.Logged, f.Whole = lines, err == nil, whole; err != nil {
			f.LeftOut = append(f.LeftOut, format.Error(err))
		}
	}
	return f
}

// With gathers what is known of a job whose status and outcomes, the newest first, were read.
func (s *Source) With(ctx context.Context, st desk.Status, lines past.Lines) *Facts {
	f := new(s.Known)
	f.Now, f.Status, f.Lines, f.LeftOut = s.App.Now(), st, lines, slices.Clone(s.Known.LeftOut)
	j, err := s.App.Job(st.Name)
	if err != nil {
		return f // a singleton
	}
	f.Job, f.First = j, app.First(s.App, j)
	f.Ticks, _ = app.TicksFor(s.App, j) // they were checked
	if f.Here.Replica != "" {
		f.Here.Broken = s.App.Scheduler.Health().Broken[st.Name]
	}
	s.addOthers(ctx, f)
	return f
}

// enough reports whether the outcomes of the record do for a moment.
func (f *Facts) enough(m Moment) bool {
	n := len(f.Lines)
	if m.IsZero() {
		i := slices.IndexFunc(f.Lines, func(l line) bool { return l.Request == "" && l.Status != event.Succeeded })
		return i >= 0 && i+1 < n
	}
	return n > 1 && f.Lines[n-2].Tick.Before(m.From) && !f.Lines[n-2].Tick.IsZero()
}

// addOthers adds the statuses of the jobs that a job follows, and of those of its group.
func (s *Source) addOthers(ctx context.Context, f *Facts) {
	names := slices.Clone(f.Job.After.Jobs)
	if f.Job.Group != "" {
		f.Slots = max(1, s.App.Scheduler.Groups[f.Job.Group])
		for _, j := range s.App.Scheduler.Jobs {
			if j.Group == f.Job.Group {
				f.Siblings = append(f.Siblings, soloist.ShardNames(j.Name, j.Shards)...)
			}
		}
		f.Siblings = slices.DeleteFunc(f.Siblings, func(name string) bool { return name == f.Status.Name })
		if len(f.Siblings) > mostSiblings {
			f.LeftOut = append(f.LeftOut,
				fmt.Sprintf("how all %d jobs of group %s are: %d were looked at", len(f.Siblings), f.Job.Group, mostSiblings))
			f.Siblings = f.Siblings[:mostSiblings]
		}
		names = append(names, f.Siblings...)
	}
	f.Others = map[string]desk.Status{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			st, err := s.Status(ctx, name)
			lock.Lock()
			defer lock.Unlock()
			switch err = errors.Join(err, st.Err); {
			case err == nil:
				f.Others[name] = st
			case !errors.Is(err, fs.ErrNotExist):
				f.LeftOut = append(f.LeftOut, "how "+name+" is: "+format.Error(err))
			}
		})
	}
	all.Wait()
	slices.Sort(f.LeftOut)
}

// mostOutages is how many times out of reach a replica remembers.
const mostOutages = 50

// A Witness remembers when the store was out of reach for this replica.
type Witness struct {
	app *app.App
	mu  sync.Mutex
	all []Outage
}

// Watch returns a Witness of what this replica meets from now on.
func Watch(a *app.App) *Witness {
	w := &Witness{app: a}
	a.Listen(w.hear)
	return w
}

func (w *Witness) hear(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := len(w.all) > 0 && w.all[len(w.all)-1].To.IsZero()
	switch {
	case e.Kind == event.StoreTrouble && !open:
		w.all = append(w.all[max(0, len(w.all)+1-mostOutages):], Outage{From: e.Time})
	case e.Kind == event.StoreBack && open:
		w.all[len(w.all)-1].To = e.Time
	}
}

// Here returns what this replica knows of itself.
func (w *Witness) Here() Here {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Here{Replica: w.app.Scheduler.Replica, Outages: slices.Clone(w.all)}
}
