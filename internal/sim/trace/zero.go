package trace

import "time"

// A Zero is a platform that scales a cluster to zero replicas: it starts one when a message is visible in the queue of
// alarms.
type Zero struct {
	Kind     string        // of what it runs
	Poll     time.Duration // at most between two looks at the queue
	Start    time.Duration // at most from a look to a replica that is up
	Lead     time.Duration // of the alarms
	Stay     time.Duration // how long a replica waits for the next tick, at most
	Net      time.Duration // between two starts that need no message
	CoolDown time.Duration // from the last message until the replicas of an app are ended
	Hold     time.Duration // for how long the host of a function hides its message
}

// Kinds of what a platform runs.
const (
	AsJob       = "job"       // a process for each message, that runs what is due and ends
	AsApp       = "app"       // replicas as long as a message is visible, and for the cool-down
	AsFunctions = "functions" // an invocation for each message, which its host hides meanwhile
)

// Names and notes of a cluster that scales to zero.
const (
	Platform  = "platform"           // the replica of what the platform does to a message
	AtZero    = "started from zero"  // of Up: why the replica does not stay
	ByAlarm   = "for an alarm"       // of Up: what it was started for
	ByNet     = "for the daily net"  // of Up
	ByDeploy  = "for a deploy"       // of Up
	ByRestart = "since it had ended" // of Up
)

// HandedOver is the Op of Handed when a replica has cleared the queue too.
const HandedOver = "over"

// What happens to a message.
const (
	MailPut     = "put"
	MailTaken   = "taken"   // and hidden
	MailDeleted = "deleted" // by who has its receipt
	MailLost    = "lost"    // by the platform
	MailMoved   = "moved"   // by the platform: it is visible at another time
	MailFault   = "fault"   // a call to the queue, which Note names, meets it
)

// LongestPass is for how long a platform lets a process do what is due.
const LongestPass = 30 * time.Minute
