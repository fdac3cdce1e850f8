package azurite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// StartSecure is [Start] of a server that speaks https and takes the tokens of
// identities, which it does over https alone. It checks the issuer, audience
// and time of a token, but not the signature. The file has the certificate that
// its clients have to trust: SSL_CERT_FILE.
func StartSecure(t testing.TB) (s *Server, certificate string) {
	t.Helper()
	cert, key := Certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	return start(t, "--oauth", "basic", "--cert", cert, "--key", key), cert
}

// Certificate makes a certificate that signs itself, and returns the names of
// its file and of its key's.
func Certificate(t testing.TB, until time.Time, hosts ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test of soloist"},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// Signature is a shared access signature of the account, for blobs and their
// containers, as a query
// (https://learn.microsoft.com/rest/api/storageservices/create-account-sas).
func Signature(permissions string, until time.Time) string {
	const version, services, types = "2020-12-06", "b", "co"
	end := until.UTC().Format(time.RFC3339)
	key, _ := base64.StdEncoding.DecodeString(Key) // it is one
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n%s\n\n\n%s\n\n", Account, permissions, services, types, end, version)
	return url.Values{
		"sv": {version}, "sp": {permissions}, "ss": {services}, "srt": {types}, "se": {end},
		"sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}.Encode()
}

// Tenant and Principal are the ids in a [Token].
const (
	Tenant    = "11111111-2222-4333-8444-555555555555"
	Principal = "99999999-8888-4777-8666-555555555555"
)

// Token returns an unsigned access token for storage.
func Token(life time.Duration) string {
	now := time.Now()
	part := func(v any) string {
		b, _ := json.Marshal(v) // of maps of texts and numbers
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(map[string]any{"alg": "none", "typ": "JWT"}) + "." + part(map[string]any{
		"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/" + Tenant + "/", "idtyp": "app",
		"oid": Principal, "tid": Tenant, "iat": now.Unix(), "nbf": now.Add(-5 * time.Minute).Unix(), "exp": now.Add(life).Unix(),
	}) + "."
}

// A Platform gives out tokens as App Service and Container Apps do
// (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference).
type Platform struct {
	url string

	mu    sync.Mutex
	life  time.Duration
	asked []url.Values
	given []string
}

// IdentityHeader is what the platform wants to see. It is a secret.
const IdentityHeader = "DoNotTellThisIdentityHeader"

// NewPlatform serves tokens of an hour until the test has ended.
func NewPlatform(t testing.TB) *Platform {
	t.Helper()
	p := &Platform{life: time.Hour}
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections() // a fetch may outlive its caller
		server.Close()
	})
	p.url = server.URL + "/msi/token"
	return p
}

// Environment is what the platform gives its apps.
func (p *Platform) Environment() []string {
	return []string{"IDENTITY_ENDPOINT=" + p.url, "IDENTITY_HEADER=" + IdentityHeader}
}

// Give sets how long tokens are good from now on.
func (p *Platform) Give(life time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life = life
}

// Asked returns the queries so far, also those that failed.
func (p *Platform) Asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]url.Values(nil), p.asked...)
}

// Secrets must never be shown: the header and all tokens.
func (p *Platform) Secrets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{IdentityHeader}, p.given...)
}

func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	life := p.life
	p.asked = append(p.asked, r.URL.Query())
	p.mu.Unlock()
	if r.Header.Get("X-IDENTITY-HEADER") != IdentityHeader || r.URL.Query().Get("resource") != "https://storage.azure.com" {
		http.Error(w, "not like this: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	token := Token(life)
	p.mu.Lock()
	p.given = append(p.given, token)
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":%q,"expires_on":"%d","token_type":"Bearer","resource":"https://storage.azure.com"}`,
		token, time.Now().Add(life).Unix())
}
