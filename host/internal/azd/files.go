// Package azd has the files that deploy a program: to Azure with the Azure
// Developer CLI, azure.yaml, the infrastructure in Bicep, and an image or a
// hook that builds the program; to Kubernetes an image, a chart and a manifest. None of them has a secret.
package azd

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/soloist-go/soloist/internal/safefile"
)

// The kinds of app.
const (
	Functions = "functions"
	App       = "containerapp"
	Job       = "containerapp-job"

	// These keep replicas up.
	AlwaysOn   = "containerapp-always-on"
	Kubernetes = "kubernetes"
)

//go:embed files
var embedded embed.FS

// layers are the directories below files that make up a kind, in which no file
// is there twice.
var layers = map[string][]string{
	Functions: {"all", "functions"},
	App:       {"all", "image", "containers", "containerapp"},
	Job:       {"all", "image", "containers", "containerapp-job"},

	AlwaysOn:   {"all", "image", "containers", "containerapp-always-on"},
	Kubernetes: {"image", "kubernetes"},
}

// Files are the files of a program, by path, with slashes.
func (p *Program) Files() (map[string][]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, layer := range layers[p.Kind] {
		root := path.Join("files", layer)
		err := fs.WalkDir(embedded, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := embedded.ReadFile(name)
			if err != nil {
				return err
			}
			to := strings.TrimPrefix(name, root+"/")
			if target, templated := strings.CutSuffix(to, ".tmpl"); templated {
				to = target
				text, err = p.fill(name, string(text))
			}
			files[to] = text
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if p.Kind == Kubernetes {
		return files, p.addChart(files)
	}
	return files, nil
}

// fill writes the values of the program into a file. Bicep has none: its values
// come as parameters.
func (p *Program) fill(name, text string) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"quote": quote, "sh": inShell}).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.Bytes(), nil
}

// quote writes a string of JSON, which YAML reads as well.
func quote(text string) (string, error) {
	b, err := json.Marshal(text)
	return string(b), err
}

// inShell writes one word of a shell.
func inShell(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Write puts files into a directory, which is made if it is not there, and
// returns the paths of those that were not there as they are. A file that
// differs stays, and nothing is written, unless overwrite says otherwise.
func Write(dir string, files map[string][]byte, overwrite bool) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir) // no link in it leads elsewhere
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := safefile.ReadIn(root, name)
		switch {
		case err == nil && bytes.Equal(text, files[name]):
			continue
		case err == nil:
			differ = append(differ, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		written = append(written, name)
	}
	if len(differ) > 0 && !overwrite {
		return nil, fmt.Errorf("%s in %s would be overwritten: move it away, or give --overwrite", strings.Join(differ, ", "), dir)
	}
	for _, name := range written {
		if err := safefile.WriteIn(root, name, files[name], 0o644); err != nil {
			return nil, err
		}
	}
	return written, nil
}
