package functions

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/soloist-go/soloist/host/internal/app"
)

// The functions of every program. The others are its jobs: a job's name cannot
// be one of these.
const (
	tickFunction   = "tick"            // serves all jobs
	alarmFunction  = app.AlarmFunction // the same, called by a message in the queue of alarms; there is none without alarms
	warmupFunction = "warmup"          // is called before an instance gets work
)

// functionsOf are the names of all functions that an app may have.
func functionsOf(a *app.App) []string {
	all := []string{tickFunction, warmupFunction}
	if a.Settings.Alarm == app.ByQueue {
		all = append(all, alarmFunction)
	}
	return append(all, a.Jobs()...)
}

// AppRoot is the directory of the Functions app, empty if none is found:
// in the handler's environment, in the environment of the platform's containers,
// or, for doctor, where the command functions has written an app.
func AppRoot() string {
	root := cmp.Or(os.Getenv("FUNCTIONS_APP_ROOT_PATH"), os.Getenv("AzureWebJobsScriptRoot"))
	if root == "" && (app.InFunctions() || isThere(manifestFile)) {
		root = "."
	}
	if root == "" || !isThere(filepath.Join(root, "host.json")) {
		return ""
	}
	return root
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
