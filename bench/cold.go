//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/soloist-go/soloist/bench/internal/runs"
	"github.com/soloist-go/soloist/internal/proctest"
)

// cold measures how long programs take from their start to the first answer over HTTP, in turn.
func (b *bench) cold(ctx context.Context, s scenario, t *table) error {
	n := s.ticks
	if b.long {
		n = s.long
	}
	delays := map[string][]time.Duration{}
	for range n {
		for _, name := range s.peers {
			d, err := b.startOnce(ctx, name)
			if err != nil {
				return fmt.Errorf("cold start of %s: %w", name, err)
			}
			delays[name] = append(delays[name], d)
		}
	}
	for _, name := range s.peers {
		slices.Sort(delays[name])
		t.add(row{spec: spec{scenario: s.name, peer: name}, Report: runs.Report{Ticks: n, Runs: n, Delays: delays[name]}})
	}
	return nil
}

// startOnce starts a program and ends it when it has answered.
func (b *bench) startOnce(ctx context.Context, name string) (time.Duration, error) {
	program, _, err := b.services.of(ctx, name)
	if err != nil {
		return 0, err
	}
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp(b.services.dir, "cold-*")
	if err != nil {
		return 0, err
	}
	discard := func(string) {}
	began := time.Now()
	p, err := proctest.Command{Program: program, Dir: dir, Stdout: discard, Stderr: discard, Env: []string{"SOLOIST_ADDR=" + address}}.Start()
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	for {
		resp, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			resp.Body.Close()
			return time.Since(began), nil
		}
		if time.Since(began) > time.Minute {
			return 0, err
		}
		if err := proctest.Pause(ctx, ms/2); err != nil {
			return 0, err
		}
	}
}
