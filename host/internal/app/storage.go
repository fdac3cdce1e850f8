package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/examine"
	"github.com/soloist-go/soloist/store"
)

// A storage is a store, a name for it that shows no secrets, and what an
// operator should know about the choice.
type storage struct {
	store.Store
	name, note string
}

// defaultDir is where records go if no setting says where: on a developer's machine
// the program then runs as it is.
const defaultDir = ".soloist"

// storage opens what SOLOIST_STORAGE says, else the storage of the Functions
// host; others opens a URL of any other kind. Errors never show the value, which may be a secret.
func (s *Settings) storage(others func(url string) (store.Store, error)) (storage, error) {
	path, isDir := strings.CutPrefix(s.Storage, "dir:")
	switch {
	case s.otherScheme() != "":
		return s.other(others)
	case isDir && path == "":
		return storage{}, errors.New("SOLOIST_STORAGE is dir: without a path: want dir:PATH")
	case isDir:
		return directory(path)
	case s.Storage == "memory:":
		return storage{&local.Memory{}, "memory of this process",
			"records are in memory: other replicas do not see them and run the same ticks"}, nil
	}
	account, ok := s.account()
	switch {
	case ok:
		backend, err := azure.Open(account)
		if err != nil {
			return storage{}, err
		}
		return storage{Store: backend, name: backend.String()}, nil
	case s.Storage != "":
		return storage{}, errors.New("SOLOIST_STORAGE: want memory:, dir:PATH, a blob service URL or a connection string")
	}
	return nowhere()
}

// otherScheme is the scheme of SOLOIST_STORAGE if that is the URL of no blob service, such as postgres; else empty.
func (s *Settings) otherScheme() string {
	scheme, _, ok := strings.Cut(s.Storage, "://")
	if !ok || scheme == "http" || scheme == "https" || strings.ContainsFunc(scheme, func(c rune) bool { return c < 'a' || c > 'z' }) {
		return ""
	}
	return scheme
}

// other opens a URL for which the program brings the store.
func (s *Settings) other(open func(url string) (store.Store, error)) (storage, error) {
	if open == nil {
		text := fmt.Sprintf("SOLOIST_STORAGE begins with %s://, and this program brings no store for it: want host.Program.OpenStore", s.otherScheme())
		if strings.HasPrefix(s.otherScheme(), "postgres") {
			text += ", such as host.Program{OpenStore: postgres.OpenURL} with github.com/soloist-go/soloist/host/postgres"
		}
		return storage{}, errors.New(text)
	}
	backend, err := open(s.Storage)
	if err != nil {
		return storage{}, fmt.Errorf("SOLOIST_STORAGE: %w", err)
	}
	return storage{Store: backend, name: describe(backend)}, nil
}

// hostTime bounds the look-up of a host.
const hostTime = 3 * time.Second

// FindHost looks up the host of the storage, and says what to do if there is none: an identity that gets no token, as on a
// machine of one's own, would hide a slip in its name. Empty: there is a host, or the storage needs none.
func FindHost(a *App) string {
	backend, ok := a.Store.(interface {
		Examine(name string, now func() time.Time) []examine.Check
	})
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), hostTime)
	defer cancel()
	for _, c := range backend.Examine("", a.Now) {
		if c.Name != "dns" {
			continue
		}
		found := make(chan examine.Finding, 1)
		go func() { found <- c.Do(ctx) }() // the system's resolver may not heed ctx
		select {
		case f := <-found:
			if f.Fails {
				return format.Line(f.Text + ": " + f.Advice)
			}
		case <-ctx.Done():
			return fmt.Sprintf("the host of %s has not been found within %s: check that this machine's name server works", a.Place, hostTime)
		}
	}
	return ""
}

// account is the storage account of the settings; false if they name none.
func (s *Settings) account() (azure.Config, bool) {
	family := hostStorage()
	family.Container = s.Container
	switch {
	case strings.HasPrefix(s.Storage, "dir:"), s.Storage == "memory:", s.otherScheme() != "":
		return azure.Config{}, false
	case strings.HasPrefix(s.Storage, "https://"), strings.HasPrefix(s.Storage, "http://"):
		// The identity of the Functions host, if it has one, is kept.
		family.ConnectionString, family.AccountName, family.ServiceURL = "", "", s.Storage
		if strings.Contains(s.Storage, ".blob.") { // this names the account of its queues too; the family's may be another account
			family.QueueURL = ""
		}
		return family, true
	case strings.Contains(s.Storage, "="):
		return azure.Config{ConnectionString: s.Storage, Container: s.Container}, true
	}
	return family, s.Storage == "" && family != azure.Config{Container: s.Container}
}

// nowhere is for a program without any setting for its storage.
func nowhere() (storage, error) {
	if InFunctions() || InContainerApps() {
		return storage{}, errors.New("SOLOIST_STORAGE is not set, nor is AzureWebJobsStorage: " +
			"want one of them, since a directory here is not shared with other replicas and goes with this one")
	}
	s, err := directory(defaultDir)
	s.note = "no storage is configured: records are in the directory " + defaultDir + ", for replicas on this machine; SOLOIST_STORAGE says otherwise"
	return s, err
}

// directory makes the path absolute at once. A job may change the working
// directory: a relative path would then name another store.
func directory(path string) (storage, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return storage{}, fmt.Errorf("the directory %s for the records cannot be found, since the working directory is not known: give SOLOIST_STORAGE an absolute path: %w", path, err)
	}
	return storage{Store: local.Dir{Path: full}, name: "directory " + path}, nil
}

// hostStorage is the storage of the Functions host
// (https://learn.microsoft.com/azure/azure-functions/functions-app-settings#azurewebjobsstorage).
// envconfig looks for names in capitals only and so cannot see these.
func hostStorage() azure.Config {
	get := func(part string) string { return os.Getenv("AzureWebJobsStorage" + part) }
	return azure.Config{
		ConnectionString:          get(""),
		ServiceURL:                get("__blobServiceUri"),
		QueueURL:                  get("__queueServiceUri"),
		AccountName:               get("__accountName"),
		Credential:                get("__credential"),
		ClientID:                  get("__clientId"),
		ManagedIdentityResourceID: get("__managedIdentityResourceId"),
		TenantID:                  get("__tenantId"),
		ClientSecret:              get("__clientSecret"),
	}
}
