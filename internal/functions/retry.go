package functions

import (
	"context"
	"fmt"
	"time"
)

// A Retry is how often the host makes a call again that failed, and how long it
// waits before it does.
type Retry struct {
	Most  int
	Delay time.Duration
}

// A policy is the same in a function.json. Of the strategies this has the one.
type policy struct {
	Strategy      string
	MaxRetryCount *int
	DelayInterval string

	delay time.Duration
}

// parse refuses what the host does, and reads the delay.
func (p *policy) parse() (err error) {
	switch {
	case p == nil:
		return nil
	case p.Strategy != "fixedDelay":
		return fmt.Errorf("retry: the strategy is %q", p.Strategy)
	case p.MaxRetryCount == nil:
		return fmt.Errorf("retry: there is no maxRetryCount")
	}
	if p.delay, err = timeout(p.DelayInterval); err != nil || p.DelayInterval == "" || p.delay == 0 {
		return fmt.Errorf("retry: delayInterval is %q", p.DelayInterval)
	}
	return nil
}

// Fire is what the host does when a timer fires: it calls the function, and
// again while the calls fail and the policy of the function says so. Each is an
// invocation of its own; the timer does not fire meanwhile.
func (a *App) Fire(ctx context.Context, function string, t Timer) (res Result, err error) {
	retry := a.Retries[function]
	for t.Retry = 0; ; t.Retry++ {
		res, err = a.Host.Invoke(ctx, function, t.Payload())
		if err == nil || t.Retry == retry.Most {
			return res, err
		}
		select {
		case <-time.After(retry.Delay):
		case <-ctx.Done():
			return res, err
		}
	}
}
