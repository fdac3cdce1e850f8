// Package azd has the files that deploy a program to Azure with the Azure
// Developer CLI: azure.yaml, the infrastructure in Bicep, and an image or a
// hook that builds the program. None of them has a secret.
package azd

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

// The kinds of app.
const (
	Functions = "functions"
	App       = "containerapp"
	Job       = "containerapp-job"
)

//go:embed files
var embedded embed.FS

// layers are the directories below files that make up a kind, in which no file
// is there twice.
var layers = map[string][]string{
	Functions: {"all", "functions"},
	App:       {"all", "containers", "containerapp"},
	Job:       {"all", "containers", "containerapp-job"},
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
