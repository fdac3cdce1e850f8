//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// watch runs the replicas for as long as the options say, and returns what it saw of them, in
// order.
func watch(ctx context.Context, o options) (samples []sample, err error) {
	dir, err := os.MkdirTemp("", "steady-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	storage, err := azurite.LaunchIn(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer storage.Close()
	pages, closePages := context.WithCancel(ctx)
	defer closePages()
	var all []replica
	defer func() {
		for _, r := range all {
			r.process.Kill()
		}
	}()
	for n := range o.replicas {
		r, err := start(fmt.Sprint("replica-", n), o.pace, storage.ConnectionString())
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		go openPage(pages, r.url)
	}
	fmt.Printf("%-8s %-10s %8s %10s %5s %7s\n", "AFTER", "REPLICA", "RSS MiB", "GOROUTINES", "FILES", "RUNS")
	for begin := time.Now(); time.Since(begin) < o.length; {
		if err := proctest.Pause(ctx, o.between); err != nil {
			return samples, err
		}
		for _, r := range all {
			s, err := look(ctx, r.url)
			if err != nil {
				return samples, fmt.Errorf("%s: %w", r.name, err)
			}
			s.after, s.replica = time.Since(begin).Round(time.Second), r.name
			samples = append(samples, s)
			fmt.Printf("%-8s %-10s %8.1f %10.0f %5.0f %7.0f\n", s.after, s.replica, s.rss/(1<<20), s.goroutines, s.files, s.runs)
		}
	}
	closePages()
	for _, r := range all {
		err = errors.Join(err, r.process.Stop(time.Minute))
	}
	return samples, err
}

// A replica is one process.
type replica struct {
	name, url string
	process   *proctest.Process
}

// start starts a replica. Its log is discarded.
func start(name string, pace int, storage string) (replica, error) {
	address, err := freeAddress()
	if err != nil {
		return replica{}, err
	}
	discard := func(string) {}
	p, err := proctest.Command{Program: proctest.Self(), Stdout: discard, Stderr: discard, Env: []string{
		proctest.As(strconv.Itoa(pace)), "SOLOIST_STORAGE=" + storage, "SOLOIST_LEASE=15s", "SOLOIST_HISTORY=24h",
		"SOLOIST_ADDR=" + address, "CONTAINER_APP_REPLICA_NAME=" + name}}.Start()
	return replica{name, "http://" + address, p}, err
}

// freeAddress returns an address of this machine that is free now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// openPage keeps a page open as a browser does: the page, then its stream, again after each end.
func openPage(ctx context.Context, url string) {
	for ctx.Err() == nil {
		for _, path := range []string{"/", "/api/v1/stream"} {
			if body, err := get(ctx, url+path); err == nil {
				_, _ = io.Copy(io.Discard, body) // until it ends or breaks
				body.Close()
			}
		}
		_ = proctest.Pause(ctx, time.Second)
	}
}

// get asks for a page.
func get(ctx context.Context, url string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, errors.New(url + ": " + answer.Status)
	}
	return answer.Body, nil
}
