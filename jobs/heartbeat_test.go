package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
)

func TestHeartbeat(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		job := heartbeat()
		time.Sleep(90*time.Second + 300*time.Millisecond) // virtual

		var out bytes.Buffer
		run := &soloist.Run{
			Job:  job.Name,
			Tick: time.Date(2026, 11, 21, 2, 30, 10, 0, time.UTC),
			Log:  slog.New(slog.NewTextHandler(&out, nil)),
		}
		must(t, job.Do(t.Context(), run))
		got := out.String()
		want := "msg=heartbeat run=heartbeat@2026-11-21T02:30:10Z host=" + host + " uptime=1m30s\n"
		if !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("got %q, want a line that ends with %q", got, want)
		}
	})
}
