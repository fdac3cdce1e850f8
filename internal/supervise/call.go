package supervise

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/soloist-go/soloist/event"
)

var errGoexit = errors.New("the job ended its goroutine (runtime.Goexit)")

// call runs f in a goroutine of its own and waits for it, so that a panic or a
// runtime.Goexit in one job does not end the loop of this job or the process. Both
// become an error: a function that ended in an unknown state has failed.
func call(emit func(event.Event), f func() error) error {
	// Goexit runs the deferred calls and nothing else, so this value is left only
	// if f neither returned nor panicked.
	err := errGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				said := errors.New(fmt.Sprint(p))
				emit(event.Event{Kind: event.Panicked, Err: said, Stack: string(debug.Stack())})
				err = fmt.Errorf("panic: %w", said)
			}
		}()
		err = fixed(f())
	}()
	<-done
	return err
}
