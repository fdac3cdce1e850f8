// Package keda is the azure-queue scaler of KEDA over a queue that a connection string leads to.
package keda

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/go-logr/logr"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/soloist-go/soloist/zero/platform"
)

// A Rule is the custom scale rule of an app or a job.
type Rule struct {
	Connection string // a connection string
	Queue      string
	Each       int // messages that one replica is for; zero: 1
}

// A Scaler is KEDA's.
type Scaler struct {
	scalers.Scaler
	queue  *azqueue.QueueClient
	metric string
	each   float64
}

// Open makes the scaler of a rule, which counts visible messages only.
func Open(r Rule) (*Scaler, error) {
	log.SetLogger(logr.Discard()) // it asks for one, and each error is returned as well
	s, err := scalers.NewAzureQueueScaler(&scalersconfig.ScalerConfig{
		GlobalHTTPTimeout: 3 * time.Second, // KEDA's default
		TriggerMetadata: map[string]string{
			"queueName":           r.Queue,
			"queueLength":         strconv.Itoa(cmp.Or(r.Each, 1)),
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
	spec := s.GetMetricSpecForScaling(context.Background())[0].External
	return &Scaler{s, queue, spec.Metric.Name, spec.Target.AverageValue.AsApproximateFloat64()}, nil
}

// Look counts the messages once.
func (s *Scaler) Look(ctx context.Context) (platform.Reading, error) {
	values, active, err := s.GetMetricsAndActivity(ctx, s.metric)
	if err != nil || len(values) != 1 {
		return platform.Reading{}, fmt.Errorf("%s: %d values: %w", s.metric, len(values), err)
	}
	return platform.Reading{Active: active, Messages: values[0].Value.AsApproximateFloat64(), Each: s.each}, nil
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
