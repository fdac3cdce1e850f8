package azure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/queueerror"

	"github.com/soloist-go/soloist/store"
)

// An op is what was asked of the service: the same code means different things
// to different operations.
type op string

const (
	create          op = "create"
	createContainer op = "create container"
	read            op = "read"
	acquire         op = "acquire"
	renew           op = "renew"
	write           op = "write"
	save            op = "save"
	load            op = "load"
	release         op = "release"
	breaking        op = "break"
	remove          op = "delete"
	list            op = "list"
	readDocument    op = "read document"
	createDocument  op = "create document"
	writeDocument   op = "write document"
	createLog       op = "create log"
	appendLog       op = "append"
	readLog         op = "read log"
	createQueue     op = "create queue"
	putMessage      op = "put message"
	receiveMessages op = "receive messages"
	deleteMessage   op = "delete message"
	readQueue       op = "read queue"
)

// A box is what operations are about: a container or a queue.
type box struct{ name, service, role string }

// What an identity needs
// (https://learn.microsoft.com/azure/storage/blobs/assign-azure-role-data-access,
// https://learn.microsoft.com/azure/storage/queues/assign-azure-role-data-access).
var (
	containerBox = box{"container", blobService, `"Storage Blob Data Contributor"`}
	queueBox     = box{"queue", queueService, `"Storage Queue Data Contributor"`}
)

func (o op) box() box {
	switch o {
	case createQueue, putMessage, receiveMessages, deleteMessage, readQueue:
		return queueBox
	}
	return containerBox
}

// translate turns an error of the client library into one of the contract of
// [store.Store]. Nothing above it sees a status code. The message has the
// service's code and request id, and never a URL: its query may be a secret.
func translate(o op, name string, err error) error {
	if err == nil {
		return nil
	}
	var resp *azcore.ResponseError
	if !errors.As(err, &resp) {
		return fmt.Errorf("azure: %s %s: %w", o, name, unanswered(err))
	}
	detail := answer(resp, o.box().service)
	text := fmt.Errorf("azure: %s %s: %s", o, name, detail)
	if sentinel := meaning(o, resp); sentinel != nil {
		text = fmt.Errorf("azure: %s %s: %w (%s)%s", o, name, sentinel, detail, hint(o, name, resp))
	}
	return &refusal{error: text, op: o, code: bloberror.Code(resp.ErrorCode), detail: detail}
}

// making makes a call, and once more after create if the service says that this is missing for it.
func making(missing bloberror.Code, create, call func() error) error {
	err := call()
	if r, ok := errors.AsType[*refusal](err); ok && r.code == missing {
		if err = create(); err == nil {
			err = call()
		}
	}
	return err
}

// A refusal is an answer that is an error.
type refusal struct {
	error
	op     op
	code   bloberror.Code // empty: it is not the service's
	detail string
}

func (r *refusal) Unwrap() error { return r.error }

// refusedAt is the service's time in an answer that is an error, zero if the
// service gave none. The date of an answer without a code, see [meaning], is the
// clock of something else.
func refusedAt(err error) time.Time {
	var resp *azcore.ResponseError
	if !errors.As(err, &resp) || resp.RawResponse == nil || resp.ErrorCode == "" {
		return time.Time{}
	}
	date, _ := http.ParseTime(resp.RawResponse.Header.Get("Date"))
	return date
}

// meaning returns the sentinel for an answer, or nil where it is unclear. An
// answer without a code in a header, see [genuine], comes from something between
// here and the service, such as a proxy, and says nothing about the blob.
func meaning(o op, resp *azcore.ResponseError) error {
	code := bloberror.Code(resp.ErrorCode)
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fs.ErrPermission
	case code == bloberror.Code(queueerror.QueueNotFound):
		return fs.ErrNotExist
	case code == "" || o == createContainer || o.box() == queueBox:
		return nil
	case o == createDocument || o == writeDocument || o == createLog || o == appendLog:
		return changed(o, code)
	case status == http.StatusNotFound && o != create:
		return fs.ErrNotExist
	case status == http.StatusConflict:
		return conflict(o, code)
	case status == http.StatusPreconditionFailed:
		return precondition(o, code)
	}
	return nil
}

