package app

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/alarm"
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
