package azurite_test

import (
	"net/http"
	"testing"

	"github.com/soloist-go/soloist/internal/azurite"
)

func TestStart(t *testing.T) {
	s := azurite.Start(t)
	resp, err := http.Get(s.URL + "/none/blob")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// Unsigned, so refused, but by the Blob service.
	if got := resp.Header.Get("Server"); got != "Azurite-Blob/3.37.0" {
		t.Errorf("got %s from %q", resp.Status, got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(s.URL); err == nil {
		t.Error("still answers after Close")
	}
}
