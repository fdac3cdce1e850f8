// Package trace is the log of a simulated cluster.
package trace

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/check"
)

type (
	Behavior   = check.Behavior
	Definition = check.Definition
	Event      = check.Event
	Fault      = check.Fault
	Limits     = check.Limits
	Lock       = check.Lock
	Log        = check.Log
	Once       = check.Once
	Pulse      = check.Pulse
	Result     = check.Result
	Time       = check.Time
	Violation  = check.Violation
	What       = check.What
	Zero       = check.Zero
)

const (
	Aborted     = check.Aborted
	Again       = check.Again
	AlarmNote   = check.AlarmNote
	Answered    = check.Answered
	Applied500  = check.Applied500
	AsApp       = check.AsApp
	AsFunctions = check.AsFunctions
	AsJob       = check.AsJob
	Asked       = check.Asked
	Asleep      = check.Asleep
	AtZero      = check.AtZero
	Blocked     = check.Blocked
	Broke       = check.Broke
	Busy        = check.Busy
	ByAlarm     = check.ByAlarm
	ByDeploy    = check.ByDeploy
	ByHand      = check.ByHand
	ByNet       = check.ByNet
	ByRestart   = check.ByRestart
	Called      = check.Called
	Cancelled   = check.Cancelled
	Corrupted   = check.Corrupted
	Crash       = check.Crash
	CutOff      = check.CutOff
	Deaf        = check.Deaf
	Deleted     = check.Deleted
	Denied      = check.Denied
	Down        = check.Down
	Drop        = check.Drop
	DropReply   = check.DropReply
	Effect      = check.Effect
	Emitted     = check.Emitted
	Erratic     = check.Erratic
	Exits       = check.Exits
	Failed      = check.Failed
	Fails       = check.Fails
	Fared       = check.Fared
	Fine        = check.Fine
	Flaps       = check.Flaps
	Foreign     = check.Foreign
	Forever     = check.Forever
	Freeze      = check.Freeze
	Frozen      = check.Frozen
	Gone        = check.Gone
	Handed      = check.Handed
	HandedOver  = check.HandedOver
	Hangs       = check.Hangs
	Hasty       = check.Hasty
	Healed      = check.Healed
	Health      = check.Health
	Held        = check.Held
	Internal    = check.Internal
	IsBroken    = check.IsBroken
	IsHeld      = check.IsHeld
	IsLost      = check.IsLost
	IsOver      = check.IsOver
	IsRunning   = check.IsRunning
	IsUnknown   = check.IsUnknown
	IsWaiting   = check.IsWaiting
	IsWell      = check.IsWell
	Late        = check.Late
	Later       = check.Later
	Leased      = check.Leased
	Listed      = check.Listed
	Loaded      = check.Loaded
	LongestPass = check.LongestPass
	Lost        = check.Lost
	Mail        = check.Mail
	MailDeleted = check.MailDeleted
	MailFault   = check.MailFault
	MailLost    = check.MailLost
	MailMoved   = check.MailMoved
	MailPut     = check.MailPut
	MailTaken   = check.MailTaken
	Netted      = check.Netted
	NoPulse     = check.NoPulse
	NoTick      = check.NoTick
	None        = check.None
	Nothing     = check.Nothing
	NothingToDo = check.NothingToDo
	Older       = check.Older
	Operator    = check.Operator
	Ordered     = check.Ordered
	Orderer     = check.Orderer
	Overran     = check.Overran
	Page        = check.Page
	Panics      = check.Panics
	Patience    = check.Patience
	Platform    = check.Platform
	Ran         = check.Ran
	ReadOnly    = check.ReadOnly
	Refuse      = check.Refuse
	Refused     = check.Refused
	Replaced    = check.Replaced
	Request     = check.Request
	Reset       = check.Reset
	Rung        = check.Rung
	Said        = check.Said
	Settling    = check.Settling
	Silent      = check.Silent
	Skipped     = check.Skipped
	Slow        = check.Slow
	Spreading   = check.Spreading
	Stalled     = check.Stalled
	Steady      = check.Steady
	Stepped     = check.Stepped
	Stop        = check.Stop
	Stopped     = check.Stopped
	Stubborn    = check.Stubborn
	Swept       = check.Swept
	Tardy       = check.Tardy
	Throttle    = check.Throttle
	TimedOut    = check.TimedOut
	TookTooMuch = check.TookTooMuch
	Unlocked    = check.Unlocked
	Unlocker    = check.Unlocker
	Up          = check.Up
	Weak        = check.Weak
	Weighed     = check.Weighed
	Well        = check.Well
	Woken       = check.Woken
	Yield       = check.Yield
)

func IsSlot(name string) bool { return check.IsSlot(name) }

func TimeOfDay(t time.Time) string { return check.TimeOfDay(t) }