// changed is the meaning of a refused write of a document or a log. A missing one
// is changed too where its ETag or size was given. A leased one is unclear:
// documents and logs have no lease.
func changed(o op, code bloberror.Code) error {
	switch {
	case code == bloberror.ConditionNotMet || code == bloberror.AppendPositionConditionNotMet:
		return store.ErrChanged
	case o == createDocument && (code == bloberror.BlobAlreadyExists || code == bloberror.LeaseIDMissing):
		return store.ErrChanged
	case (o == writeDocument || o == appendLog) && (code == bloberror.BlobNotFound || code == bloberror.ContainerNotFound):
		return store.ErrChanged
	}
	return nil
}

// conflict is the meaning of a 409. Those that are not about a blob that
// exists or a lease, such as ContainerBeingDeleted, pass with time.
func conflict(o op, code bloberror.Code) error {
	lease := strings.HasPrefix(string(code), "Lease")
	switch {
	case o == create && code == bloberror.BlobAlreadyExists:
		return fs.ErrExist
	case o == acquire && lease:
		return store.ErrHeld
	case o != create && o != read && lease:
		return store.ErrLost
	}
	return nil
}

// precondition is the meaning of a 412. Which code a lease that is gone gets
// differs between the service, its documentation and the emulator
// (https://github.com/Azure/Azurite/issues/635), and a leased blob refuses
// If-None-Match with LeaseIdMissing (https://github.com/Azure/Azurite/issues/2637).
func precondition(o op, code bloberror.Code) error {
	switch {
	case o == create:
		return fs.ErrExist
	case code == bloberror.ConditionNotMet:
		return store.ErrChanged
	case o == renew || o == release || o == write || o == save || o == load || o == remove:
		return store.ErrLost
	}
	return nil
}

// hint says what to do about a refusal.
func hint(o op, name string, resp *azcore.ResponseError) string {
	code, box := bloberror.Code(resp.ErrorCode), o.box()
	switch {
	case resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden:
		return ""
	case code == bloberror.AuthenticationFailed:
		return ": the account key or signature is wrong or has expired, or this machine's clock is more than 15 minutes off"
	case code == bloberror.AuthorizationFailure:
		return ": the network rules of the storage account do not admit this address, or the key or signature does not allow this"
	case code == keyRefused:
		return ": the storage account refuses account keys: use an identity"
	case o == createContainer, o == createQueue:
		return fmt.Sprintf(": create the %s %q beforehand, or grant the identity the role %s on the storage account", box.name, name, box.role)
	case code == bloberror.AuthorizationPermissionMismatch, code == bloberror.InsufficientAccountPermissions:
		return fmt.Sprintf(": grant the identity the role %s on the %s; it may take some minutes to work", box.role, box.name)
	case resp.StatusCode == http.StatusUnauthorized:
		return ": the service does not take this token: check that the account in the URL and the identity are of one tenant, and this machine's clock"
	}
	return ""
}

// answer describes a refusal in one short line. A proxy may send headers of any
// length.
func answer(resp *azcore.ResponseError, service string) string {
	text := fmt.Sprintf("%d %.80s", resp.StatusCode, resp.ErrorCode)
	if resp.ErrorCode == "" {
		text = fmt.Sprintf("%d %s, not from the %s", resp.StatusCode, http.StatusText(resp.StatusCode), service)
	}
	if resp.RawResponse != nil {
		if id := resp.RawResponse.Header.Get("x-ms-request-id"); id != "" {
			text += fmt.Sprintf(", request %.80s", id)
		}
	}
	return text
}

// unanswered shortens the error of a request that got no answer: no URL, and
// of an identity's error not the body of a response.
func unanswered(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if token, ok := errors.AsType[*tokenError](err); ok {
		return &tokenError{token.short()}
	}
	return err
}

// tokenHint is what there is to say of any kind of identity.
const tokenHint = ": check its client id, tenant and secret"

// A tokenError is why an identity gets no token.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// short is one line. A refusal is a matter of permission; without an answer
// there may just be no network.
func (e *tokenError) short() error {
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(e.err, end) {
			return fmt.Errorf("no token for the identity: its source has not answered: %w", end)
		}
	}
	var failed *azidentity.AuthenticationFailedError
	if !errors.As(e.err, &failed) || failed.RawResponse == nil {
		text := strings.Join(strings.Fields(e.err.Error()), " ")
		if len(text) > 400 {
			text = text[:400] + "..."
		}
		return fmt.Errorf("no token for the identity: %s", text)
	}
	switch status := failed.RawResponse.StatusCode; {
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500, status < 400:
		return fmt.Errorf("no token for the identity (%d)", status)
	default:
		return fmt.Errorf("%w: no token for the identity (%d)%s", fs.ErrPermission, status, tokenHint)
	}
}
