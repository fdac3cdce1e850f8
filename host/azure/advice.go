package azure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

// Explain says what an error of this store is about and what to do about it, at
// more length than the error does: with the command that grants a role, for one.
// An empty advice: the error says all there is. Neither has secrets.
func (s *Store) Explain(err error) (text, advice string) {
	var r *refusal
	if !errors.As(err, &r) {
		text, advice = s.way.explain(err)
		if host, ok := errors.AsType[*net.DNSError](err); ok && host.IsNotFound {
			advice = "there is no such host: check the name of the account in SOLOIST_STORAGE or AzureWebJobsStorage"
		}
		return text, advice
	}
	text = r.detail
	switch {
	case r.op == createContainer && r.code != "" && errors.Is(err, fs.ErrPermission) && !s.atDoor(r.code):
		return text, s.containerAdvice()
	case s.way.id != nil:
		return text, s.identityAdvice(r)
	}
	return text, s.signedAdvice(r)
}

// Patience is how long a refusal may take to pass by itself. A new role
// assignment takes up to ten minutes
// (https://learn.microsoft.com/azure/role-based-access-control/troubleshooting#symptom---role-assignment-changes-are-not-being-detected).
// A key or a signature works at once; the network rules of an account take up
// to a minute.
func (s *Store) Patience() time.Duration {
	if s.way.id != nil {
		return 10 * time.Minute
	}
	return time.Minute
}

// atDoor reports whether a refusal is the same whatever is asked for.
func (s *Store) atDoor(code bloberror.Code) bool {
	switch code {
	case bloberror.AuthenticationFailed, bloberror.AuthorizationFailure, bloberror.AccountIsDisabled, keyRefused:
		return s.way.kind != bySignature || code != bloberror.AuthorizationFailure
	}
	return false
}

// keyRefused is the code of an account that takes no keys.
const keyRefused = bloberror.Code("KeyBasedAuthenticationNotPermitted")

// common is the advice that does not depend on who we are.
func (s *Store) common(code bloberror.Code) string {
	switch code {
	case "":
		return "something between here and the Blob service answers, such as a proxy: look there"
	case bloberror.AuthorizationFailure:
		if !strings.Contains(s.way.box.Host, ".blob.") {
			return "an emulator says this of a wrong key or signature"
		}
		return fmt.Sprintf("the network rules of the account do not admit this machine; see them with: az storage account show --name %s --query networkRuleSet; "+
			"then allow its subnet, or its address: az storage account network-rule add --account-name %[1]s --ip-address ADDRESS", s.way.accountName())
	case bloberror.ResourceNotFound:
		return "there is no such account here: check the URL, or the account's name"
	case bloberror.AccountIsDisabled:
		return "the account is disabled: see the state of the subscription"
	case "ContainerBeingDeleted":
		return "the container was deleted just now: wait a minute"
	case "BlobImmutableDueToPolicy":
		return "the container has an immutability policy, and records have to be written: choose another one (SOLOIST_CONTAINER)"
	case "AuthorizationSourceIPMismatch":
		return "the signature is for other addresses than this machine's: " + s.way.signatureAdvice()
	case "ServerBusy", "InternalError", "OperationTimedOut":
		return "try again; if it stays so, see the health of the account"
	}
	return ""
}

// identityAdvice is for who comes with a token.
func (s *Store) identityAdvice(r *refusal) string {
	switch r.code {
	case bloberror.AuthorizationPermissionMismatch, bloberror.InsufficientAccountPermissions:
		return s.way.grant(containerBox, "/blobServices/default/containers/"+s.name)
	case bloberror.AuthenticationFailed, "InvalidAuthenticationInfo", bloberror.NoAuthenticationInformation:
		return "the service does not take this token: check that account and identity are of one tenant, and this machine's clock"
	}
	return s.common(r.code)
}

