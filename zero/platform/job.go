package platform

import "math"

// job starts executions of a job by a reading: as many as there are messages for, less those that run (KEDA's default strategy).
func (p *Platform) job(r Reading) {
	p.wanted = len(p.running)
	if !r.Active {
		return
	}
	n := min(p.many(r)-len(p.running), int(math.Ceil(r.Messages)))
	if n > 0 && len(p.running) == 0 {
		p.tell(Woken, nil)
	}
	for ; n > 0; n-- {
		p.start()
	}
}
