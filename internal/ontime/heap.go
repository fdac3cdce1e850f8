package ontime

// A queue is a heap of alarms: the first is the one that rings next. Each knows its place, so
// that it can be moved.
type queue []*Alarm

// before reports whether a rings before b.
func before(a, b *Alarm) bool {
	if a.at.Equal(b.at) {
		return a.order < b.order
	}
	return a.at.Before(b.at)
}

// put puts an alarm where its instant says, be it new in the queue or not.
func (q *queue) put(a *Alarm) {
	if a.place == 0 {
		*q = append(*q, a)
		a.place = len(*q)
	}
	q.down(q.up(a.place - 1))
}

// removeFirst removes the first alarm.
func (q *queue) removeFirst() {
	last := len(*q) - 1
	(*q)[0].place = 0
	a := (*q)[last]
	(*q)[last] = nil
	if *q = (*q)[:last]; last > 0 {
		q.move(a, 0)
		q.down(0)
	}
}

// move puts an alarm at an index.
func (q *queue) move(a *Alarm, i int) { (*q)[i], a.place = a, i+1 }

// up moves the alarm at an index towards the first as far as it belongs, and returns where it
// is then.
func (q *queue) up(i int) int {
	a := (*q)[i]
	for i > 0 && before(a, (*q)[(i-1)/2]) {
		q.move((*q)[(i-1)/2], i)
		i = (i - 1) / 2
	}
	q.move(a, i)
	return i
}

// down moves the alarm at an index away from the first as far as it belongs.
func (q *queue) down(i int) {
	a := (*q)[i]
	for {
		child := 2*i + 1
		if child >= len(*q) {
			break
		}
		if child+1 < len(*q) && before((*q)[child+1], (*q)[child]) {
			child++
		}
		if !before((*q)[child], a) {
			break
		}
		q.move((*q)[child], i)
		i = child
	}
	q.move(a, i)
}
