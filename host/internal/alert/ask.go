package alert

import "time"

const (
	askAfter   = 5 * time.Minute // from the last reading of a record to the question whether any replica can still read it
	answerTime = 2 * time.Minute // by then each living replica has read its records
)

// ask is how a replica that cannot read a record, though that is no incident any more, finds out
// whether others still can. It writes a question into the document, and each replica that reads
// the record answers. If none has answered, c is about a new incident.
func (d *document) ask(c *condition) (changed bool) {
	key := c.key()
	asked, open := d.Asked[key]
	switch {
	case open && !c.On && c.Version > asked:
		delete(d.Asked, key)
		d.close(key, c.Version)
		return true
	case open && c.On && c.Version-asked >= answerTime.Milliseconds():
		c.About = max(c.About, asked)
	case !open && c.On && c.About <= d.Closed[key] && c.Version-d.Closed[key] >= askAfter.Milliseconds():
		if d.Asked == nil {
			d.Asked = map[string]int64{}
		}
		d.Asked[key] = c.Version
		return true
	}
	return false
}
