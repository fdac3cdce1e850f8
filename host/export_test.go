package host

import (
	"context"
	"net/http"
)

// Handler is what serve answers HTTP with, and the scheduler behind it. wait
// returns when no reading of the records is under way.
func Handler(p Program) (h http.Handler, run func(), wait func(), err error) {
	q := p.filled()
	c, _, err := parse([]string{"serve"})
	if err != nil {
		return nil, nil, nil, err
	}
	a, err := q.open(c)
	if err != nil {
		return nil, nil, nil, err
	}
	b := a.newBoard()
	return a.routes(b), func() { a.sched.RunDue(context.Background()) }, b.wait, nil
}
