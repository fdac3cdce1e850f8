package web_test

import (
	"testing"

	"github.com/soloist-go/soloist/host/internal/web"
)

func TestNamesOfThisMachine(t *testing.T) {
	for name, want := range map[string]bool{"127.0.0.1:8080": true, "localhost": true, "LOCALHOST:1": true, "[::1]:8080": true, "[::1]": true, "::1": true,
		"evil.example:8080": false, "evil.example": false, "127.0.0.1.evil.example": false, "localhost.evil.example:80": false,
		"192.0.2.9": false, "0.0.0.0:8080": false, "": false} {
		if web.IsLocal(name) != want {
			t.Errorf("%q is this machine: %t, want %t", name, !want, want)
		}
	}
}
