package functions

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/soloist-go/soloist"
)

// An object is one of a file of a Functions app.
type object = map[string]any

// binding is one through which the host calls a function; more is what this type has besides.
func binding(kind, name string, more object) object {
	b := object{"type": kind, "direction": "in", "name": name}
	maps.Copy(b, more)
	return b
}

const (
	retries    = 5
	retryDelay = time.Minute
)

// retryOf is for a job whose timer fires seldom: the storage may be out of reach
// just then, the tick stays due, and the next call may be a day away. The timer
// waits for the last retry, so where calls are near there is none.
func retryOf(j soloist.Job, now time.Time) object {
	if oftener(j, 2*retries*retryDelay, now) {
		return nil
	}
	return fixedDelay()
}

// fixedDelay has the host make a call again that failed
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-error-pages#retry-policies).
func fixedDelay() object {
	return object{"strategy": "fixedDelay", "maxRetryCount": retries, "delayInterval": hostSpan(retryDelay)}
}

func hostFile(program string, timeout time.Duration, alarms bool) object {
	file := object{"version": "2.0", "functionTimeout": hostSpan(timeout),
		"customHandler": object{"description": object{"defaultExecutablePath": program}},
		// The alerts count lines of the log: sampling would leave some out.
		"logging": object{"applicationInsights": object{"samplingSettings": object{"isEnabled": false}}},
	}
	if alarms {
		file["extensionBundle"], file["extensions"] = extensionBundle, object{"queues": queueOptions}
	}
	return file
}

// localFile is for `func start` on a developer's machine, with Azurite.
func localFile() object {
	return object{"IsEncrypted": false,
		"Values": object{"FUNCTIONS_WORKER_RUNTIME": "Custom", "AzureWebJobsStorage": "UseDevelopmentStorage=true"}}
}

func indented(v any) []byte {
	b, _ := json.MarshalIndent(v, "", "  ")
	return append(b, '\n')
}
