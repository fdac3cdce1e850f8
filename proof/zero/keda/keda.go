// Package keda is the azure-queue scaler of KEDA over a queue that a connection string leads to.
package keda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/go-logr/logr"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A Rule is the custom scale rule of an app or a job.
type Rule struct {
	Connection string // a connection string
	Queue      string
}

// A Scaler is KEDA's.
type Scaler struct {
	scalers.Scaler
	queue  *azqueue.QueueClient
	metric string
}

// Open makes the scaler of a rule, which counts visible messages only.
func Open(r Rule) (*Scaler, error) {
	log.SetLogger(logr.Discard()) // it asks for one, and each error is returned as well
	s, err := scalers.NewAzureQueueScaler(&scalersconfig.ScalerConfig{
		GlobalHTTPTimeout: 3 * time.Second, // KEDA's default
		TriggerMetadata: map[string]string{
			"queueName":           r.Queue,
			"queueLength":         "1",
			"queueLengthStrategy": "visibleonly",
		},
		AuthParams: map[string]string{"connection": r.Connection},
	})
	if err != nil {
		return nil, err
	}
	queue, err := azqueue.NewQueueClientFromConnectionString(r.Connection, r.Queue, nil)
	if err != nil {
		return nil, err
	}
	return &Scaler{s, queue, s.GetMetricSpecForScaling(context.Background())[0].External.Metric.Name}, nil
}

// Look asks once whether there are messages.
func (s *Scaler) Look(ctx context.Context) (active bool, err error) {
	if _, active, err = s.GetMetricsAndActivity(ctx, s.metric); err != nil {
		return false, fmt.Errorf("%s: %w", s.metric, err)
	}
	return active, nil
}

// Visible returns since when the first of the visible alarms that were not received yet has been visible. The zero time:
// there is none. An alarm that was received, and is visible again, does not say since when.
func (s *Scaler) Visible(ctx context.Context) (since time.Time, err error) {
	peeked, err := s.queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: new(int32(32))})
	if err != nil {
		return time.Time{}, err
	}
	for _, m := range peeked.Messages {
		var alarm struct{ At time.Time }
		body, err := base64.StdEncoding.DecodeString(*m.MessageText)
		if err != nil || json.Unmarshal(body, &alarm) != nil || alarm.At.IsZero() || *m.DequeueCount > 0 {
			continue
		}
		if since.IsZero() || alarm.At.Before(since) {
			since = alarm.At
		}
	}
	return since, nil
}
