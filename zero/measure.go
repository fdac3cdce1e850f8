//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/zero/judge"
	"github.com/soloist-go/soloist/zero/keda"
	"github.com/soloist-go/soloist/zero/platform"
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
	program, err := proctest.BuildIn(dir, "zero/program", false)
	if err != nil {
		return story, nil, err
	}
	scaler, err := keda.Open(keda.Rule{Connection: storage.ConnectionString(), Queue: queue})
	if err != nil {
		return story, nil, err
	}
	log, err := os.Create(cmp.Or(o.log, os.DevNull))
	if err != nil {
		return story, nil, err
	}
	defer log.Close()
	r := &recorder{command: o.command(program, storage.ConnectionString()), scaler: scaler, log: log}
	if err := r.run(ctx, o); err != nil {
		return story, nil, err
	}
	r.mu.Lock() // a replica may be ending
	defer r.mu.Unlock()
	return r.story, r.failures, nil
}

// command is a replica.
func (o options) command(program, connection string) proctest.Command {
	order, _ := json.Marshal(map[string]any{"Schedules": o.jobs(), "Takes": o.takes}) // of texts and a number
	c := proctest.Command{Program: program, Args: []string{"serve"}, Env: []string{
		proctest.As(string(order)), "SOLOIST_APP=zero", "SOLOIST_STORAGE=" + connection, "SOLOIST_ADDR=127.0.0.1:0",
		"SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE=" + queue,
		"SOLOIST_ALARM_LEAD=" + o.each(o.lead).String(), "SOLOIST_STAY=" + o.each(o.stay).String(),
	}}
	if o.job {
		c.Args = []string{"tick"}
	}
	return c
}

// run has the platform for the length, and for the ticks due in it.
func (r *recorder) run(ctx context.Context, o options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p := &platform.Platform{Rules: o.rules(), Scaler: r.scaler, Start: r.start, Tell: r.tell}
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	from := time.Now().Add(settle)
	to := from.Add(o.each(o.length))
	err := proctest.Pause(ctx, time.Until(to)+o.late+o.each(o.polling)+settle)
	stop()
	if end := <-done; err == nil {
		err = end
	}
	if err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.story.From, r.story.To, r.story.Polling, r.story.Jobs = from, to, o.each(o.polling), o.jobs()
	return nil
}
