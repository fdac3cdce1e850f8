package check

// memory: what a replica keeps does not grow with the saves of a run, as long as it
// goes on.
func memory(l *Log, bad report) {
	const most = 20 // bytes a save, since the heap is not the same twice
	for _, job := range l.index.jobs {
		first := map[int64]*Event{}
		for _, e := range l.of(job, Weighed) {
			f := first[e.Token]
			if f == nil {
				first[e.Token] = e
			} else if saves := int64(e.Saves - f.Saves); saves > 0 && e.Size-f.Size > most*saves {
				bad(e.Time, "%s uses %d bytes more after %d saves of one run of %s", e.Replica, e.Size-f.Size, saves, job)
			}
		}
	}
}
