package runner

import "context"

// A turn says who drives a runner: Loop, or one call of RunDue.
type turn struct {
	drive chan struct{} // has room for the driver
	call  chan struct{} // has room for the call that drives
	next  chan struct{} // has room for one call that waits for that
}

func newTurn() turn {
	return turn{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
}

// take has a call drive the runner until done. It returns false if Loop does, or another call. With
// waits it waits for the end of that call, unless another one waits already, or ctx ends.
func (t *turn) take(ctx context.Context, waits bool) (done func(), ok bool) {
	select {
	case t.call <- struct{}{}:
	default:
		if !waits || !t.follow(ctx) {
			return nil, false
		}
	}
	select {
	case t.drive <- struct{}{}:
		return func() { <-t.drive; <-t.call }, true
	default: // Loop drives it
		<-t.call
		return nil, false
	}
}

// follow waits for the end of the call that drives the runner.
func (t *turn) follow(ctx context.Context) bool {
	select {
	case t.next <- struct{}{}:
		defer func() { <-t.next }()
	default:
		return false
	}
	select {
	case t.call <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
