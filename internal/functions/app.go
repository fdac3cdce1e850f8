package functions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Binding is one entry of a function.json.
type Binding struct {
	Type, Direction, Name, Schedule string
	QueueName, Connection           string
	UseMonitor, RunOnStartup        bool
}

// An App is what the host finds in a directory.
type App struct {
	Host      *Host
	Functions map[string][]Binding
	Retries   map[string]Retry // of those that have a policy
	Trigger   Trigger          // of queues
	bundle    bool             // it has the extensions, of which queues are one
	Skipped   []string         // folders with a function.json that the host cannot use, and why
}

// Load reads a deployed app, with these app settings.
func Load(root string, env ...string) (*App, error) {
	var settings struct {
		Version       string
		CustomHandler struct {
			Description *struct {
				DefaultExecutablePath, WorkingDirectory string
				Arguments                               []string
			}
		}
		FunctionTimeout string
		ExtensionBundle struct{ ID string }
		Extensions      struct{ Queues queueOptions }
	}
	if err := readJSON(filepath.Join(root, "host.json"), &settings); err != nil {
		return nil, err
	}
	d := settings.CustomHandler.Description
	switch {
	case settings.Version != "2.0":
		return nil, fmt.Errorf("host.json is of version %q", settings.Version)
	case d == nil:
		return nil, errors.New("missing worker Description")
	case d.DefaultExecutablePath == "":
		return nil, errors.New("WorkerDescription DefaultExecutablePath cannot be empty")
	}
	a := &App{Host: &Host{Root: root, Env: env}, Functions: map[string][]Binding{}, Retries: map[string]Retry{}}
	for _, text := range append([]string{d.DefaultExecutablePath}, d.Arguments...) {
		a.Host.Command = append(a.Host.Command, expand(text, env))
	}
	// Relative to the app if there is such a file, else it is sought on the PATH.
	if path := filepath.Join(root, a.Host.Command[0]); isFile(path) {
		a.Host.Command[0] = path
	}
	var err error
	if a.Host.Timeout, err = timeout(settings.FunctionTimeout); err != nil {
		return nil, err
	}
	if a.Trigger, err = settings.Extensions.Queues.trigger(); err != nil {
		return nil, err
	}
	a.bundle = settings.ExtensionBundle.ID != ""
	return a, a.find(root)
}

// find looks into the folders right below the root; a function.json in the root
// itself is none.
func (a *App) find(root string) error {
	dirs, err := os.ReadDir(root)
	for _, d := range dirs {
		path := filepath.Join(root, d.Name(), "function.json")
		if !d.IsDir() || !isFile(path) {
			continue
		}
		var f struct {
			Bindings []Binding
			Retry    *policy
		}
		err := readJSON(path, &f)
		if err == nil {
			err = f.Retry.parse()
		}
		switch {
		case err != nil:
			a.Skipped = append(a.Skipped, fmt.Sprintf("%s: %v", d.Name(), err))
		case !isName(d.Name()):
			a.Skipped = append(a.Skipped, d.Name()+": not a name of a function")
		case !a.bundle && slices.ContainsFunc(f.Bindings, func(b Binding) bool { return strings.EqualFold(b.Type, "queueTrigger") }):
			a.Skipped = append(a.Skipped, d.Name()+": the binding type(s) 'queueTrigger' are not registered")
		case len(f.Bindings) == 0:
			a.Skipped = append(a.Skipped, d.Name()+": at least one binding must be declared")
		default:
			a.Functions[d.Name()] = f.Bindings
			if f.Retry != nil {
				a.Retries[d.Name()] = Retry{*f.Retry.MaxRetryCount, f.Retry.delay}
			}
		}
	}
	return err
}

var variable = regexp.MustCompile(`%[^%]+%`)

// expand puts in app settings; what is not set goes.
func expand(text string, env []string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		name := strings.Trim(v, "%")
		for _, pair := range env {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return os.Getenv(name)
	})
}

// timeout reads hh:mm:ss, -1 being none. Without one it is the default of the plans
// other than Consumption.
func timeout(text string) (time.Duration, error) {
	if text == "" {
		return 30 * time.Minute, nil
	}
	if text == "-1" {
		return 0, nil
	}
	var h, m, s time.Duration
	if _, err := fmt.Sscanf(text, "%d:%d:%d", &h, &m, &s); err != nil {
		return 0, fmt.Errorf("functionTimeout is %q: %w", text, err)
	}
	return h*time.Hour + m*time.Minute + s*time.Second, nil
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(bytes.TrimPrefix(b, []byte("\ufeff")), v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
