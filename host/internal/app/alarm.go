package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// openAlarm opens the queue of alarms, if the settings ask for them.
func (a *App) openAlarm(c Config) error {
	s := &a.Settings
	switch {
	case s.Alarm == "":
		return nil
	case slices.Contains(a.Jobs(), AlarmFunction):
		return fmt.Errorf("job %q has the name of the function that gets the alarms (SOLOIST_ALARM=queue): rename the job", AlarmFunction)
	case c.Apart:
		return nil
	}
	notes, ok := a.Store.(store.Documenter)
	if !ok {
		return errors.New("SOLOIST_ALARM is queue, and the store of this program keeps no documents, in which the pending alarm is noted: unset it, or implement store.Documenter")
	}
	queue, err := s.alarmQueue(c)
	if err != nil {
		return err
	}
	_, work := a.Work()
	a.Alarm = &alarm.Clock{App: s.App, Queue: queue, Notes: notes, Log: a.Log, Work: work, Started: time.Now(),
		Now: func() time.Time { return a.Now().Add(-a.Skew()) }}
	a.SetLead(s.AlarmLead)
	return nil
}

// leadSpare is how much longer than the lead an execution can wait: a message comes early by up to a second.
const leadSpare = 5 * time.Second

// FitLead shortens the lead to what an execution can wait for. Else each one would put a message that is visible at once,
// until the tick is near.
func (a *App) FitLead(patience time.Duration) {
	if most := max(0, patience-leadSpare); a.Alarm != nil && a.Settings.AlarmLead > most {
		a.SetLead(most)
	}
}

// SetLead changes how long before a tick its message becomes visible. It is for the start, before the alarm is used.
func (a *App) SetLead(lead time.Duration) {
	a.Settings.AlarmLead = lead
	if lead == 0 {
		lead = -1 // zero is a minute there
	}
	a.Alarm.Lead = lead
}

// alarmQueue opens the queue in the storage account of the records.
func (s *Settings) alarmQueue(c Config) (alarm.Queue, error) {
	if c.Queue != nil {
		return c.Queue, nil
	}
	account, ok := s.account()
	if !ok || c.Store != nil && s.Storage == "" && account.ConnectionString+account.ServiceURL+account.AccountName == "" {
		return nil, errors.New("SOLOIST_ALARM is queue, which is in a storage account of Azure, and the settings name none: want one in SOLOIST_STORAGE or AzureWebJobsStorage, or no alarm")
	}
	return azure.OpenQueue(account, s.AlarmQueue)
}

// guardSpan is how long after the death of this process a message wakes the app up. It is about as long as a lease, which
// has to end before another replica takes over.
const guardSpan = 45 * time.Second

// Guarded calls do, whose work is found if this process dies meanwhile, and sets the alarm for what is left of it. A message is
// pending while do goes on: the platform may have started this process without a message, or may hide that message, and has none
// for a manual run.
func (a *App) Guarded(ctx context.Context, do func()) error {
	release := a.Alarm.Guard(ctx, guardSpan)
	do()
	err := a.SetAlarm(ctx)
	release(err == nil)
	return err
}

// ErrUnrung is part of the error of an order that is written, and has woken up no replica.
var ErrUnrung = errors.New("it is ordered, but no replica could be woken up: the next one that is up obeys")

// Order writes an order. With alarms it also puts a message, since the app may be asleep. If it is awake, the message has
// the platform start another replica if this one dies, and keeps the platform from ending this one as idle while it does
// what was ordered. An error of that alone is ErrUnrung.
func (a *App) Order(ctx context.Context, o desk.Order) (record.Order, error) {
	at, err := desk.Of(a.Scheduler)
	if err != nil {
		return record.Order{}, err
	}
	written, err := at.Order(ctx, o)
	if err != nil || a.Alarm == nil {
		return written, err
	}
	if err := a.Alarm.Ring(ctx); err != nil {
		return written, fmt.Errorf("%w: %w", ErrUnrung, err)
	}
	return written, nil
}
