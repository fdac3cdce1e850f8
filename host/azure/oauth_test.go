package azure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/store"
)

// cloud is an Azurite that takes tokens, a platform that gives them, and a
// directory of identities (https://login.microsoftonline.com).
type cloud struct {
	*azurite.Platform
	server *azurite.Server
	client *http.Client

	mu   sync.Mutex
	asks []url.Values // of the directory
}

func newCloud(t *testing.T) *cloud {
	server, certificate := azurite.StartSecure(t)
	return &cloud{Platform: azurite.NewPlatform(t), server: server, client: azurite.Trusting(t, certificate)}
}

// Do takes the account's public name for the emulator's, and answers for the
// directory and, under another name, for the platform. All else goes where it says.
func (c *cloud) Do(r *http.Request) (*http.Response, error) {
	switch r.URL.Host {
	case "login.microsoftonline.com":
		return c.login(r), nil
	case platformHost:
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w.Result(), nil
	case azurite.PublicHost:
		there, err := url.Parse(c.server.URL)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host, r.Host = there.Scheme, there.Host, there.Host
		r.URL.Path, r.URL.RawPath = there.Path+r.URL.Path, ""
	}
	return c.client.Do(r)
}

// login answers what an identity asks of the directory
// (https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow).
func (c *cloud) login(r *http.Request) *http.Response {
	var body any
	switch base := "https://login.microsoftonline.com/" + azurite.Tenant; {
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		body = map[string]any{"tenant_discovery_endpoint": base + "/v2.0/.well-known/openid-configuration",
			"metadata": []any{map[string]any{"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net", "aliases": []string{"login.microsoftonline.com"}}}}
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		body = map[string]any{"authorization_endpoint": base + "/oauth2/v2.0/authorize", "token_endpoint": base + "/oauth2/v2.0/token", "issuer": base + "/v2.0"}
	default:
		text, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(text))
		c.mu.Lock()
		c.asks = append(c.asks, form)
		c.mu.Unlock()
		body = map[string]any{"access_token": azurite.Token(time.Hour), "expires_in": 3600, "token_type": "Bearer"}
	}
	text, _ := json.Marshal(body)
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text))}
}

// bare takes the machine's own identity away.
func bare(t *testing.T, pairs ...string) {
	for _, name := range []string{"IDENTITY_ENDPOINT", "IDENTITY_HEADER", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET",
		"AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST", "AZURE_TOKEN_CREDENTIALS"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// through reads, writes, leases and deletes.
func through(ctx context.Context, s *azure.Store) error {
	e, err := s.Create(ctx, name, []byte("one"))
	if err != nil {
		return err
	}
	l := holding(s)
	if _, err := l.Acquire(ctx, 15*time.Second, e.ETag); err != nil {
		return err
	}
	if e, err := s.Read(ctx, name); err != nil || e.State != store.Leased {
		return fmt.Errorf("read %+v: %w", e, err)
	}
	return errors.Join(l.Release(ctx), s.Delete(ctx, name))
}

// Each way in, as far as the emulator's door.
func TestWaysIn(t *testing.T) {
	c := newCloud(t)
	const publicURL = "https://" + azurite.PublicHost
	resource := "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/" + uuid()
	signature := azurite.Signature("rwdlac", time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "federated")
	if err := os.WriteFile(file, []byte("token-of-the-cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, onPlatform := uuid(), uuid() // new ones: the library keeps tokens while the process lives
	tests := []struct {
		what   string
		env    []string
		config azure.Config
		asks   [2]string // a parameter of the request for a token, and its value
	}{
		{"key", nil, azure.Config{ConnectionString: c.server.ConnectionString()}, [2]string{}},
		{"signature in a URL", nil, azure.Config{ServiceURL: c.server.URL + "?" + signature}, [2]string{}},
		{"signature in a connection string", nil, azure.Config{ConnectionString: "BlobEndpoint=" + c.server.URL + ";SharedAccessSignature=" + signature}, [2]string{}},
		{"user-assigned identity", c.Environment(), azure.Config{ServiceURL: c.server.URL, Credential: "managedidentity", ClientID: client}, [2]string{"client_id", client}},
		{"account name", c.Environment(), azure.Config{AccountName: azurite.Account, Credential: "managedidentity", ClientID: uuid()}, [2]string{"api-version", "2019-08-01"}},
		{"identity by its resource", c.Environment(), azure.Config{ServiceURL: publicURL, Credential: "managedidentity", ManagedIdentityResourceID: resource}, [2]string{"mi_res_id", resource}},
		{"default, on a platform", append(c.Environment(), "AZURE_CLIENT_ID="+onPlatform), azure.Config{ServiceURL: c.server.URL}, [2]string{"client_id", onPlatform}},
		{"default, workload identity", []string{"AZURE_FEDERATED_TOKEN_FILE=" + file, "AZURE_CLIENT_ID=" + client, "AZURE_TENANT_ID=" + azurite.Tenant, "AZURE_AUTHORITY_HOST=https://login.microsoftonline.com"},
			azure.Config{ServiceURL: c.server.URL}, [2]string{"client_assertion", "token-of-the-cluster"}},
		{"default, service principal", []string{"AZURE_CLIENT_SECRET=" + secret, "AZURE_CLIENT_ID=" + client, "AZURE_TENANT_ID=" + azurite.Tenant},
			azure.Config{ServiceURL: c.server.URL}, [2]string{"client_secret", secret}},
		{"service principal", nil, azure.Config{ServiceURL: c.server.URL, TenantID: azurite.Tenant, ClientID: client, ClientSecret: secret}, [2]string{"client_secret", secret}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			bare(t, tt.env...)
			c.mu.Lock()
			c.asks = nil
			c.mu.Unlock()
			before := len(c.Asked())
			tt.config.Transport = c
			s := opened(t, tt.config)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := through(ctx, s); err != nil {
				t.Error(err)
			}
			asks := append(c.Asked()[before:], c.asks...)
			switch {
			case tt.asks[0] == "" && len(asks) != 0:
				t.Errorf("%d tokens asked for, and none is needed", len(asks))
			case tt.asks[0] != "" && (len(asks) != 1 || asks[0].Get(tt.asks[0]) != tt.asks[1]):
				t.Errorf("%d tokens asked for, want one with %s=%s", len(asks), tt.asks[0], tt.asks[1])
			}
		})
	}
}
