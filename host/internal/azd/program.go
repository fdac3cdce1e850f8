package azd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// A Program is what is deployed, and where the files of its deployment are.
type Program struct {
	Kind    string
	App     string // name of the records
	Queue   string // of the alarm; empty: replicas stay up
	Package string // the main package, as from the root of the module: "./jobs"
	Go      string // the release of Go that builds it: "1.26"
	Root    string // the root of the module, as from the directory of the files, with slashes
	Here    string // the directory of the files, as from the root of the module, with slashes
	Timeout int    // seconds that a pass may take
	Image   string // what pods of Kubernetes run, with a tag or a digest
}

// maxName is how long the name of a resource may be, so that the name of a
// Functions app, with its suffix, has at most 32 characters: its host ignores
// the rest
// (https://learn.microsoft.com/azure/azure-functions/storage-considerations#host-id-considerations).
const maxName = 18

// leastReplicaTime is the shortest time that a pass is given, whatever the jobs
// say, and a margin is what comes on top of the longest job: the wait for it,
// a lease, the grace.
const (
	leastReplicaTime = 30 * time.Minute
	margin           = 5 * time.Minute
)

// ReplicaTime is how long, in seconds, a pass may take whose longest job takes
// that long; zero: not known.
func ReplicaTime(longest time.Duration) int {
	return int(max(leastReplicaTime, longest+margin) / time.Second)
}

// Name is the name of the app in a form that all kinds of resources accept: two to
// 18 lower-case letters, digits and single hyphens, a letter first and no
// hyphen last.
func (p *Program) Name() string {
	name := strings.Join(strings.FieldsFunc(strings.ToLower(p.App), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
	if name == "" || name[0] < 'a' {
		name = "jobs-" + name
	}
	name = strings.TrimRight(name[:min(len(name), maxName)], "-")
	if len(name) < 2 {
		name += "-jobs"
	}
	return name
}

// maxQueue is how long the name of a queue may be
// (https://learn.microsoft.com/rest/api/storageservices/naming-queues-and-metadata), so that Functions can add "-poison".
const maxQueue = 63 - len("-poison")

var (
	packageRule = regexp.MustCompile(`^\.(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
	appRule     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	queueRule   = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){2,62}$`)
	goRule      = regexp.MustCompile(`^1\.[0-9]+$`)
	imageRule   = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/:-]*(:[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64})$`)
)

// StaysUp reports whether replicas of the kind are up all the time, so that no alarm wakes them up.
func (p *Program) StaysUp() bool { return p.Kind == AlwaysOn || p.Kind == Kubernetes }

// check refuses what the files could not say.
func (p *Program) check() error {
	switch {
	case layers[p.Kind] == nil:
		return fmt.Errorf("the kind is %q: want %s, %s, %s, %s or %s", p.Kind, Functions, App, Job, AlwaysOn, Kubernetes)
	case !appRule.MatchString(p.App):
		return fmt.Errorf("the name of the app is %q: want up to 63 lower-case letters, digits and hyphens, no hyphen first", p.App)
	case !p.StaysUp() && !queueRule.MatchString(p.Queue) || len(p.Queue) > maxQueue:
		return fmt.Errorf("the queue is named %q: want 3 to %d lower-case letters, digits and single hyphens, no hyphen first or last", p.Queue, maxQueue)
	case !packageRule.MatchString(p.Package):
		return fmt.Errorf("the main package is %q: want its directory from the root of the module, such as ./jobs", p.Package)
	case !goRule.MatchString(p.Go):
		return fmt.Errorf("the release of Go is %q: want one such as 1.26", p.Go)
	case p.Kind == Kubernetes && !imageRule.MatchString(p.Image):
		return fmt.Errorf("the image is %q: name it with --image, with a tag or a digest, such as registry.example.com/jobs:1.4.0", p.Image)
	case p.Kind != Kubernetes && p.Image != "":
		return fmt.Errorf("the image is %q: %s has no --image, since azd builds the image and names it", p.Image, p.Kind)
	case strings.ContainsFunc(p.Root+p.Here, unicode.IsControl):
		return fmt.Errorf("the path %q has a control character in it", p.Root+p.Here)
	}
	return nil
}

// Locate finds the module that a directory is in, and sets Root and Here. The
// directory need not exist yet.
func (p *Program) Locate(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if info, err := os.Stat(filepath.Join(root, "go.mod")); err == nil && info.Mode().IsRegular() {
			here, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			back, err := filepath.Rel(dir, root)
			p.Here, p.Root = filepath.ToSlash(here), filepath.ToSlash(back)
			return err
		}
		if root == filepath.Dir(root) {
			return fmt.Errorf("%s is not within a Go module: name a directory in that of the program, whose sources the deployment is built from", dir)
		}
	}
}
