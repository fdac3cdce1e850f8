package host

// The codes that a program exits with. A second signal's is 130.
const (
	exitOK      = 0
	exitFail    = 1   // something went wrong
	exitUsage   = 2   // something has to be said differently: arguments or settings
	exitOverrun = 3   // a run went on without its lease
	exitRestart = 200 // the same in Functions, whose host restarts such a program without counting it as a crash
)

// printed is the exit code of a command that has answered in JSON.
func printed(ok bool) int {
	if !ok {
		return exitFail
	}
	return exitOK
}
