package host

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// Where the program runs, by the variables that each platform sets:
// https://learn.microsoft.com/azure/azure-functions/functions-custom-handlers and
// https://learn.microsoft.com/azure/container-apps/environment-variables.

func inFunctions() bool { return os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT") != "" }

func inContainerApps() bool {
	return os.Getenv("CONTAINER_APP_NAME") != "" || os.Getenv("CONTAINER_APP_JOB_NAME") != ""
}

// defaultApp is the platform's name of the app. All its revisions and replicas
// have the same; a slot is an app of its own, since two slots run at once.
func defaultApp(program string) string {
	site, slot := os.Getenv("WEBSITE_SITE_NAME"), os.Getenv("WEBSITE_SLOT_NAME")
	if site != "" && slot != "" && !strings.EqualFold(slot, "production") {
		site += "-" + slot
	}
	return appName(cmp.Or(os.Getenv("CONTAINER_APP_NAME"), os.Getenv("CONTAINER_APP_JOB_NAME"), site, program))
}

// appName makes an app's name of any other.
func appName(text string) string {
	text = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(text))
	text = strings.Trim(text, "-")
	return cmp.Or(text[:min(len(text), 63)], "soloist")
}

// replica names this process in records and logs.
func replica() string {
	if name := cmp.Or(os.Getenv("CONTAINER_APP_REPLICA_NAME"), os.Getenv("CONTAINER_APP_JOB_EXECUTION_NAME")); name != "" {
		return name
	}
	if id := os.Getenv("WEBSITE_INSTANCE_ID"); id != "" {
		return id[:min(len(id), 12)] // of 64 hexadecimal digits
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return fmt.Sprintf("%s-%d", machine, os.Getpid())
}

// revision is the platform's name of the deployed version: for the log alone,
// as two revisions that run at once share their records.
func revision() []any {
	if name := os.Getenv("CONTAINER_APP_REVISION"); name != "" {
		return []any{"revision", name}
	}
	return nil
}

// onPlatform reports whether probes and proxies of a platform call the program
// from outside: on Container Apps, App Service or Kubernetes
// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
func onPlatform() bool {
	return inContainerApps() || os.Getenv("WEBSITE_SITE_NAME") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// defaultAddr is where the Functions host expects its handler; on another
// platform all addresses; else this machine's own, since the page shows names,
// paths and errors.
func defaultAddr() string {
	switch {
	case inFunctions():
		return "127.0.0.1:" + os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT")
	case onPlatform():
		return ":8080"
	}
	return "127.0.0.1:8080"
}
