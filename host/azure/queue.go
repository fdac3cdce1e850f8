package azure

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/queueerror"

	"github.com/soloist-go/soloist/internal/alarm"
)

// A Queue is a queue of Azure Queue Storage. [OpenQueue] makes one. Each method sends one request and repeats nothing; only
// a Put that finds no queue sends more: it creates the queue.
type Queue struct {
	client *azqueue.QueueClient
	name   string
	url    string // without the query, which may be a signature
	way    credentials
}

var _ alarm.Queue = (*Queue)(nil)

// String says which queue it is, for logs. It has no secrets.
func (q *Queue) String() string { return q.url }

// What the service takes
// (https://learn.microsoft.com/rest/api/storageservices/put-message, https://learn.microsoft.com/rest/api/storageservices/get-messages).
const (
	longestHidden = 7 * 24 * time.Hour
	mostMessages  = 32
	forever       = int32(-1) // as a time to live
)

// Put implements [alarm.Queue]. The body is sent as base64, which is what the trigger of a function expects unless host.json
// says otherwise (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue#host-json). Hidden is
// cut to whole seconds.
func (q *Queue) Put(ctx context.Context, body []byte, hidden time.Duration) (alarm.Receipt, error) {
	if hidden < 0 || hidden > longestHidden {
		return alarm.Receipt{}, fmt.Errorf("azure: %s %s: it cannot be hidden for %s: want 0 to %s", putMessage, q.name, hidden, longestHidden)
	}
	text := base64.StdEncoding.EncodeToString(body)
	resp, err := q.enqueue(ctx, text, hidden)
	if queueerror.HasCode(err, queueerror.QueueNotFound) {
		if err := q.create(ctx); err != nil {
			return alarm.Receipt{}, err
		}
		resp, err = q.enqueue(ctx, text, hidden)
	}
	if err != nil {
		return alarm.Receipt{}, q.translate(putMessage, err)
	}
	if len(resp.Messages) != 1 || resp.Messages[0] == nil || resp.Messages[0].MessageID == nil || resp.Messages[0].PopReceipt == nil {
		return alarm.Receipt{}, q.translate(putMessage, errNoReceipt)
	}
	return alarm.Receipt{ID: *resp.Messages[0].MessageID, Pop: *resp.Messages[0].PopReceipt}, nil
}

func (q *Queue) enqueue(ctx context.Context, text string, hidden time.Duration) (azqueue.EnqueueMessagesResponse, error) {
	life, seconds := forever, int32(hidden/time.Second)
	return q.client.EnqueueMessage(ctx, text, &azqueue.EnqueueMessageOptions{TimeToLive: &life, VisibilityTimeout: &seconds})
}

// create is content with a queue that another replica created meanwhile, whatever its metadata.
func (q *Queue) create(ctx context.Context) error {
	_, err := q.client.Create(ctx, nil)
	if err == nil || queueerror.HasCode(err, queueerror.QueueAlreadyExists) {
		return nil
	}
	return q.translate(createQueue, err)
}

// Receive implements [alarm.Queue]. A queue that is missing has no messages. Hide is at least a second, and cut to whole
// ones.
func (q *Queue) Receive(ctx context.Context, most int, hide time.Duration) ([]alarm.Message, error) {
	if most < 1 || most > mostMessages || hide < time.Second || hide > longestHidden {
		return nil, fmt.Errorf("azure: %s %s: %d messages cannot be hidden for %s: want 1 to %d, and 1s to %s", receiveMessages, q.name, most, hide, mostMessages, longestHidden)
	}
	count, seconds := int32(most), int32(hide/time.Second)
	resp, err := q.client.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &count, VisibilityTimeout: &seconds})
	switch {
	case queueerror.HasCode(err, queueerror.QueueNotFound):
		return nil, nil
	case err != nil:
		return nil, q.translate(receiveMessages, err)
	}
	var all []alarm.Message
	for _, m := range resp.Messages {
		if m == nil || m.MessageID == nil || m.PopReceipt == nil {
			return nil, q.translate(receiveMessages, errNoReceipt)
		}
		all = append(all, received(m))
	}
	return all, nil
}

// received returns a message as others see it. A message of others may be anything: text that is not base64 is taken as it is.
func received(m *azqueue.DequeuedMessage) alarm.Message {
	out := alarm.Message{Receipt: alarm.Receipt{ID: *m.MessageID, Pop: *m.PopReceipt}}
	if m.MessageText != nil {
		out.Body = []byte(*m.MessageText)
		if text, err := base64.StdEncoding.DecodeString(*m.MessageText); err == nil {
			out.Body = text
		}
	}
	if m.InsertionTime != nil {
		out.Inserted = *m.InsertionTime
	}
	if m.DequeueCount != nil {
		out.Dequeued = int(min(*m.DequeueCount, math.MaxInt32))
	}
	return out
}

// Delete implements [alarm.Queue].
func (q *Queue) Delete(ctx context.Context, r alarm.Receipt) error {
	if r.ID == "" || r.Pop == "" {
		return fmt.Errorf("azure: %s %s: the receipt is empty", deleteMessage, q.name)
	}
	_, err := q.client.DeleteMessage(ctx, r.ID, r.Pop, nil)
	if err == nil || queueerror.HasCode(err, queueerror.MessageNotFound, queueerror.PopReceiptMismatch, queueerror.QueueNotFound) {
		return nil
	}
	return q.translate(deleteMessage, err)
}

// Visible counts the messages that are visible now, up to 32, and leaves them as they are. A missing queue is created.
func (q *Queue) Visible(ctx context.Context) (int, error) {
	count := int32(mostMessages)
	look := func() (azqueue.PeekMessagesResponse, error) {
		return q.client.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
	}
	resp, err := look()
	if queueerror.HasCode(err, queueerror.QueueNotFound) {
		if err := q.create(ctx); err != nil {
			return 0, err
		}
		resp, err = look()
	}
	if err != nil {
		return 0, q.translate(readQueue, err)
	}
	return len(resp.Messages), nil
}

var errNoReceipt = errors.New("the answer has no receipt of a message: it is not from the Queue service")
