package soloist

// Lock returns the lock of that name, in the store and the app of the scheduler. Slots and Lease may be
// set before its first use.
func (s *Scheduler) Lock(name string) *Lock {
	s.once.Do(s.prepare)
	return &Lock{Name: name, Store: s.Store, App: s.App, Replica: s.Replica, Logger: s.Logger, Overrun: s.Overrun, of: s.core.replica}
}

// Lock returns the lock of that name, in the store and the app of the run, as [Scheduler.Lock] does. Its
// lease and its token are its own. Give Do the context of the run, so that its function ends with the
// run. If no Scheduler made the run, Do returns an error: there is no store.
func (r *Run) Lock(name string) *Lock {
	l := &Lock{Name: name, Logger: r.Log, of: r.replica}
	if of := r.replica; of != nil {
		l.Store, l.App, l.Replica, l.Overrun = of.Store, of.App, of.Name, of.Overrun
	}
	return l
}
