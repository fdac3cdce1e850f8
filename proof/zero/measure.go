//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/proof/zero/judge"
	"github.com/soloist-go/soloist/proof/zero/keda"
	"github.com/soloist-go/soloist/proof/zero/platform"
)

const queue = "zero-alarm"

// settle is from the first replica's main function to the first tick that counts: by then the jobs have their records.
const settle = 5 * time.Second

// measure runs the platform for as long as the options say, and returns what happened and what failed.
func measure(ctx context.Context, o options) (story judge.Story, failures []string, err error) {
	storage, err := azurite.Launch(ctx)
	if err != nil {
		return story, nil, err
	}
	defer storage.Close()
	dir, err := os.MkdirTemp("", "zero-*")
	if err != nil {
		return story, nil, err
	}
	defer os.RemoveAll(dir)
	r := &recorder{gone: map[string]time.Time{}, Fleet: proctest.Fleet{Env: o.env(storage.ConnectionString())}}
	defer r.Close()
	if r.Program, err = proctest.BuildOver(dir, "proof/zero/program", false, nil); err != nil {
		return story, nil, err
	}
	if r.scaler, err = keda.Open(keda.Rule{Connection: storage.ConnectionString(), Queue: queue}); err != nil {
		return story, nil, err
	}
	from := time.Now().Add(settle)
	to := from.Add(o.each(o.length))
	err = r.run(ctx, o.rules(), to.Add(late+o.each(polling)+settle))
	return r.story(o, from, to), r.failures, err
}

// env returns the environment of a replica.
func (o options) env(connection string) []string {
	command := "serve"
	if o.job {
		command = "tick"
	}
	order, _ := json.Marshal(map[string]any{"Schedules": o.jobs(), "Command": command}) // of texts
	return []string{
		proctest.As(string(order)), "SOLOIST_APP=zero", "SOLOIST_STORAGE=" + connection, "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_LOG_LEVEL=warn",
		"SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE=" + queue,
		"SOLOIST_ALARM_LEAD=" + o.each(lead).String(), "SOLOIST_STAY=" + o.each(o.stay).String(),
	}
}

// run has the platform until a time.
func (r *recorder) run(ctx context.Context, rules platform.Rules, until time.Time) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := &platform.Platform{Rules: rules, Scaler: r.scaler, Start: r.start, Tell: r.tell}
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	err := proctest.Pause(ctx, time.Until(until))
	stop()
	if end := <-done; err == nil {
		err = end
	}
	if err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	return nil
}
