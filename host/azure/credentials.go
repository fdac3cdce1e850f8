package azure

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

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
