package azure

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
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

// OpenQueue checks the configuration and returns a queue of the account in which the container is. It sends no request: the
// first Put creates the queue if it is missing. The name is 3 to 63 lower-case letters, digits and single hyphens between
// them (https://learn.microsoft.com/rest/api/storageservices/naming-queues-and-metadata).
//
// Where the address of the queues is not given by QueueURL, or by QueueEndpoint of a connection string, it is the address of
// the blobs with ".queue." in place of ".blob."; of an emulator, port 10001 in place of 10000.
func OpenQueue(c Config, name string) (*Queue, error) {
	c.Transport = cutter{c.transport()}
	if len(name) < 3 || len(name) > 63 || !containerName.MatchString(name) {
		return nil, errors.New("azure: queue (SOLOIST_ALARM_QUEUE): not 3 to 63 lower-case letters, digits and single hyphens between them")
	}
	client, id, err := c.queueClient(name)
	if err != nil {
		return nil, err
	}
	return &Queue{client: client, name: name, url: addressOf(client.URL()), way: credentialsOf(c, client.URL(), id)}, nil
}

// addressOf returns the address of a queue in one form, so that processes see that they share it, however each got it.
func addressOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		bare, _, _ := strings.Cut(text, "?")
		return bare
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host + u.Path
}

// transport returns the given transport, or else a transport over the network.
func (c Config) transport() policy.Transporter {
	if c.Transport != nil {
		return c.Transport
	}
	return network(mostConnections())
}

// queueClient picks the way in, in the order of [Config.client]. The identity is nil where there is none.
func (c Config) queueClient(name string) (*azqueue.QueueClient, *identity, error) {
	o := &azqueue.ClientOptions{ClientOptions: c.options(queueService)}
	switch {
	case c.ConnectionString != "":
		client, err := c.connectedQueue(name, o)
		return client, nil, err
	case c.ServiceURL != "" || c.AccountName != "":
		u, err := c.queueURL()
		if err != nil {
			return nil, nil, err
		}
		u.Path = strings.TrimSuffix(u.Path, "/") + "/" + name
		if u.RawQuery != "" {
			client, err := plainQueue(u.String(), o)
			return client, nil, err
		}
		id, err := c.identify(&o.ClientOptions)
		if err != nil {
			return nil, nil, err
		}
		client, err := plainQueue(u.String(), o)
		return client, id, err
	}
	return nil, nil, fmt.Errorf("azure: no storage: set a %s, a %s or an %s", connectionSetting, urlSetting, accountSetting)
}

// connectedQueue is the way in by a connection string.
func (c Config) connectedQueue(name string, o *azqueue.ClientOptions) (*azqueue.QueueClient, error) {
	account, err := parseConnectionString(c.ConnectionString)
	if err != nil {
		return nil, fmt.Errorf("azure: %s: %w", connectionSetting, err)
	}
	base, err := account.queues()
	if err != nil {
		return nil, fmt.Errorf("azure: %s: %w", connectionSetting, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + "/" + name
	if account.key == "" {
		return plainQueue(base.String(), o)
	}
	cred, err := azqueue.NewSharedKeyCredential(account.name, account.key)
	if err != nil {
		return nil, fmt.Errorf("azure: %s: AccountKey is not base64", connectionSetting)
	}
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(base.String(), cred, o)
	if err != nil {
		return nil, fmt.Errorf("azure: %s: the client library refuses it", connectionSetting)
	}
	return client, nil
}

func plainQueue(url string, o *azqueue.ClientOptions) (*azqueue.QueueClient, error) {
	client, err := azqueue.NewQueueClientWithNoCredential(url, o)
	if err != nil {
		return nil, errors.New("azure: the client library refuses the URL")
	}
	return client, nil
}

// queues is the URL of the account's queues, with the signature.
func (a account) queues() (*url.URL, error) {
	blobs, err := url.Parse(a.url)
	if err != nil {
		return nil, errors.New("the URL of the blobs cannot be read")
	}
	if a.queue == "" {
		return queuesBeside(blobs, "QueueEndpoint")
	}
	u, err := serviceURL(a.queue)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("QueueEndpoint is not a queue service URL without a query")
	}
	if blobs.RawQuery != "" && inClear(u) {
		return nil, errInClear
	}
	u.RawQuery = blobs.RawQuery
	return u, signedForQueues(u)
}

// queueURL is the URL of the account's queues where no connection string names them.
func (c Config) queueURL() (*url.URL, error) {
	if c.ServiceURL == "" && !accountName.MatchString(c.AccountName) {
		return nil, fmt.Errorf("azure: %s: not 3 to 24 lower-case letters and digits", accountSetting)
	}
	setting, text := urlSetting, cmp.Or(c.ServiceURL, "https://"+c.AccountName+".blob.core.windows.net/")
	if c.QueueURL != "" {
		setting, text = queueSetting, c.QueueURL
	}
	u, err := serviceURL(text)
	if err == nil && c.QueueURL == "" {
		u, err = queuesBeside(u, "AzureWebJobsStorage__queueServiceUri")
	}
	if err == nil && u.RawQuery != "" && inClear(u) {
		err = errInClear
	}
	if err == nil && u.RawQuery == "" && u.Scheme != "https" {
		err = errors.New("an identity needs https")
	}
	if err == nil {
		err = signedForQueues(u)
	}
	if err != nil {
		return nil, fmt.Errorf("azure: %s: %w", setting, err)
	}
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
	return &u, signedForQueues(&u)
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

// identify makes requests carry the token of an identity.
func (c Config) identify(o *azcore.ClientOptions) (*identity, error) {
	source, err := c.credential()
	if err != nil {
		return nil, err
	}
	id := &identity{source: source}
	// Before the library's policy, which would make a call wait for a token that
	// another call fetches without checking its own context.
	o.PerCallPolicies = append(o.PerCallPolicies, id)
	// Not the policy of azblob or azqueue: it asks for tokens for whatever resource a 401
	// names, from then on, and panics if the 401 names an authority without a tenant.
	bearer := runtime.NewBearerTokenPolicy(id, []string{storageScope}, nil)
	o.PerRetryPolicies = append([]policy.Policy{bearer}, o.PerRetryPolicies...)
	return id, nil
}
