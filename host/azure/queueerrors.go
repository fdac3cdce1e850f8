package azure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/queueerror"
)

// queueRole is what the identity needs to put, receive and delete messages
// (https://learn.microsoft.com/azure/storage/queues/assign-azure-role-data-access).
const queueRole = `the role "Storage Queue Data Contributor"`

// translate turns an error of the client library into one for those above: fs.ErrPermission if the service refuses us,
// fs.ErrNotExist if there is no such queue. The message has the service's code and request id, and never a URL, whose query
// may be a secret.
func (q *Queue) translate(o op, err error) error {
	if err == nil {
		return nil
	}
	var resp *azcore.ResponseError
	if !errors.As(err, &resp) {
		return fmt.Errorf("azure: %s %s: %w", o, q.name, unanswered(err))
	}
	detail := answer(resp, queueService)
	code := queueerror.Code(resp.ErrorCode)
	text := fmt.Errorf("azure: %s %s: %s", o, q.name, detail)
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		text = fmt.Errorf("azure: %s %s: %w (%s)%s", o, q.name, fs.ErrPermission, detail, queueHint(o, q.name, code))
	case code == queueerror.QueueNotFound:
		text = fmt.Errorf("azure: %s %s: %w (%s)", o, q.name, fs.ErrNotExist, detail)
	}
	return &refusal{error: text, op: o, code: bloberror.Code(resp.ErrorCode), detail: detail}
}

// queueHint says what to do about a refusal.
func queueHint(o op, name string, code queueerror.Code) string {
	switch {
	case code == queueerror.AuthenticationFailed:
		return ": the account key or signature is wrong or has expired, or this machine's clock is more than 15 minutes off"
	case code == queueerror.AuthorizationFailure:
		return ": the network rules of the storage account do not admit this address, or the key or signature does not allow this"
	case code == queueerror.Code(keyRefused):
		return ": the storage account refuses account keys: use an identity"
	case o == createQueue:
		return fmt.Sprintf(": create the queue %q beforehand, or grant the identity %s on the storage account", name, queueRole)
	case code == queueerror.AuthorizationPermissionMismatch, code == queueerror.InsufficientAccountPermissions:
		return fmt.Sprintf(": grant the identity %s on the queue; it may take some minutes to work", queueRole)
	}
	return ""
}

// Explain says what an error of this queue is about and what to do about it, as [Store.Explain] does for a container.
func (q *Queue) Explain(err error) (text, advice string) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		text = strings.TrimPrefix(err.Error(), "azure: ")
		if _, ok := errors.AsType[*tokenError](err); ok {
			return strings.TrimSuffix(text, tokenHint), q.way.tokenAdvice()
		}
		if _, ok := errors.AsType[*strangerError](err); ok {
			return text, strangerAdvice
		}
		return text, "the blobs were reached, so look at what differs for the host of the queues, " + q.way.box.Hostname() +
			": a firewall, the zone privatelink.queue.core.windows.net of a private endpoint, or AzureWebJobsStorage__queueServiceUri"
	}
	switch r.code {
	case bloberror.AuthorizationPermissionMismatch, bloberror.InsufficientAccountPermissions, bloberror.AuthorizationFailure:
		switch {
		case q.way.id != nil && r.code != bloberror.AuthorizationFailure:
			advice := "grant the identity " + queueRole + " and wait, up to 10 minutes: " + q.grant(r.op == createQueue)
			if r.op == createQueue {
				advice = q.creation() + "; or " + advice
			}
			return r.detail, advice
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
	return fmt.Sprintf(`create it: az rest --method put --url "$(az storage account show --name %s --query id -o tsv)/queueServices/default/queues/%s?api-version=2024-01-01" --body '{}'`,
		cmp.Or(q.way.account, "ACCOUNT"), q.name)
}

// grant is the command that grants the role.
func (q *Queue) grant(onAccount bool) string {
	q.way.id.mu.Lock()
	p := claims(q.way.id.token.Token)
	q.way.id.mu.Unlock()
	scope := fmt.Sprintf("$(az storage account show --name %s --query id -o tsv)", cmp.Or(q.way.account, "ACCOUNT"))
	if !onAccount {
		scope += "/queueServices/default/queues/" + q.name
	}
	kind := "ServicePrincipal"
	if p.Type == "user" { // a developer's own token
		kind = "User"
	}
	return fmt.Sprintf(`az role assignment create --assignee-object-id %s --assignee-principal-type %s --role "Storage Queue Data Contributor" --scope "%s"`, cmp.Or(p.Object, "PRINCIPAL"), kind, scope)
}
