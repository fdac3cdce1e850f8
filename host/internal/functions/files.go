package functions

import (
	"encoding/json"
	"time"

	"github.com/soloist-go/soloist"
)

// The files of a Functions app.

type (
	functionFile struct {
		Bindings []any        `json:"bindings"`
		Retry    *retryPolicy `json:"retry,omitempty"`
	}
	binding struct {
		Type      string `json:"type"`
		Direction string `json:"direction"`
		Name      string `json:"name"`
	}
	queueBinding struct {
		binding
		Queue      string `json:"queueName"`
		Connection string `json:"connection"`
	}
	timerBinding struct {
		binding
		Schedule     string `json:"schedule"`
		RunOnStartup bool   `json:"runOnStartup"`
		UseMonitor   bool   `json:"useMonitor"`
	}

	// A retryPolicy has the host make a call again that failed
	// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-error-pages#retry-policies).
	retryPolicy struct {
		Strategy string `json:"strategy"`
		Most     int    `json:"maxRetryCount"`
		Delay    string `json:"delayInterval"`
	}
)

const (
	retries    = 5
	retryDelay = time.Minute
)

// retryOf is for a job whose timer fires seldom: the storage may be out of reach
// just then, the tick stays due, and the next call may be a day away. The timer
// waits for the last retry, so where calls are near there is none.
func retryOf(j soloist.Job, now time.Time) *retryPolicy {
	if oftener(j, 2*retries*retryDelay, now) {
		return nil
	}
	return fixedDelay()
}

func fixedDelay() *retryPolicy { return &retryPolicy{"fixedDelay", retries, hostSpan(retryDelay)} }

func hostFile(program string, timeout time.Duration, alarms bool) any {
	type object = map[string]any
	file := struct {
		Version    string `json:"version"`
		Handler    object `json:"customHandler"`
		Timeout    string `json:"functionTimeout"`
		Logging    object `json:"logging"`
		Bundle     any    `json:"extensionBundle,omitempty"`
		Extensions object `json:"extensions,omitempty"`
	}{
		Version: "2.0", Timeout: hostSpan(timeout),
		Handler: object{"description": object{"defaultExecutablePath": program}},
		// The alerts count lines of the log: sampling would leave some out.
		Logging: object{"applicationInsights": object{"samplingSettings": object{"isEnabled": false}}},
	}
	if alarms {
		file.Bundle, file.Extensions = extensionBundle, object{"queues": queueOptions}
	}
	return file
}

// localFile is for `func start` on a developer's machine, with Azurite.
func localFile() any {
	return map[string]any{"IsEncrypted": false,
		"Values": map[string]string{"FUNCTIONS_WORKER_RUNTIME": "Custom", "AzureWebJobsStorage": "UseDevelopmentStorage=true"}}
}

func indented(v any) []byte {
	b, _ := json.MarshalIndent(v, "", "  ")
	return append(b, '\n')
}
