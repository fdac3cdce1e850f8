package app

import (
	"context"
	"time"
)

// maxMargin is the time that an execution keeps for the records after the last run was stopped; a short one keeps a tenth.
const maxMargin = 30 * time.Second

// Limits divide the time of an execution, or of an invocation of Functions. When that time is over, the platform kills
// this process, with all that runs in it.
type Limits struct {
	Run   time.Duration // up to here runs are started; zero: no limit
	Grace time.Duration // after it those that run may go on
}

// Divide divides a time-out; zero is none.
func Divide(timeout, grace time.Duration) Limits {
	if timeout == 0 {
		return Limits{Grace: grace}
	}
	grace = min(grace, timeout/4)
	return Limits{Run: timeout - min(timeout/10, maxMargin) - grace, Grace: grace}
}

// tickLimits are the limits of the command tick.
func (s *Settings) tickLimits() Limits { return Divide(s.TickTimeout, s.Grace) }

// LimitGrace gives the runs of the command tick the grace that the time of an execution has room for.
func (a *App) LimitGrace() { a.Scheduler.Grace = a.Settings.tickLimits().Grace }

// InTime is the context of the command tick, which ends before the platform ends the execution.
func (a *App) InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if run := a.Settings.tickLimits().Run; run > 0 {
		return context.WithTimeout(ctx, run)
	}
	return context.WithCancel(ctx)
}

// Patience is how long the command tick waits for the next tick: the stay; half of the time for runs, if that is less.
func (a *App) Patience() time.Duration {
	stay := a.Settings.Patience()
	if run := a.Settings.tickLimits().Run; run > 0 {
		stay = min(stay, run/2)
	}
	return stay
}
