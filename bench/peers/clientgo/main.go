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

func serve(ctx context.Context, w *replica.Worker) error {
	client, err := coordination.NewForConfig(&rest.Config{Host: w.Service, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		return err
	}
	var leads atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: w.Space, Namespace: "bench"}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprint(w.Name, "-", os.Getpid())}},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, // the defaults of Kubernetes
		ReleaseOnCancel: true, Name: "bench",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads.Store(true) },
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
