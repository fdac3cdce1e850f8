package azd_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const top = "../../.."

// shipped returns the files of the repository, by path, whose text a user follows: pages, manifests, advice in the code.
func shipped(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && (base == ".git" || base == "testdata" || base == "node_modules") {
			return fs.SkipDir
		}
		known := slices.Contains([]string{".md", ".go", ".yaml", ".json", ".tmpl", ".bicep"}, filepath.Ext(base)) || strings.HasPrefix(base, "Dockerfile")
		if !d.Type().IsRegular() || !known || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		all[strings.TrimPrefix(filepath.ToSlash(name), top+"/")] = string(text)
		return err
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("got %d files, %v", len(all), err)
	}
	return all
}

// Owner and Contributor are roles of the control plane: with --auth-mode login the service answers them 403
// (https://learn.microsoft.com/azure/storage/blobs/authorize-data-operations-cli).
func TestNoCommandNeedsDataRoleOfOwner(t *testing.T) {
	t.Parallel()
	for name, text := range shipped(t) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "--auth-mode login") || regexp.MustCompile(`az storage (container|queue|table|share) create`).MatchString(line) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// Queue, container and the role of whoever runs wake are there before it.
func TestDeployPageGrantsBeforeWake(t *testing.T) {
	t.Parallel()
	page := shipped(t)["deploy/README.md"]
	at := 0
	for _, step := range []string{
		"az storage container-rm create --name soloist ",
		`/queueServices/default/queues/soloist-alarm?api-version=`,
		"Storage Queue Data Contributor", "Storage Queue Data Message Sender", "az ad signed-in-user show",
		"go run ./jobs wake\n",
	} {
		i := strings.Index(page[at:], step)
		if i < 0 {
			t.Fatalf("deploy/README.md lacks %q, or has it too late", step)
		}
		at += i
	}
}

// az containerapp update sets cooldownPeriod to 300 again, so no command of a page is that; the page says so, and which
// version of the command line it was written for.
func TestNoCommandResetsCoolDown(t *testing.T) {
	t.Parallel()
	files := shipped(t)
	for name, text := range files {
		if regexp.MustCompile(`(?m)^ *az containerapp update`).MatchString(text) {
			t.Errorf("%s has az containerapp update as a command", name)
		}
	}
	for _, text := range []string{"`az containerapp update`", "`cooldownPeriod`", "az 2.87.0"} {
		if !strings.Contains(files["deploy/README.md"], text) {
			t.Errorf("deploy/README.md does not name %s", text)
		}
	}
}
