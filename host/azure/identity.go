package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// credential is the way from the Functions host's settings to an identity. The
// library's own default takes its client id from the environment only, so a
// ClientID that would be ignored is an error.
func (c Config) credential() (azcore.TokenCredential, error) {
	o := azcore.ClientOptions{Transport: c.Transport, Telemetry: policy.TelemetryOptions{ApplicationID: "soloist"}}
	principal := c.TenantID != "" || c.ClientSecret != ""
	switch {
	case c.Credential != "" && !strings.EqualFold(c.Credential, "managedidentity"):
		return nil, errors.New(`azure: AzureWebJobsStorage__credential: not "managedidentity", which is the only one known`)
	case c.Credential != "":
		return c.managed(o)
	case principal && (c.TenantID == "" || c.ClientID == "" || c.ClientSecret == ""):
		return nil, errors.New("azure: AzureWebJobsStorage__tenantId, __clientId and __clientSecret go together")
	case principal:
		cred, err := azidentity.NewClientSecretCredential(c.TenantID, c.ClientID, c.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: o})
		if err != nil {
			return nil, errors.New("azure: AzureWebJobsStorage__tenantId, __clientId or __clientSecret is malformed")
		}
		return cred, nil
	case c.ClientID != "" || c.ManagedIdentityResourceID != "":
		return nil, errors.New("azure: AzureWebJobsStorage__clientId and __managedIdentityResourceId need AzureWebJobsStorage__credential=managedidentity")
	}
	cred, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: o})
	if err != nil {
		return nil, fmt.Errorf("azure: default identity: %w", err)
	}
	return cred, nil
}

func (c Config) managed(o azcore.ClientOptions) (azcore.TokenCredential, error) {
	options := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: o}
	switch {
	case c.ClientID != "" && c.ManagedIdentityResourceID != "":
		return nil, errors.New("azure: AzureWebJobsStorage__clientId and __managedIdentityResourceId exclude each other")
	case c.ClientID != "":
		options.ID = azidentity.ClientID(c.ClientID)
	case c.ManagedIdentityResourceID != "":
		options.ID = azidentity.ResourceID(c.ManagedIdentityResourceID)
	}
	cred, err := azidentity.NewManagedIdentityCredential(options)
	if err != nil {
		return nil, errors.New("azure: the platform does not take AzureWebJobsStorage__clientId or __managedIdentityResourceId")
	}
	return cred, nil
}

// identify makes requests carry the token of an identity, unless a key or a signature lets them in.
func (c Config) identify(a account, o *azcore.ClientOptions) (*identity, error) {
	if a.key != "" || a.url.RawQuery != "" {
		return nil, nil
	}
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

// An identity keeps the token. One fetch serves all calls and may take longer
// than any of them: a renewal waits for a few seconds only, which a cold fetch
// can exceed each time. A token that is still good is never waited for. A token
// that the service refuses stays until it expires: the source has a cache too, and
// would return it again.
type identity struct {
	source azcore.TokenCredential

	mu      sync.Mutex
	token   azcore.AccessToken
	current *fetch
	tried   time.Time // when the latest fetch began
}

type fetch struct {
	done chan struct{}
	err  error // to be read once done
}

const (
	storageScope = "https://storage.azure.com/.default"
	fetchTime    = time.Minute      // bounds one fetch
	early        = 5 * time.Minute  // before its end a token is replaced
	again        = 30 * time.Second // between attempts while the old token is good
)

// Do makes it a policy that has the token at hand before a call goes on.
func (i *identity) Do(r *policy.Request) (*http.Response, error) {
	usual := policy.TokenRequestOptions{Scopes: []string{storageScope}, EnableCAE: true}
	if _, err := i.GetToken(r.Raw().Context(), usual); err != nil {
		return nil, err
	}
	return r.Next()
}

// GetToken makes it a credential, for storage alone. A token with more claims,
// which the service asks for by a challenge, comes from the source.
func (i *identity) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if len(o.Scopes) != 1 || o.Scopes[0] != storageScope {
		return azcore.AccessToken{}, &tokenError{fmt.Errorf("it is asked for scope %.80q, and gives tokens for %q only", o.Scopes, storageScope)}
	}
	if o.Claims != "" {
		token, err := i.ask(ctx, o)
		if err != nil {
			return azcore.AccessToken{}, &tokenError{err}
		}
		return token, nil
	}
	for {
		token, pending := i.look(o)
		if pending == nil {
			return token, nil
		}
		select {
		case <-ctx.Done():
			return azcore.AccessToken{}, &tokenError{ctx.Err()}
		case <-pending.done:
			if pending.err != nil {
				return azcore.AccessToken{}, pending.err
			}
		}
	}
}

