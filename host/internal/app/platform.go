package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// Where the program runs, by the variables that each platform sets:
// https://learn.microsoft.com/azure/azure-functions/functions-custom-handlers and
// https://learn.microsoft.com/azure/container-apps/environment-variables.

// InFunctions reports whether the Functions host calls the program.
func InFunctions() bool { return os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT") != "" }

// InContainerApps reports whether the program runs in Azure Container Apps.
func InContainerApps() bool {
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

// maxApp is how long the name of an app can be: see [store.Store].
const maxApp = 63

// appName makes a valid name of an app from any text. A name that is too long is cut and ends
// in a hash of the whole, so that two slots of a site keep their own records.
func appName(text string) string {
	text = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(text))
	text = strings.Trim(text, "-")
	if len(text) > maxApp {
		text = cut(text, maxApp, "-"+digest(text))
	}
	return cmp.Or(text, "soloist")
}

// cut makes a name of at most so many bytes that has this end.
func cut(name string, most int, end string) string {
	return strings.TrimRight(name[:min(len(name), most-len(end))], "-") + end
}

// digest tells names apart that are cut.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// Replica names this process in records and logs.
func Replica() string {
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

// RevisionName is the platform's name of the deployed version, empty if it has none. It
// is for people alone, as two revisions that run at once share their records.
func RevisionName() string { return os.Getenv("CONTAINER_APP_REVISION") }

// Revision is the name of the revision for the log.
func Revision() []any {
	if name := RevisionName(); name != "" {
		return []any{"revision", name}
	}
	return nil
}

// OnPlatform reports whether probes and proxies call the program from outside: on
// Container Apps, App Service or Kubernetes
// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables),
// and in any other container whose first process it is. There a loopback address would
// reach nothing but the container itself.
func OnPlatform() bool {
	return InContainerApps() || os.Getenv("WEBSITE_SITE_NAME") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" || os.Getpid() == 1
}

// defaultAddr is where the Functions host expects its handler; on another
// platform all addresses; else this machine's own, since the page shows names,
// paths and errors.
func defaultAddr() string {
	switch {
	case InFunctions():
		return "127.0.0.1:" + os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT")
	case OnPlatform():
		return ":8080"
	}
	return "127.0.0.1:8080"
}
