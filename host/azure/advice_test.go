package azure_test

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/azurite"
)

// jwt is a token for the principal with this object id.
func jwt(object string) string {
	return "x." + base64.RawURLEncoding.EncodeToString([]byte(`{"oid":"`+object+`","idtyp":"app"}`)) + ".x"
}

// refusing answers each request with a refusal, or with a web page, and gives a token for the
// principal with this object id. Without one it gives none.
func refusing(code, object string) transport {
	return func(r *http.Request) (*http.Response, error) {
		switch {
		case r.URL.Host == platformHost && object != "":
			return token(r, jwt(object), 24*3600), nil
		case code == "page":
			return page(r, http.StatusOK, http.Header{}), nil
		case r.URL.Host != "sim.blob.core.windows.net" && r.URL.Host != "store:10000":
			return &http.Response{StatusCode: 400, Request: r, Header: http.Header{}, Body: http.NoBody}, nil
		}
		return refusal(r, 403, code), nil
	}
}

// Each refusal comes with what to do about it, which depends on who asks.
func TestAdvice(t *testing.T) {
	key := azure.Config{ConnectionString: keyed}
	signature := azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sv=2026&sig=" + secret}
	managed := azure.Config{AccountName: "sim", Credential: "managedidentity"}
	for _, test := range []struct {
		what         string
		config       azure.Config
		onPlatform   bool
		code, object string
		text, advice string
	}{
		{"a wrong key", key, false, "AuthenticationFailed", "", "AuthenticationFailed", "az storage account show-connection-string --name sim"},
		{"keys are not allowed", key, false, "KeyBasedAuthenticationNotPermitted", "", "KeyBasedAuthenticationNotPermitted", "--allow-shared-key-access true"},
		{"network rules", key, false, "AuthorizationFailure", "", "AuthorizationFailure", "az storage account network-rule add --account-name sim"},
		{"network rules, or a signature", signature, false, "AuthorizationFailure", "", "AuthorizationFailure", "generate-sas --account-name sim"},
		{"an emulator", azure.Config{ConnectionString: "BlobEndpoint=http://store:10000/sim;" + keyed}, false, "AuthorizationFailure", "", "AuthorizationFailure",
			"an emulator says this of a wrong key"},
		{"a busy service", key, false, "ServerBusy", "", "ServerBusy", "try again"},
		{"an answer of a proxy", key, false, "", "", "not from the Blob service", "something between here and the Blob service answers"},
		{"a sign-in page", key, false, "page", "", "not from the Blob service", "NO_PROXY"},
		{"a signature without the right", signature, false, "AuthorizationPermissionMismatch", "", "AuthorizationPermissionMismatch", "az storage container generate-sas"},
		{"an identity without the role", managed, true, "AuthorizationPermissionMismatch", "0A-b9", "AuthorizationPermissionMismatch", `--assignee-object-id 0A-b9 --assignee-principal-type ServicePrincipal ` +
			`--role "Storage Blob Data Contributor" --scope "$(az storage account show --name sim --query id -o tsv)/blobServices/default/containers/soloist"`},
		{"an id that would be a command", managed, true, "AuthorizationPermissionMismatch", "0A;$(x)b9", "AuthorizationPermissionMismatch", "--assignee-object-id 0Axb9 "},
		{"no token", managed, true, "", "", "no token", "check that the app has the identity"},
		{"no identity on this platform", managed, false, "", "", "no token", "IDENTITY_ENDPOINT is not set"},
	} {
		t.Run(test.what, func(t *testing.T) {
			bare(t)
			if test.onPlatform {
				platform(t)
			}
			if test.config.Credential != "" {
				test.config.ClientID = rand.Text()
			}
			test.config.Transport = refusing(test.code, test.object)
			s := opened(t, test.config)
			_, err := s.Read(t.Context(), name)
			if err == nil {
				t.Fatal("no refusal")
			}
			text, advice := s.Explain(err)
			if !strings.Contains(text, test.text) || !strings.Contains(advice, test.advice) {
				t.Errorf("got %q and the advice %q, want %q and %q", text, advice, test.text, test.advice)
			}
		})
	}
}

