package azure

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
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
	life, seconds := forever, int32(hidden/time.Second)
	var resp azqueue.EnqueueMessagesResponse
	err := q.inQueue(ctx, func() (err error) {
		resp, err = q.client.EnqueueMessage(ctx, text, &azqueue.EnqueueMessageOptions{TimeToLive: &life, VisibilityTimeout: &seconds})
		return translate(putMessage, q.name, err)
	})
	if err != nil {
		return alarm.Receipt{}, err
	}
	if len(resp.Messages) != 1 || resp.Messages[0] == nil || resp.Messages[0].MessageID == nil || resp.Messages[0].PopReceipt == nil {
		return alarm.Receipt{}, translate(putMessage, q.name, errNoReceipt)
	}
	return alarm.Receipt{ID: *resp.Messages[0].MessageID, Pop: *resp.Messages[0].PopReceipt}, nil
}

// inQueue makes a call, and once more if it had to create the queue.
func (q *Queue) inQueue(ctx context.Context, call func() error) error {
	return making(bloberror.Code(queueerror.QueueNotFound), func() error { return q.create(ctx) }, call)
}

// create is content with a queue that another replica created meanwhile, whatever its metadata.
func (q *Queue) create(ctx context.Context) error {
	_, err := q.client.Create(ctx, nil)
	if err == nil || queueerror.HasCode(err, queueerror.QueueAlreadyExists) {
		return nil
	}
	return translate(createQueue, q.name, err)
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
		return nil, translate(receiveMessages, q.name, err)
	}
	var all []alarm.Message
	for _, m := range resp.Messages {
		if m == nil || m.MessageID == nil || m.PopReceipt == nil {
			return nil, translate(receiveMessages, q.name, errNoReceipt)
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
	return translate(deleteMessage, q.name, err)
}

// Visible counts the messages that are visible now, up to 32, and leaves them as they are. A missing queue is created.
func (q *Queue) Visible(ctx context.Context) (int, error) {
	count, visible := int32(mostMessages), 0
	err := q.inQueue(ctx, func() error {
		resp, err := q.client.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &count})
		visible = len(resp.Messages)
		return translate(readQueue, q.name, err)
	})
	return visible, err
}

var errNoReceipt = errors.New("the answer has no receipt of a message: it is not from the Queue service")

// Explain says what an error of this queue is about and what to do about it, as [Store.Explain] does for a container.
func (q *Queue) Explain(err error) (text, advice string) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		if text, advice = q.way.explain(err); advice != "" {
			return text, advice
		}
		return text, "the blobs were reached, so look at what differs for the host of the queues, " + q.way.box.Hostname() +
			": a firewall, the zone privatelink.queue.core.windows.net of a private endpoint, or AzureWebJobsStorage__queueServiceUri"
	}
	switch r.code {
	case bloberror.AuthorizationPermissionMismatch, bloberror.InsufficientAccountPermissions, bloberror.AuthorizationFailure:
		switch {
		case q.way.id != nil && r.code != bloberror.AuthorizationFailure:
			if r.op == createQueue {
				return r.detail, q.creation() + "; or " + q.way.grant(queueBox, "")
			}
			return r.detail, q.way.grant(queueBox, "/queueServices/default/queues/"+q.name)
		case q.way.kind == bySignature:
			return r.detail, "the signature does not allow this: want one of the account for blobs and queues (ss=bq, srt=sco, sp=rwdlacup)"
		case strings.Contains(q.way.box.Host, ".queue."):
			return r.detail, "the network rules of the account do not admit this machine, or its private endpoint is for blobs alone: queues need one of their own"
		}
		return r.detail, "an emulator says this of a wrong key or signature"
	case keyRefused:
		return r.detail, "the account takes no keys: use an identity, with AzureWebJobsStorage__accountName"
	case "":
		return r.detail, "something between here and the Queue service answers, such as a proxy: look there"
	}
	return r.detail, "try again; if it stays so, see the health of the account, and whether the queue is being deleted"
}

// creation is how to make the queue through the control plane. The command line
// has a command for the data plane only, where an owner of the account has no role.
func (q *Queue) creation() string {
	return fmt.Sprintf(`create it: az rest --method put --url "%s/queueServices/default/queues/%s?api-version=2024-01-01" --body '{}'`,
		q.way.accountID(), q.name)
}