// signedAdvice is for who comes with a key or a signature.
func (s *Store) signedAdvice(r *refusal) string {
	key := s.way.kind == byKey
	switch r.code {
	case keyRefused:
		return fmt.Sprintf("the account takes no keys, nor signatures made by them: use an identity (AzureWebJobsStorage__accountName=%s and AzureWebJobsStorage__credential=managedidentity instead of the connection string), "+
			"or allow them: az storage account update --name %[1]s --allow-shared-key-access true", s.way.accountName())
	case bloberror.AuthenticationFailed, "InvalidAuthenticationInfo":
		if key {
			return "the key is wrong, or was replaced: az storage account show-connection-string --name " + s.way.accountName()
		}
		return "the signature is wrong, has expired, or its key was replaced: " + s.way.signatureAdvice()
	case bloberror.AuthorizationFailure:
		if !key {
			return "the signature does not allow this: " + s.way.signatureAdvice() + "; or " + s.common(r.code)
		}
	case bloberror.AuthorizationPermissionMismatch, "AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch", "AuthorizationProtocolMismatch":
		if !key {
			return "the signature does not allow this: " + s.way.signatureAdvice()
		}
	}
	return s.common(r.code)
}

// containerAdvice is for who may not create the container. The command goes
// through the control plane: an owner of the account has no role for its data.
func (s *Store) containerAdvice() string {
	create := fmt.Sprintf("create it: az storage container-rm create --name %s --storage-account %s", s.name, s.way.accountName())
	if s.way.id == nil {
		return create
	}
	return create + "; or " + s.way.grant(containerBox, "")
}

// explain says what an error is about that is no answer of the service. An empty advice: that depends on what was asked.
func (e *credentials) explain(err error) (text, advice string) {
	text = strings.TrimPrefix(err.Error(), "azure: ")
	if _, ok := errors.AsType[*tokenError](err); ok {
		return strings.TrimSuffix(text, tokenHint), e.tokenAdvice()
	}
	if _, ok := errors.AsType[*strangerError](err); ok {
		advice = strangerAdvice
	}
	return text, advice
}

// grant is how to give the identity its role for a part of the account; empty: for all of it. The principal is known once
// there is a token.
func (e *credentials) grant(b box, part string) string {
	e.id.mu.Lock()
	p := claims(e.id.token.Token)
	e.id.mu.Unlock()
	kind := "ServicePrincipal"
	if p.Type == "user" { // a developer's own token
		kind = "User"
	}
	command := fmt.Sprintf(`az role assignment create --assignee-object-id %s --assignee-principal-type %s --role %s --scope "%s%s"`,
		cmp.Or(p.Object, "PRINCIPAL"), kind, b.role, e.accountID(), part)
	return "grant the identity the role " + b.role + " and wait, up to 10 minutes: " + command
}

// accountID has the shell look up the id of the account.
func (e *credentials) accountID() string {
	return fmt.Sprintf("$(az storage account show --name %s --query id -o tsv)", e.accountName())
}

func (e *credentials) accountName() string { return cmp.Or(e.account, "ACCOUNT") }

// signatureAdvice is how to get a signature that is enough: on the container,
// which is less than one of the account. It lacks the right to create that.
func (e *credentials) signatureAdvice() string {
	return fmt.Sprintf("make a new one: az storage container generate-sas --account-name %s --name %s --permissions rcwdl --expiry DATE --https-only",
		e.accountName(), strings.Trim(e.box.Path[strings.LastIndex(e.box.Path, "/")+1:], "/"))
}

// tokenAdvice is for an identity that gets no token.
func (e *credentials) tokenAdvice() string {
	switch e.kind {
	case byPlatform:
		if os.Getenv("IDENTITY_ENDPOINT") == "" {
			return "the platform offers no identity (IDENTITY_ENDPOINT is not set): az containerapp identity assign, or az functionapp identity assign"
		}
		advice := "check that the app has the identity: az containerapp identity show, or az functionapp identity show"
		if e.client != "" {
			return advice + ", with the client id of AzureWebJobsStorage__clientId"
		}
		return advice + "; a user-assigned one has to be named in AzureWebJobsStorage__clientId"
	case byPrincipal:
		return "check AzureWebJobsStorage__tenantId, __clientId and __clientSecret, which may have expired"
	}
	return "name the platform's identity (AzureWebJobsStorage__credential=managedidentity), or on a machine of your own: az login"
}
