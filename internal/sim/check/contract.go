package check

// contract: the store does what [store.Store] says.
func contract(l *Log, bad report) {
	for _, e := range l.Events {
		if e.What == Broke {
			bad(e.Time, "%s", e.Note)
		}
	}
}
