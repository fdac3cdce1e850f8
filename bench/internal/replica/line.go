package replica

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

// What a line tells: of a run by its replica, of a fault by the bench.
const (
	Start = "start"
	End   = "end"

	Kill = "kill" // SIGKILL
	Term = "term" // SIGTERM
	Stop = "stop" // SIGSTOP
	Cont = "cont" // SIGCONT
)

// A Line is one line of the log.
type Line struct {
	What    string
	Wall    time.Time // by the machine's clock, which all processes share
	Tick    time.Time // of a run; the epoch for a fault
	Job     string    // of a run; "-" for a fault
	Replica string
	Pid     int
}

func (l Line) String() string {
	return fmt.Sprintf("%s %d %d %s %s %d", l.What, l.Wall.UnixNano(), l.Tick.UnixNano(), l.Job, l.Replica, l.Pid)
}

// parse is the opposite of String.
func parse(text string) (l Line, err error) {
	var wall, tick int64
	if _, err := fmt.Sscan(text, &l.What, &wall, &tick, &l.Job, &l.Replica, &l.Pid); err != nil {
		return l, fmt.Errorf("the log has the line %q: %w", text, err)
	}
	l.Wall, l.Tick = time.Unix(0, wall), time.Unix(0, tick)
	return l, nil
}

// A Log is a file to which many processes append.
type Log struct{ file *os.File }

// Open opens a log, and makes it if there is none.
func Open(name string) (*Log, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return &Log{f}, err
}

// Write appends a line, by one call of the system: lines of several processes do not mix.
func (l *Log) Write(line Line) error {
	_, err := l.file.WriteString(line.String() + "\n")
	return err
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// Read reads a log.
func Read(name string) (all []Line, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		l, err := parse(lines.Text())
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, lines.Err()
}
