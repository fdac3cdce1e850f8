package azure_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
)

// platformHost answers for tokens as App Service and Container Apps do
// (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference).
const platformHost = "platform.test"

func platform(t *testing.T) {
	t.Setenv("IDENTITY_ENDPOINT", "http://"+platformHost+"/token")
	t.Setenv("IDENTITY_HEADER", "h")
}

func token(r *http.Request, value string, seconds int) *http.Response {
	return inJSON(r, fmt.Sprintf(`{"access_token":%q,"expires_on":"%d","token_type":"Bearer","resource":"https://storage.azure.com"}`,
		value, time.Now().Unix()+int64(seconds)))
}

func inJSON(r *http.Request, body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// withIdentity opens a store over a service, with a source of tokens.
func withIdentity(t *testing.T, tokens transport) *azure.Store {
	t.Helper()
	return identified(t, new(blobtest.Blob).Do, tokens)
}

// identified opens a store for an identity. The client library keeps tokens by
// client id for the whole process, so each test needs an id of its own.
func identified(t *testing.T, service, tokens transport) *azure.Store {
	t.Helper()
	return opened(t, azure.Config{
		AccountName: "sim", Credential: "managedidentity", ClientID: rand.Text(),
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == platformHost {
				return tokens(r)
			}
			return service(r)
		}),
	})
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

const directory = "login.microsoftonline.com"

// login is what the directory of identities answers
// (https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow). It takes note of requests for tokens.
func login(r *http.Request, asks *[]url.Values) *http.Response {
	body := `{"access_token":"t","expires_in":3600,"token_type":"Bearer"}`
	switch base := "https://" + directory + "/" + tenant; {
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		body = fmt.Sprintf(`{"tenant_discovery_endpoint":"%s/v2.0/.well-known/openid-configuration",
			"metadata":[{"preferred_network":%q,"preferred_cache":"login.windows.net","aliases":[%[2]q]}]}`, base, directory)
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		body = fmt.Sprintf(`{"authorization_endpoint":"%s/oauth2/v2.0/authorize","token_endpoint":"%[1]s/oauth2/v2.0/token","issuer":"%[1]s/v2.0"}`, base)
	default:
		text, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(text))
		*asks = append(*asks, form)
	}
	return inJSON(r, body)
}

const tenant = "11111111-2222-4333-8444-555555555555"

