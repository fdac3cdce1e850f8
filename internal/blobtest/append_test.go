package blobtest_test

import (
	"io"
	"testing"

	"github.com/soloist-go/soloist/internal/blobtest"
)

// An append blob takes blocks at its end, if that is where the request wants them.
func TestAppend(t *testing.T) {
	s := newService(t)
	s.must("PUT", "box?restype=container")
	s.must("PUT", "box/app/log", "x-ms-blob-type: AppendBlob")
	for _, one := range []struct {
		body, position, code string
	}{
		{"one", "0", ""}, {"late", "0", "AppendPositionConditionNotMet"}, {"two", "3", ""},
		{"early", "7", "AppendPositionConditionNotMet"}, {"three", "", ""}, {"", "11", "InvalidHeaderValue"},
	} {
		var headers []string
		if one.position != "" {
			headers = []string{"x-ms-blob-condition-appendpos: " + one.position}
		}
		if code, _ := s.send("PUT", "box/app/log?comp=appendblock", one.body, headers...); code != one.code {
			t.Errorf("%s at %s: got %q, want %q", one.body, one.position, code, one.code)
		}
	}
	for part, want := range map[string]string{"bytes=0-": "onetwothree", "bytes=3-5": "two", "bytes=6-100": "three"} {
		resp := s.must("GET", "box/app/log", "x-ms-range: "+part)
		if got, _ := io.ReadAll(resp.Body); string(got) != want || resp.StatusCode != 206 || resp.Header.Get("X-Ms-Blob-Type") != "AppendBlob" {
			t.Errorf("%s: got %d %q, want %q", part, resp.StatusCode, got, want)
		}
	}
}

func TestAnAppendBlobTakesSoManyBlocks(t *testing.T) {
	s := newService(t)
	s.must("PUT", "box?restype=container")
	s.must("PUT", "box/app/log", "x-ms-blob-type: AppendBlob")
	for i := range blobtest.MaxBlocks + 1 {
		code, _ := s.send("PUT", "box/app/log?comp=appendblock", "x")
		if want := map[bool]string{true: "BlockCountExceedsLimit"}[i == blobtest.MaxBlocks]; code != want {
			t.Fatalf("block %d: got %q, want %q", i, code, want)
		}
	}
}
