package azd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"text/template"

	"github.com/soloist-go/soloist/deploy/helm"
)

// templates are those of the chart, in the order in which they are applied.
var templates = []string{"serviceaccount.yaml", "poddisruptionbudget.yaml", "deployment.yaml"}

// addChart adds the chart with the values of the program, and what Helm would make of it as a manifest.
func (p *Program) addChart(files map[string][]byte) error {
	own := map[string]map[string]string{
		"Chart.yaml":  {"name": p.Name()},
		"values.yaml": {"image": p.Image, "app": p.App, "secret": p.Name()},
	}
	err := fs.WalkDir(helm.Chart, "soloist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := helm.Chart.ReadFile(name)
		for key, value := range own[path.Base(name)] {
			quoted, _ := quote(value)
			text = regexp.MustCompile(`(?m)^`+key+`: .*$`).ReplaceAllLiteral(text, []byte(key+": "+quoted))
		}
		files["chart/"+strings.TrimPrefix(name, "soloist/")] = text
		return err
	})
	if err != nil {
		return err
	}
	files["kubernetes.yaml"], err = p.manifest(files)
	return err
}

// manifest renders the chart as Helm does. Its templates use no more than is here.
func (p *Program) manifest(files map[string][]byte) ([]byte, error) {
	values, err := readValues(files["chart/values.yaml"])
	if err != nil {
		return nil, err
	}
	data := map[string]any{"Values": values, "Release": map[string]any{"Name": p.Name()}, "Chart": map[string]any{"Name": p.Name()}}
	add := func(a float64, b int) int { return int(a) + b }
	all := bytes.NewBufferString("# Written by deploy-files kubernetes: what the chart makes of its values. Change these and write it again:\n" +
		"#   helm template " + p.Name() + " chart >kubernetes.yaml\n")
	for _, name := range templates {
		t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"quote": quote, "toJson": toJSON, "add": add}).
			Parse(string(files["chart/templates/"+name]))
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		if err := t.Execute(all, data); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// readValues reads the values of the chart, each of which is on a line of its own.
func readValues(text []byte) (map[string]any, error) {
	values := map[string]any{}
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(line, ": ")
		if strings.HasPrefix(line, "#") || !found {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			return nil, fmt.Errorf("values.yaml: %s is no JSON: %w", name, err)
		}
		values[name] = v
	}
	return values, nil
}

func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
