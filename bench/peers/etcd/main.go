// Etcd is a replica of the bench: an election of etcd's own package, and cron on the leader.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/soloist-go/soloist/bench/internal/cron"
	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{w.Service}, DialTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	var leads atomic.Bool
	elected := make(chan struct{})
	go func() {
		defer close(elected)
		for ctx.Err() == nil {
			if err := campaign(ctx, client, w, &leads); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	err = cron.Run(ctx, w, leads.Load)
	<-elected
	return err
}

// campaign leads once, until ctx ends or the session does.
func campaign(ctx context.Context, client *clientv3.Client, w replica.Settings, leads *atomic.Bool) (err error) {
	seconds := 15
	if w.Leads {
		seconds = 1 // the server gives its shortest
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(seconds))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if err := concurrency.NewElection(session, w.Space).Campaign(ctx, w.Name); err != nil {
		return err
	}
	leads.Store(true)
	defer leads.Store(false)
	leading, end := context.WithCancel(ctx)
	defer end()
	go func() {
		<-session.Done() // at the latest when it is closed
		end()
	}()
	if w.Leads {
		w.Lead(leading)
	}
	<-leading.Done()
	return nil
}