// OpenQueue checks the configuration and returns a queue of the account in which the container is. It sends no request: the
// first Put creates the queue if it is missing. The name is 3 to 63 lower-case letters, digits and single hyphens between
// them (https://learn.microsoft.com/rest/api/storageservices/naming-queues-and-metadata).
//
// Where the address of the queues is not given by QueueURL, or by QueueEndpoint of a connection string, it is the address of
// the blobs with ".queue." in place of ".blob."; of an emulator, port 10001 in place of 10000.
func OpenQueue(c Config, name string) (*Queue, error) {
	c.Transport = cutter{c.transport()}
	if err := checkName("queue (SOLOIST_ALARM_QUEUE)", name); err != nil {
		return nil, err
	}
	a, err := c.queues()
	if err != nil {
		return nil, err
	}
	options := azqueue.ClientOptions{ClientOptions: c.options(queueService)}
	id, err := c.identify(a, &options.ClientOptions)
	if err != nil {
		return nil, err
	}
	client, err := a.queueClient(name, &options)
	if err != nil {
		return nil, errLibrary
	}
	way := credentialsOf(c, client.URL(), id)
	return &Queue{client: client, name: name, url: addressOf(way.box), way: way}, nil
}

// addressOf returns the address of a queue in one form, so that processes see that they share it, however each got it.
func addressOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host + u.Path
}

func (a account) queueClient(name string, o *azqueue.ClientOptions) (*azqueue.QueueClient, error) {
	at := a.url.JoinPath(name).String()
	if a.key == "" {
		return azqueue.NewQueueClientWithNoCredential(at, o)
	}
	cred, err := azqueue.NewSharedKeyCredential(a.name, a.key)
	if err != nil {
		return nil, err
	}
	return azqueue.NewQueueClientWithSharedKeyCredential(at, cred, o)
}

// queues is the way to the queues of the account: at a URL of their own, or else at the one that follows
// from the URL of the blobs.
func (c Config) queues() (account, error) {
	a, err := c.account()
	if err != nil {
		return a, err
	}
	switch {
	case a.queue != "":
		a.url, err = a.queueEndpoint()
	case c.ConnectionString != "":
		a.url, err = queuesBeside(a.url, "QueueEndpoint")
	case c.QueueURL != "":
		a.setting = queueSetting
		a.url, err = entrance(c.QueueURL)
	default:
		a.url, err = queuesBeside(a.url, "AzureWebJobsStorage__queueServiceUri")
	}
	if err == nil {
		err = signedForQueues(a.url)
	}
	return a, a.named(err)
}

// queueEndpoint is the URL that a connection string names, with the signature.
func (a account) queueEndpoint() (*url.URL, error) {
	u, err := serviceURL(a.queue)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("QueueEndpoint is not a queue service URL without a query")
	}
	if a.url.RawQuery != "" && inClear(u) {
		return nil, errInClear
	}
	u.RawQuery = a.url.RawQuery
	return u, nil
}

// queuesBeside is the URL of the queues of the account that has these blobs. setting is what names it otherwise.
func queuesBeside(blobs *url.URL, setting string) (*url.URL, error) {
	u := *blobs
	switch host, port := blobs.Hostname(), blobs.Port(); {
	case strings.Contains(u.Host, ".blob."):
		u.Host = strings.Replace(u.Host, ".blob.", ".queue.", 1)
	case port == "10000":
		u.Host = strings.TrimSuffix(blobs.Host, ":10000") + ":10001"
	default:
		return nil, fmt.Errorf("where the queues are cannot be told from the host %.80q of the blobs: set %s", host, setting)
	}
	return &u, nil
}

// signedForQueues returns an error if the URL has a signature that is not for queues: one of a container, or of other
// services (https://learn.microsoft.com/rest/api/storageservices/create-account-sas).
func signedForQueues(u *url.URL) error {
	v := u.Query()
	if !v.Has("sig") || strings.Contains(v.Get("ss"), "q") || v.Get("sr") == "" && !v.Has("ss") { // a single queue's has neither
		return nil
	}
	return errors.New("its shared access signature is not for queues, in which alarms are: want one of the account for blobs and queues (ss=bq), or an identity")
}
