package trace

// Single is the one fault or order in a settled cluster: Op says which, of a Job and the Replica that runs it, until End.
const Single What = "single"

// What the draws also note.
const (
	Kept   What = "kept"   // the history has a line about a run of Job
	Wanted What = "wanted" // a program says that no replica is wanted before End
)

// What can happen to it.
const (
	Kill       = "kill"            // the replica that runs a job
	KillAhead  = "kill ahead"      // the replica that holds the lease of a job, just before its Tick
	KillAll    = "kill all"        // all replicas, of a cluster that scales to zero
	Terminate  = "terminate"       // the replica is asked to stop
	TermAhead  = "terminate ahead" // the replica that holds the lease of a job, just before its Tick
	Suspend    = "suspend"         // its machine, for two leases
	Unlock     = "unlock"          // the lease ends when it would expire
	UnlockNow  = "unlock now"      // the lease ends at once
	UnlockDeaf = "unlock the deaf" // also at once, and the run does not obey its context
	Stall      = "stall"           // the run reports no progress any more
	StallDeaf  = "stall of the deaf"
	CutOne     = "cut one"     // the replica reaches nothing
	CutAll     = "cut all"     // no replica does
	DenyOne    = "deny one"    // the replica may read and lease, and not write
	AbortOther = "abort"       // a replica with another definition of the job, up to End
	PauseJob   = "pause"       // and its end at End
	CancelRun  = "cancel"      // of the job
	RunOrdered = "run"         // the job once, for Request
	HandOver   = "hand over"   // the run
	ShortCalls = "short calls" // the replica dies, its lease is ended, and others have less than a lease each until End
	Sweep      = "sweep"       // the entries of slots that no replica has used for long are removed
	Over       = "over"        // nothing more happens to the cluster
)
