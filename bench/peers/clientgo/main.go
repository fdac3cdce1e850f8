// Clientgo is a replica of the bench: client-go's leader election, and cron on the leader.
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/soloist-go/soloist/bench/internal/cron"
	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	client, err := coordination.NewForConfig(&rest.Config{Host: w.Service, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		return err
	}
	var leads atomic.Bool
	lease, renew, retry := 15*time.Second, 10*time.Second, 2*time.Second // the defaults of Kubernetes
	if w.Leads {
		lease, renew, retry = w.Lease, w.Lease*10/15, w.Lease*2/15 // in the same proportions
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: w.Space, Namespace: "bench"}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprint(w.Name, "-", os.Getpid())}},
		LeaseDuration: lease, RenewDeadline: renew, RetryPeriod: retry,
		ReleaseOnCancel: true, Name: "bench",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if leads.Store(true); w.Leads {
					w.Lead(ctx)
				}
			},
			OnStoppedLeading: func() { leads.Store(false) },
		},
	})
	if err != nil {
		return err
	}
	elected := make(chan struct{})
	go func() {
		defer close(elected)
		for ctx.Err() == nil {
			elector.Run(ctx) // which returns when the lease is lost
		}
	}()
	err = cron.Run(ctx, w, leads.Load)
	<-elected
	return err
}