// Each identity that settings or environment name asks once for a token, in its own way, and comes with it.
func TestWaysIn(t *testing.T) {
	// New ones: the library keeps tokens while the process lives.
	resource, client, onPlatform := "/subscriptions/s/resourceGroups/g/"+rand.Text(), rand.Text(), rand.Text()
	file := filepath.Join(t.TempDir(), "federated")
	if err := os.WriteFile(file, []byte("token-of-the-cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"AZURE_CLIENT_ID=" + client, "AZURE_TENANT_ID=" + tenant}
	for _, tt := range []struct {
		what       string
		env        []string // nil: that of the platform
		config     azure.Config
		key, value string // of a parameter of the request for a token
	}{
		{"user-assigned identity", nil, azure.Config{Credential: "managedidentity", ClientID: client}, "client_id", client},
		{"identity by its resource", nil, azure.Config{Credential: "managedidentity", ManagedIdentityResourceID: resource}, "mi_res_id", resource},
		{"default, on a platform", nil, azure.Config{}, "client_id", onPlatform},
		{"default, workload identity", append(env, "AZURE_FEDERATED_TOKEN_FILE="+file, "AZURE_AUTHORITY_HOST=https://"+directory), azure.Config{},
			"client_assertion", "token-of-the-cluster"},
		{"default, service principal", append(env, "AZURE_CLIENT_SECRET="+secret), azure.Config{}, "client_secret", secret},
		{"service principal", []string{}, azure.Config{TenantID: tenant, ClientID: client, ClientSecret: secret}, "client_secret", secret},
	} {
		t.Run(tt.what, func(t *testing.T) {
			bare(t, tt.env...)
			if tt.env == nil {
				platform(t)
				t.Setenv("AZURE_CLIENT_ID", onPlatform)
			}
			var asks []url.Values
			tt.config.AccountName, tt.config.Transport = "sim", transport(func(r *http.Request) (*http.Response, error) {
				switch r.URL.Host {
				case platformHost:
					asks = append(asks, r.URL.Query())
					return token(r, "t", 24*3600), nil
				case directory:
					return login(r, &asks), nil
				}
				if got := r.Header.Get("Authorization"); got != "Bearer t" {
					t.Errorf("came with %q", got)
				}
				return new(blobtest.Blob).Do(r)
			})
			if _, err := opened(t, tt.config).Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			if len(asks) != 1 || asks[0].Get(tt.key) != tt.value {
				t.Errorf("got the requests for tokens %q, want one with %s=%s", asks, tt.key, tt.value)
			}
		})
	}
}

// challenging is a service that refuses each token, with a challenge.
func challenging(challenge string) transport {
	return func(r *http.Request) (*http.Response, error) {
		resp := refusal(r, http.StatusUnauthorized, "InvalidAuthenticationInfo")
		resp.Header.Set("WWW-Authenticate", challenge)
		return resp, nil
	}
}

// A fetch that takes longer than any call has to come to its end all the same.
func TestSlowTokenArrives(t *testing.T) {
	platform(t)
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		s := withIdentity(t, func(r *http.Request) (*http.Response, error) {
			fetches++
			select {
			case <-time.After(10 * time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			return token(r, "t", 24*3600), nil
		})
		start := time.Now()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := s.Read(ctx, name)
			cancel()
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
				t.Fatalf("after %s: %v", time.Since(start), err)
			}
		}
		if took := time.Since(start); took != 10*time.Second || fetches != 1 {
			t.Errorf("%d fetches, %s", fetches, took)
		}
	})
}

// Nobody waits for a new token while the old one is good, even when the source
// hangs; and when it answers again, all go on.
func TestGoodTokenIsNotWaitedFor(t *testing.T) {
	platform(t)
	synctest.Test(t, func(t *testing.T) {
		var hang atomic.Bool
		s := withIdentity(t, func(r *http.Request) (*http.Response, error) {
			if hang.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return token(r, "t", 3600), nil
		})
		call := func() (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			sent := time.Now()
			_, err := s.Read(ctx, name)
			return time.Since(sent), err
		}
		start := time.Now()
		for time.Since(start) < time.Hour {
			if took, err := call(); took != 0 || !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("after %s: waited %s: %v", time.Since(start), took, err)
			}
			hang.Store(true)
			time.Sleep(10 * time.Second)
		}
		if took, err := call(); took > 3*time.Second || err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without a token: waited %s: %v", took, err)
		}
		hang.Store(false)
		time.Sleep(time.Minute) // by now the fetch that hangs has given up
		if took, err := call(); took != 0 || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after the outage: waited %s: %v", took, err)
		}
	})
}

// A token is replaced when its source suggests it, hours before its end: a short
// outage of the source is over by then.
func TestTokenIsReplacedWhenSuggested(t *testing.T) {
	platform(t)
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int32
		s := withIdentity(t, func(r *http.Request) (*http.Response, error) {
			fetches.Add(1)
			end := time.Now().Unix() + 24*3600
			return inJSON(r, fmt.Sprintf(`{"access_token":"t","expires_on":"%d","refresh_in":43200,"token_type":"Bearer"}`, end)), nil
		})
		for minute := range 12*60 + 5 {
			_, _ = s.Read(t.Context(), "soloist/work")
			if got := fetches.Load(); minute < 12*60-1 && got != 1 {
				t.Fatalf("%d fetches after %d minutes", got, minute)
			}
			time.Sleep(time.Minute)
		}
		if got := fetches.Load(); got != 2 {
			t.Errorf("%d fetches, want a second after 12 hours", got)
		}
	})
}