// look returns a token that is good, or the fetch to wait for.
func (i *identity) look(o policy.TokenRequestOptions) (azcore.AccessToken, *fetch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	good := now.Before(i.token.ExpiresOn)
	stale := !now.Before(i.token.ExpiresOn.Add(-early)) || !i.token.RefreshOn.IsZero() && !now.Before(i.token.RefreshOn)
	if stale && i.current == nil && (!good || now.Sub(i.tried) >= again) {
		i.tried, i.current = now, &fetch{done: make(chan struct{})}
		// Outlives the call on purpose, as a dial does; its time-out ends it.
		go i.fetch(i.current, o)
	}
	if good {
		return i.token, nil
	}
	return i.token, i.current
}

func (i *identity) fetch(f *fetch, o policy.TokenRequestOptions) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	token, err := i.ask(ctx, o)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil {
		i.token = token
	}
	if err != nil {
		f.err = &tokenError{err}
	}
	i.current = nil
	close(f.done)
}

// ask asks the source. The client library panics at some answers, such as null,
// and takes an empty token for one.
func (i *identity) ask(ctx context.Context, o policy.TokenRequestOptions) (token azcore.AccessToken, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the client library panics at its source's answer: %v", p)
		}
	}()
	token, err = i.source.GetToken(ctx, o)
	switch {
	case err != nil:
		return token, err
	case token.Token == "":
		return token, errors.New("its source answers with an empty one")
	case !time.Now().Before(token.ExpiresOn):
		return token, errors.New("the identity's token has expired already: is this machine's clock right?")
	}
	return token, nil
}

// Credentials are how the container is reached and who we are there: what is
// needed to say why it does not let us in.
type credentials struct {
	kind    kind
	client  string     // the client id that the settings name, if they do
	signed  url.Values // of a signature all but the signature itself
	id      *identity  // nil: none is used
	account string     // empty: the host does not show it
	box     *url.URL   // of the container, without the query
	send    interface {
		Do(*http.Request) (*http.Response, error)
	}
	direct bool // over a network that is ours to look at
}

// A kind is who we are.
type kind string

const (
	byKey       kind = "account key"
	bySignature kind = "shared access signature"
	byPlatform  kind = "managed identity"
	byPrincipal kind = "service principal"
	byDefault   kind = "default identity"
)

func credentialsOf(c Config, container string, id *identity) credentials {
	u, err := url.Parse(container)
	if err != nil { // it was put together by us
		u = &url.URL{}
	}
	e := credentials{kind: c.kind(u, id), client: c.ClientID, id: id, box: u, send: c.Transport}
	if e.kind == bySignature {
		e.signed = u.Query()
		e.signed.Del("sig")
	}
	u.RawQuery = ""
	e.account = accountOf(u)
	return e
}

// kind follows the order of [Config].
func (c Config) kind(container *url.URL, id *identity) kind {
	switch {
	case id == nil && container.Query().Has("sig"):
		return bySignature
	case id == nil:
		return byKey
	case c.Credential != "":
		return byPlatform
	case c.TenantID != "":
		return byPrincipal
	}
	return byDefault
}

// accountOf finds the account in the name of the host, or in the path, as an
// emulator has it.
func accountOf(u *url.URL) string {
	if name, rest, ok := strings.Cut(u.Hostname(), "."); ok && (strings.HasPrefix(rest, "blob.") || strings.HasPrefix(rest, "queue.")) {
		return name
	}
	if parts := strings.Split(strings.Trim(u.Path, "/"), "/"); len(parts) > 1 {
		return parts[0]
	}
	return ""
}

// String says who we are, without secrets.
func (e *credentials) String() string {
	text := string(e.kind)
	switch e.kind {
	case byKey, bySignature:
		if e.account != "" {
			text += " of account " + e.account
		}
	case byPlatform:
		text += ", " + cmp.Or(e.client, "the system's")
	case byPrincipal:
		text += " " + e.client
	case byDefault:
		for _, s := range []struct{ variable, name string }{
			{"AZURE_CLIENT_SECRET", "service principal"},
			{"AZURE_FEDERATED_TOKEN_FILE", "workload identity"},
			{"IDENTITY_ENDPOINT", "managed identity"},
		} {
			if os.Getenv(s.variable) != "" {
				return text + ", by the environment a " + s.name
			}
		}
	}
	return text
}

// address is where connections go: to the service, or to the proxy before it.
func (e *credentials) address() (host string, proxied bool) {
	u, proxy := e.box, (*url.URL)(nil)
	if r, err := http.NewRequest(http.MethodGet, u.String(), nil); err == nil {
		proxy, _ = http.ProxyFromEnvironment(r)
	}
	if proxy != nil {
		u = proxy
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80", "socks5": "1080"}[u.Scheme])
	return net.JoinHostPort(u.Hostname(), port), proxy != nil
}
