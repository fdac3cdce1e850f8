package host_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/soloist-go/soloist/host"
)

// control asks a driver.
func control(t *testing.T, f *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(argument)); errno != 0 {
		t.Skipf("this machine has no terminals: %v", errno)
	}
}

// A terminal is as wide as it says. What COLUMNS says comes before that.
func TestStatusOnATerminal(t *testing.T) {
	environment(t, "NO_COLOR=1")
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer screen.Close()
	var number, locked int32
	control(t, screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, screen, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	p := host.Program{Name: "demo", Args: []string{"status"}, Work: here(), Store: rested(t), Now: spring, Stdout: terminal, Stderr: t.Output()}
	shown := func(columns uint16) string {
		t.Helper()
		size := struct{ rows, columns, x, y uint16 }{rows: 40, columns: columns}
		control(t, terminal, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
		if code := p.Run(t.Context()); code != 0 {
			t.Errorf("got code %d", code)
		}
		text, b := "", make([]byte, 4096)
		for !strings.HasSuffix(text, "\n") || !strings.Contains(text, "\nbeat ") { // its last row
			n, err := screen.Read(b)
			must(t, err)
			text += strings.ReplaceAll(string(b[:n]), "\r", "")
		}
		return text
	}
	wantText(t, "120 columns", shown(120), "NEXT         SCHEDULE         COUNTS\n")
	if narrow := shown(45); widest(narrow) > 45 || strings.Contains(narrow, "SCHEDULE") {
		t.Errorf("got %d columns, want 45:\n%s", widest(narrow), narrow)
	}
	t.Setenv("COLUMNS", "30")
	if narrow := shown(120); widest(narrow) > 30 {
		t.Errorf("got %d columns, want 30:\n%s", widest(narrow), narrow)
	}
}