// An owner of the account, who has no role for its data, can run the command that makes a container or a queue.
func TestAdviceOnCreatingUsesControlPlane(t *testing.T) {
	bare(t)
	send := transport(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.URL.Host == platformHost:
			return token(r, jwt("0A-b9"), 24*3600), nil
		case creates(r):
			return refusal(r, 403, "AuthorizationPermissionMismatch"), nil
		case strings.Contains(r.URL.Host, ".queue."):
			return refusal(r, 404, "QueueNotFound"), nil
		}
		return refusal(r, 404, "ContainerNotFound"), nil
	})
	platform(t)
	config := azure.Config{AccountName: "sim", Credential: "managedidentity", Transport: send}
	s, q := opened(t, config), queued(t, config)
	_, advice := s.Explain(calls["create"](t.Context(), config))
	if !strings.Contains(advice, "az storage container-rm create --name soloist --storage-account sim;") {
		t.Errorf("got %q", advice)
	}
	err := second(q.Put(t.Context(), []byte("x"), 0))
	const want = `az rest --method put --url "$(az storage account show --name sim --query id -o tsv)/queueServices/default/queues/shop-alarm?api-version=2024-01-01" --body '{}';`
	if _, advice := q.Explain(err); !strings.Contains(advice, want) || !strings.Contains(advice, "az role assignment create") {
		t.Errorf("got %q", advice)
	}
}

// A connection that comes to no TLS is a finding that tells why.
func TestExamineConnectionWithoutTLS(t *testing.T) {
	cert, key := azurite.Certificate(t, time.Now().Add(-time.Hour), "127.0.0.1")
	expired, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for want, start := range map[string]func(*httptest.Server){
		"its certificate is not trusted: install ca-certificates": (*httptest.Server).StartTLS,
		"does not speak TLS": (*httptest.Server).Start,
		"has expired":        func(s *httptest.Server) { s.TLS = &tls.Config{Certificates: []tls.Certificate{expired}}; s.StartTLS() },
	} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(server)
		_, address, _ := strings.Cut(server.URL, "://")
		s := opened(t, azure.Config{ServiceURL: "https://" + address + "/sim?sig=" + secret})
		if got := examine(t, s, "connection", time.Now); !got.Fails || !strings.Contains(got.Text, "no TLS with "+address) || !strings.Contains(got.Advice, want) {
			t.Errorf("got %+v, want a failure and the advice %q", got, want)
		}
		server.Close()
	}
}

// What a signature says of itself tells whether it is enough.
func TestExamineSignature(t *testing.T) {
	for _, test := range []struct {
		url, says string
		fails     bool
	}{
		{"https://sim.blob.core.windows.net/?sp=rcwd&spr=https&sr=c&se=2026-12-31", "shared access signature of account sim until 2026-12-31T00:00:00Z", false},
		{"https://sim.blob.core.windows.net/?sp=rcwd&ss=b&srt=co&se=2026-12-31T10:20Z", "until 2026-12-31T10:20:00Z", false},
		{"https://sim.blob.core.windows.net/?si=policy", "shared access signature of account sim", false},
		{"https://sim.blob.core.windows.net/?sp=rcwd&se=2026-11-27", "until 2026-11-27T00:00:00Z, soon", false},
		{"http://127.0.0.1:10000/sim?sp=rcwd&spr=https", "is for https only", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&se=2026-11-20", "has expired", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&st=2026-11-22", "begins at 2026-11-22T00:00:00Z only", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&ss=fqt", "is not for the Blob service (ss=fqt)", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&ss=b&srt=sc", "is not for blobs themselves (srt=sc lacks o)", true},
		{"https://sim.blob.core.windows.net/?sp=rcwd&sr=b", "is not for a container (sr=b)", true},
		{"https://sim.blob.core.windows.net/?sp=rl", "does not allow to read and write (sp=rl)", true},
		{"https://sim.blob.core.windows.net/?sp=w", "does not allow to read and write (sp=w)", true},
	} {
		s := opened(t, azure.Config{ServiceURL: test.url + "&sig=" + secret, Transport: refusing("AuthenticationFailed", "")})
		now := func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }
		got := examine(t, s, "credentials", now)
		if got.Fails != test.fails || !strings.HasSuffix(got.Text, test.says) || got.Fails && got.Advice == "" || strings.Contains(got.Text+got.Advice, secret) {
			t.Errorf("%s: got %+v, want a failure %t that ends with %q", test.url, got, test.fails, test.says)
		}
	}
}

// examine does one check of a store.
func examine(t *testing.T, s *azure.Store, check string, now func() time.Time) azure.Finding {
	t.Helper()
	for _, c := range s.Examine(name, now) {
		if c.Name == check {
			return c.Do(t.Context())
		}
	}
	t.Fatalf("there is no check %q", check)
	return azure.Finding{}
}
