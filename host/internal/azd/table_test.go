package azd_test

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A property is what the table says of one: its kind, and which values it
// takes, if not any.
type property struct {
	kind     string
	required bool // wherever the object that it is in is there
	read     bool // the service says it
	values   []string
}

// A table has the properties of each resource type, by type@version and path,
// and the roles by name.
type table struct {
	types   map[string]map[string]property
	roles   map[string]string
	sources map[string]string
}

var (
	typeLine     = regexp.MustCompile(`^([A-Za-z.]+(?:/[A-Za-z]+)+@\d{4}-\d\d-\d\d) (https://\S+)$`)
	propertyLine = regexp.MustCompile(`^  ([\w.*\[\]-]+)(!|\?)? (string|integer|boolean|object|array|number|any)(?: (\S+))?$`)
	roleLine     = regexp.MustCompile(`^role (\w+) ([0-9a-f-]{36}) (https://\S+)$`)
)

// readTable reads testdata/types.txt, which says itself how it is written.
func readTable(t *testing.T) *table {
	t.Helper()
	f, err := os.Open("testdata/types.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := &table{types: map[string]map[string]property{}, roles: map[string]string{}, sources: map[string]string{}}
	current := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		switch m := typeLine.FindStringSubmatch(line); {
		case m != nil:
			current = m[1]
			all.types[current], all.sources[current] = map[string]property{}, m[2]
		case roleLine.MatchString(line):
			m := roleLine.FindStringSubmatch(line)
			all.roles[m[1]] = m[2]
		case propertyLine.MatchString(line) && current != "":
			m := propertyLine.FindStringSubmatch(line)
			p := property{kind: m[3], required: m[2] == "!", read: m[2] == "?"}
			if m[4] != "" {
				p.values = strings.Split(m[4], "|")
			}
			all.types[current][m[1]] = p
		default:
			t.Fatalf("testdata/types.txt:%d: %q is no line of the table", n, line)
		}
	}
	return all
}

// find returns what the table says of a property; a name in it may be any where
// the table has a star.
func (t *table) find(kind, path string) (property, bool) {
	p, ok := t.types[kind][path]
	if !ok {
		parts := strings.Split(path, ".")
		parts[len(parts)-1] = "*"
		p, ok = t.types[kind][strings.Join(parts, ".")]
	}
	return p, ok
}

// required are the properties that an object at a path has to have.
func (t *table) required(kind, at string) (names []string) {
	for path, p := range t.types[kind] {
		parent, name := "", path
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			parent, name = path[:i], path[i+1:]
		}
		if p.required && parent == at {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
