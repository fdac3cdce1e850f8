package mistakes_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/internal/proctest"
)

// chosen is the environment variable that names the mistake that a planting makes.
const chosen = "SOLOIST_MISTAKE"

// A planting is a program that has many mistakes and makes one of them. It takes one build, where a program
// for each mistake would take hundreds.
//
// A function with a mistake gets a twin that has it, at the end of the file, and calls the twin in its own
// place if that mistake is chosen.
type planting map[string]*file // by path

// A file is a source with what is added to it.
type file struct {
	text    []byte
	pkg     *ast.Ident
	decls   []decl
	imports []string
	calls   map[int]string // by offset: the calls of twins
	twins   []string
}

// plant makes all mistakes, which have to be changes of functions, in one program.
func plant(all []mistake) (planting, error) {
	p := planting{}
	for i, m := range all {
		if err := p.add(m, fmt.Sprint("Mistake", i)); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return p, nil
}

func (p planting) add(m mistake, id string) error {
	edited, err := proctest.Edited(m.edits...)
	if err != nil {
		return err
	}
	changed := map[string][]decl{}
	for path, text := range edited {
		if err := p.open(path); err != nil {
			return err
		}
		is, _, err := parse(text)
		if err != nil {
			return err
		}
		var ok bool
		if changed[path], ok = changes(p[path].decls, is); !ok {
			return fmt.Errorf("%s: want a change of functions that have names for their arguments", path)
		}
	}
	for path, decls := range changed {
		for _, d := range decls {
			p[path].add(d, m.name, id)
		}
	}
	return nil
}

func (p planting) open(path string) error {
	if p[path] != nil {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f := &file{text: text, calls: map[int]string{}}
	f.decls, f.pkg, err = parse(text)
	p[path] = f
	return err
}

// add adds what is new, or the twin of a function.
func (f *file) add(d decl, name, id string) {
	before := find(f.decls, d.key)
	switch {
	case d.imports:
		f.imports = append(f.imports, d.text)
		return
	case before != nil:
		d.text = d.fn.before + d.fn.name + id + d.fn.after
		f.calls[before.fn.body] += fmt.Sprintf(" if chosenMistake == %q { %s };", name, before.fn.call(d.fn.name+id))
	}
	f.twins = append(f.twins, fmt.Sprintf("\n//line %s:1\n%s\n", name, d.text)) // for what a compiler says
}

// sources returns the texts, by path. Each package has one file more, for what was chosen.
func (p planting) sources() map[string][]byte {
	all := map[string][]byte{}
	for path, f := range p {
		all[path] = f.source()
		all[filepath.Join(filepath.Dir(path), "zz_chosen_mistake.go")] = fmt.Appendf(nil,
			"package %s\n\nimport \"os\"\n\nvar chosenMistake = os.Getenv(%q)\n", f.pkg.Name, chosen)
	}
	return all
}

func (f *file) source() []byte {
	inserts := maps.Clone(f.calls)
	slices.Sort(f.imports)
	for _, spec := range slices.Compact(f.imports) {
		inserts[int(f.pkg.End())-1] += "; " + spec
	}
	var b strings.Builder
	from := 0
	for _, at := range slices.Sorted(maps.Keys(inserts)) {
		b.Write(f.text[from:at])
		b.WriteString(inserts[at])
		from = at
	}
	b.Write(f.text[from:])
	return []byte(b.String() + strings.Join(f.twins, ""))
}
