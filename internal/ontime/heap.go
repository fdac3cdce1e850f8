package ontime

// A queue is a heap of alarms, for package container/heap: the first is the one that rings next.
// Each knows its place, so that it can be moved.
type queue []*Alarm

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface: alarms of one instant ring in the order in which they were set.
func (q queue) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].order < q[j].order
	}
	return q[i].at.Before(q[j].at)
}

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	a := x.(*Alarm)
	*q = append(*q, a)
	a.place = len(*q)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	a := (*q)[last]
	(*q)[last] = nil
	*q, a.place = (*q)[:last], 0
	return a
}
