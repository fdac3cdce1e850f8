package mistakes_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

var (
	nameFlag    = flag.String("name", "", "make the mistakes whose names match this `pattern`; . is all")
	changedFlag = flag.String("changed", "", "make the mistakes whose file, or whose test's, has changed since this `revision`")
	someFlag    = flag.Int("some", 0, "make so many others, drawn at random")
	drawFlag    = flag.Uint64("draw", rand.Uint64(), "the seed of that")
)

// root is the root of the repository.
var root, _ = filepath.Abs("../..")

// TestMistakes makes mistakes, one at a time, and demands that the test of each fails, which passes without.
func TestMistakes(t *testing.T) {
	all, err := read()
	if err == nil {
		all, err = drawn(t, all)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Skip("takes minutes: go test ./internal/mistakes -name . -v")
	}
	p, err := plant(all)
	if err != nil {
		t.Fatal(err)
	}
	sources := p.sources()
	byPackage := map[string][]mistake{}
	for _, m := range all {
		byPackage[m.pkg] = append(byPackage[m.pkg], m)
	}
	for pkg, some := range byPackage {
		t.Run(strings.ReplaceAll(pkg, "/", "-"), func(t *testing.T) { // a slash would begin a test in it
			program, err := proctest.BuildOver(t.TempDir(), pkg, true, sources)
			if err != nil {
				t.Fatal(err)
			}
			none(t, program, some)
			for _, m := range some {
				t.Run(m.name, func(t *testing.T) {
					t.Parallel()
					m.isNoticed(t, program)
				})
			}
		})
	}
}

// drawn are the mistakes that the flags ask for.
func drawn(t *testing.T, all []mistake) (some []mistake, err error) {
	names, err := regexp.Compile(*nameFlag)
	if err != nil {
		return nil, err
	}
	var changed []string
	if *changedFlag != "" {
		cmd := exec.Command("git", "diff", "--name-only", *changedFlag)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		changed = strings.Fields(string(out))
	}
	var others []mistake
	for _, m := range all {
		if *nameFlag != "" && names.MatchString(m.name) || m.isOf(changed) {
			some = append(some, m)
		} else {
			others = append(others, m)
		}
	}
	if *someFlag > 0 {
		t.Logf("-draw %d draws %d mistakes", *drawFlag, *someFlag)
		r := rand.New(rand.NewPCG(*drawFlag, 0))
		r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		some = append(some, others[:min(*someFlag, len(others))]...)
	}
	return some, nil
}

// isOf reports whether one of these files has the mistake or its test.
func (m mistake) isOf(files []string) bool {
	for _, e := range m.edits {
		if slices.Contains(files, e.File) {
			return true
		}
	}
	return len(files) > 0 && slices.Contains(files, m.testFile())
}

// none demands that the tests pass without a mistake.
func none(t *testing.T, program string, all []mistake) {
	var tests []string
	for _, m := range all {
		if m.property == "" {
			tests = append(tests, m.function())
		}
	}
	if len(tests) == 0 {
		return
	}
	if out, err := run(program, all[0].pkg, "", "-test.short", "-test.run=^("+strings.Join(tests, "|")+")$"); err != nil {
		t.Errorf("without a mistake: %v\n%s", err, out)
	}
}

// isNoticed demands that the test fails.
func (m mistake) isNoticed(t *testing.T, program string) {
	if m.property != "" {
		m.isNoticedBySeeds(t, program)
		return
	}
	only := "-test.run=^" + strings.ReplaceAll(m.test, "/", "$/^") + "$"
	out, err := run(program, m.pkg, m.name, only, "-test.short")
	if err == nil { // a test that takes long is left out then
		out, err = run(program, m.pkg, m.name, only)
	}
	switch {
	case err == nil:
		t.Errorf("%s %s does not notice it", m.pkg, m.test)
	case !failed.Match(out):
		t.Errorf("%v\n%s", err, out)
	}
}

// failed is what a program prints of tests that fail, or that a panic ends. A test that takes too long may only be slow.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: |^panic: [^t]|^fatal error: `)

// How many seeds may be simulated until one notices a mistake, and how many at once.
const mostSeeds, someSeeds = 12, 3

func (m mistake) isNoticedBySeeds(t *testing.T, program string) {
	var other []byte // what was reported, but not by the property
	for first := 1; first <= mostSeeds; first += someSeeds {
		out, err := run(program, m.pkg, m.name, "-test.run=^"+m.test+"$", fmt.Sprint("-from=", first), fmt.Sprint("-seeds=", someSeeds))
		if err != nil && strings.Contains(string(out), m.property) {
			return
		}
		if err != nil {
			other = out
		}
	}
	t.Errorf("%d seeds do not notice it by %s: %.2000s", mostSeeds, m.property, other)
}

// run runs tests of a package with a mistake.
func run(program, pkg, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, append(args, "-test.timeout=5m")...)
	cmd.Dir = filepath.Join(root, pkg)
	cmd.Env = append(os.Environ(), chosen+"="+name)
	return cmd.CombinedOutput()
}
