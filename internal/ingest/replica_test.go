//go:build unix

package ingest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs makes the program of jobs, and those with a mistake, each once.
var programs = map[mistake]func() (string, error){}

func init() {
	for i, m := range []mistake{{}, savesFirst, neverLoads} {
		programs[m] = sync.OnceValues(func() (string, error) {
			return m.build(filepath.Join(scratch, fmt.Sprint(i)))
		})
	}
}

// scratch is a directory for programs, which outlast the test that needs one first.
var scratch string

func program(t *testing.T, m mistake) string {
	t.Helper()
	path, err := programs[m]()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var jobs = filepath.Join("..", "..", "jobs")

// A mistake is code of the job, and what somebody could have written instead.
type mistake struct{ right, wrong string }

var (
	savesFirst = mistake{
		right: `
		if err := in.put(ctx, at.Next, page); err != nil {
			return err
		}
		at.Next++
		if err := in.save(ctx, at); err != nil {
			return fmt.Errorf("save the position: %w", err)
		}
`,
		wrong: `
		at.Next++
		if err := in.save(ctx, at); err != nil {
			return err
		}
		if err := in.put(ctx, at.Next-1, page); err != nil {
			return err
		}
`}
	neverLoads = mistake{right: `run.Load(ctx, &at)`, wrong: `ctx.Err()`}
)

func (m mistake) build(dir string) (program string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "jobs")
	cmd := exec.Command("go", "build", "-overlay", overlay, "-o", program, ".")
	cmd.Dir = jobs
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return program, nil
}

// overlay writes the file that has the go command take the mistake for the code.
func (m mistake) overlay(dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(jobs, "ingest.go"))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(source, []byte(m.right)); m.right != "" && n != 1 {
		return "", fmt.Errorf("%s has %q %d times: adapt this test", path, m.right, n)
	}
	if m.right != "" {
		source = bytes.Replace(source, []byte(m.right), []byte(m.wrong), 1)
	}
	mutant, overlay := filepath.Join(dir, "ingest.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutant}})
	return overlay, errors.Join(err, os.WriteFile(mutant, source, 0o600), os.WriteFile(overlay, text, 0o600))
}

// A fleet is the replicas of one world.
type fleet struct {
	t       *testing.T
	program string
	env     []string
	procs   []*proc

	mu      sync.Mutex
	runners map[int64]*proc // by token
	tries   int             // the most attempts at one tick
	log     []string        // of all
}

// A proc is a replica's process.
type proc struct {
	*exec.Cmd
	read chan struct{} // closed when all of its output is read
}

// newFleet starts n replicas of the program, whose ingest runs each second.
func newFleet(t *testing.T, program string, n int, l *ledger, storage, app string) *fleet {
	t.Helper()
	f := &fleet{t: t, program: program, procs: make([]*proc, n), runners: map[int64]*proc{}, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"SOLOIST_STORAGE=" + storage, "SOLOIST_APP=" + app, "SOLOIST_LEASE=" + l.lease.String(),
		"SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_LOG_FORMAT=json",
		"SOLOIST_JOB_INGEST_SCHEDULE=@every 1s",
		"INGEST_SOURCE=" + l.source.URL, "INGEST_SINK=" + l.target.URL,
	}}
	t.Cleanup(f.end)
	for i := range f.procs {
		f.start(i)
	}
	return f
}

func (f *fleet) start(i int) {
	f.t.Helper()
	p := &proc{Cmd: exec.Command(f.program), read: make(chan struct{})}
	p.Env, p.Stderr = f.env, os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.procs[i] = p
	go f.follow(p, out)
}

// follow reads the log of a replica, to know which runs are its own.
func (f *fleet) follow(p *proc, log io.Reader) {
	defer close(p.read)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20) // of a run that stalls, all goroutines are told
	for lines.Scan() {
		var line struct {
			Msg, Job string
			Token    int64
			Attempt  int
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Job != "" && line.Job != "ingest" {
			continue
		}
		f.mu.Lock()
		f.log = append(f.log, lines.Text())
		if line.Msg == "run started" {
			f.runners[line.Token] = p
			f.tries = max(f.tries, line.Attempt)
		}
		f.mu.Unlock()
	}
}

// runner is the replica that runs, or ran, under the token, if it still lives.
func (f *fleet) runner(token int64) (i int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.procs {
		if p == f.runners[token] {
			return i, true
		}
	}
	return 0, false
}

// kill ends a replica without notice, and waits until it is gone.
func (f *fleet) kill(i int) {
	f.procs[i].Process.Kill()
	<-f.procs[i].read
	f.procs[i].Wait()
}

// stop ends all replicas as a deployment does.
func (f *fleet) stop() {
	f.t.Helper()
	for _, p := range f.procs {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			f.t.Error(err)
		}
	}
	for _, p := range f.procs {
		<-p.read
		if err := p.Wait(); err != nil {
			f.t.Errorf("stopped with %v", err)
		}
	}
}

func (f *fleet) end() {
	for i, p := range f.procs {
		if p != nil {
			f.kill(i)
		}
	}
	if f.t.Failed() {
		f.t.Logf("the replicas' last words:\n%s", strings.Join(f.log[max(0, len(f.log)-40):], "\n"))
	}
}

// await polls: what it waits for is in other processes.
func await(t *testing.T, what string, patience time.Duration, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%s did not come within %s", what, patience)
		}
	}
}