// A service that wants a newer token, from a source that refuses it.
func TestRefusedChallenge(t *testing.T) {
	platform(t)
	const challenge = `Bearer realm="", error="insufficient_claims", claims="eyJhY2Nlc3NfdG9rZW4iOnt9fQ=="`
	sign := 0
	s := identified(t, challenging(challenge), func(r *http.Request) (*http.Response, error) {
		if sign++; sign == 1 {
			return token(r, "one", 86400), nil
		}
		resp := inJSON(r, "no such\nidentity")
		resp.StatusCode = http.StatusBadRequest
		return resp, nil
	})
	_, err := s.Read(t.Context(), name)
	if !errors.Is(err, fs.ErrPermission) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "http") || !strings.Contains(err.Error(), "no token") {
		t.Errorf("got %v after %d requests for tokens", err, sign)
	}
	if _, advice := s.Explain(err); advice == "" {
		t.Error("there is no advice")
	}
}

// The service refuses a token with the resource that it wants one for, which is
// the only one: each call sends one request, and calls at once share nothing
// that the challenge changes.
func TestServiceChallengeIsNotAnswered(t *testing.T) {
	platform(t)
	const challenge = "Bearer authorization_uri=https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/oauth2/authorize resource_id=https://storage.azure.com"
	var requests atomic.Int32
	service := func(r *http.Request) (*http.Response, error) {
		requests.Add(1)
		return challenging(challenge)(r)
	}
	s := identified(t, service, func(r *http.Request) (*http.Response, error) { return token(r, "t", 3600), nil })
	const goroutines, each = 8, 20
	var calls sync.WaitGroup
	for range goroutines {
		calls.Go(func() {
			for range each {
				if _, err := s.Read(t.Context(), name); !errors.Is(err, fs.ErrPermission) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	calls.Wait()
	if got := requests.Load(); got != goroutines*each {
		t.Errorf("%d requests for %d calls", got, goroutines*each)
	}
}

func TestIdentityIsForStorageOnly(t *testing.T) {
	platform(t)
	asked := 0
	s := withIdentity(t, func(r *http.Request) (*http.Response, error) {
		asked++
		return token(r, "t", 3600), nil
	})
	for _, scopes := range [][]string{nil, {"https://management.azure.com/.default"}, {azure.StorageScope, "https://management.azure.com/.default"}} {
		if err := s.Token(t.Context(), scopes...); err == nil || asked > 0 {
			t.Errorf("scopes %q: got error %v and %d requests, want an error and none", scopes, err, asked)
		}
	}
	if err := s.Token(t.Context(), azure.StorageScope); err != nil {
		t.Error(err)
	}
}

// An answer of the source that is no token fails the call in one line, as a refusal if it is one, and the next call asks again.
func TestAnswerWithoutToken(t *testing.T) {
	platform(t)
	for _, test := range []struct {
		status int
		body   string
		want   error
	}{
		{400, "no such\nidentity", fs.ErrPermission}, {403, "no such\nidentity", fs.ErrPermission}, {500, "no such\nidentity", nil},
		{200, "", nil}, {200, "null", nil}, {200, "[]", nil}, {200, "{}", nil}, {200, `{"access_token":5}`, nil},
		{200, `{"access_token":"","expires_in":3600}`, nil}, {200, "<html>please sign in</html>", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			failing := true
			s := withIdentity(t, func(r *http.Request) (*http.Response, error) {
				resp := token(r, "t", 3600)
				if failing {
					resp.StatusCode, resp.Body, resp.ContentLength = test.status, io.NopCloser(strings.NewReader(test.body)), -1
				}
				return resp, nil
			})
			_, err := s.Read(t.Context(), name)
			text := fmt.Sprint(err)
			if errors.Is(err, fs.ErrPermission) != (test.want != nil) || strings.Contains(text, "\n") || len(text) > 500 || !strings.Contains(text, "no token for the identity") {
				t.Errorf("%d %q: got %v", test.status, test.body, err)
			}
			failing = false
			if _, err := s.Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: the next call got %v", test.body, err)
			}
		})
	}
}
