package azure_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/azure"
)

func TestOpen(t *testing.T) {
	tests := []struct {
		what   string
		config azure.Config
		url    string // of the first request
		auth   string // how its Authorization begins
	}{
		{"key", azure.Config{ConnectionString: keyed}, "https://sim.blob.core.windows.net/soloist/app/job", "SharedKey sim:"},
		{"as the portal gives it", azure.Config{ConnectionString: "DefaultEndpointsProtocol=https;AccountName=sim;AccountKey=" + secret + ";EndpointSuffix=core.chinacloudapi.cn"}, "https://sim.blob.core.chinacloudapi.cn/soloist/app/job", "SharedKey sim:"},
		{"other case, spaces", azure.Config{ConnectionString: " accountname = sim ; ACCOUNTKEY = " + secret + " ;"}, "https://sim.blob.core.windows.net/soloist/app/job", "SharedKey sim:"},
		{"endpoint and key", azure.Config{ConnectionString: "BlobEndpoint=http://store:10000/dev;" + keyed}, "http://store:10000/dev/soloist/app/job", "SharedKey sim:"},
		{"signature", azure.Config{ConnectionString: "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=?sv=1&sig=x"}, "https://sim.blob.core.windows.net/soloist/app/job?sig=x&sv=1", ""},
		{"emulator", azure.Config{ConnectionString: "UseDevelopmentStorage=true"}, "http://127.0.0.1:10000/devstoreaccount1/soloist/app/job", "SharedKey devstoreaccount1:"},
		{"emulator elsewhere", azure.Config{ConnectionString: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite-host"}, "http://azurite-host:10000/devstoreaccount1/soloist/app/job", "SharedKey devstoreaccount1:"},
		{"emulator elsewhere, port named", azure.Config{ConnectionString: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=https://azurite-host:10000/"}, "https://azurite-host:10000/devstoreaccount1/soloist/app/job", "SharedKey devstoreaccount1:"},
		{"URL with signature", azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sv=1&sig=x"}, "https://sim.blob.core.windows.net/soloist/app/job?sig=x&sv=1", ""},
		{"signature on this machine", azure.Config{ServiceURL: "http://127.0.0.1:10000/dev?sv=1&sig=x"}, "http://127.0.0.1:10000/dev/soloist/app/job?sig=x&sv=1", ""},
		{"signature on localhost", azure.Config{ConnectionString: "BlobEndpoint=http://LocalHost:10000/dev;SharedAccessSignature=sig=x"}, "http://LocalHost:10000/dev/soloist/app/job?sig=x", ""},
		{"signature on ::1", azure.Config{ServiceURL: "http://[::1]:10000/dev?sig=x"}, "http://[::1]:10000/dev/soloist/app/job?sig=x", ""},
		{"URL", azure.Config{ServiceURL: "https://sim.blob.core.windows.net"}, "https://sim.blob.core.windows.net/soloist/app/job", "Bearer "},
		{"account", azure.Config{AccountName: "sim"}, "https://sim.blob.core.windows.net/soloist/app/job", "Bearer "},
		{"connection string wins", azure.Config{ConnectionString: keyed, ServiceURL: "https://url.blob.core.windows.net", AccountName: "name"}, "https://sim.blob.core.windows.net/soloist/app/job", "SharedKey sim:"},
		{"URL wins", azure.Config{ServiceURL: "https://url.blob.core.windows.net", AccountName: "name"}, "https://url.blob.core.windows.net/soloist/app/job", "Bearer "},
		{"container", azure.Config{ConnectionString: keyed, Container: "a-b"}, "https://sim.blob.core.windows.net/a-b/app/job", "SharedKey sim:"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			platform(t)
			if tt.auth == "Bearer " {
				tt.config.Credential = "managedidentity"
			}
			var got []*http.Request
			tt.config.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == platformHost {
					return token(r, "t", 3600), nil
				}
				got = append(got, r)
				return nil, errors.New("no network")
			})
			s := opened(t, tt.config)
			s.Read(t.Context(), name)
			if len(got) != 1 {
				t.Fatalf("%d requests", len(got))
			}
			u := *got[0].URL
			u.RawPath, u.RawQuery = "", u.Query().Encode()
			if u.String() != tt.url {
				t.Errorf("got %s, want %s", &u, tt.url)
			}
			if auth := got[0].Header.Get("Authorization"); !strings.HasPrefix(auth, tt.auth) || auth != "" && tt.auth == "" {
				t.Errorf("authorization %q, want %q...", auth, tt.auth)
			}
			bare, _, _ := strings.Cut(tt.url, "/app/job")
			if s.String() != bare {
				t.Errorf("is called %s, want %s", s, bare)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	// hidden must not appear in any error: it stands for a key, or for a value
	// that was put into the wrong setting.
	const hidden = "c2hoaGhoIQ"
	tests := []struct {
		config azure.Config
		says   string
	}{
		{azure.Config{}, "no storage"},
		{azure.Config{ConnectionString: hidden}, "part 1 is not of the form key=value"},
		{azure.Config{ConnectionString: "AccountName=sim;" + hidden}, "part 2"},
		{azure.Config{ConnectionString: "AccountName=sim"}, "it has neither AccountKey nor SharedAccessSignature: want one of them"},
		{azure.Config{ConnectionString: "AccountKey=" + hidden}, "it has neither AccountName nor BlobEndpoint: want one of them"},
		{azure.Config{ConnectionString: "AccountName=sim;AccountKey=" + hidden + "?"}, "AccountKey is not base64"},
		{azure.Config{ConnectionString: "AccountName=" + hidden + ".x;AccountKey=" + secret}, "AccountName is not"},
		{azure.Config{ConnectionString: "BlobEndpoint=https://x/;AccountKey=" + secret}, "it has AccountKey without AccountName: want both"},
		{azure.Config{ConnectionString: "BlobEndpoint=" + hidden + ";" + keyed}, "BlobEndpoint"},
		{azure.Config{ConnectionString: "BlobEndpoint=https://x/?sig=" + hidden + ";" + keyed}, "BlobEndpoint"},
		{azure.Config{ConnectionString: "DefaultEndpointsProtocol=" + hidden + ";" + keyed}, "DefaultEndpointsProtocol"},
		{azure.Config{ConnectionString: "EndpointSuffix=" + hidden + " x;" + keyed}, "EndpointSuffix"},
		{azure.Config{ConnectionString: "AccountName=sim;SharedAccessSignature=" + hidden}, "SharedAccessSignature has no signature"},
		{azure.Config{ConnectionString: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=" + hidden}, "DevelopmentStorageProxyUri"},
		{azure.Config{ConnectionString: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://" + hidden + "/x"}, "DevelopmentStorageProxyUri"},
		{azure.Config{ConnectionString: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://x:10001"}, "DevelopmentStorageProxyUri is not http or https and a host, with port 10000 or none: for another address give BlobEndpoint"},
		{azure.Config{ServiceURL: hidden}, "not an http or https URL"},
		{azure.Config{ServiceURL: "ftp://" + hidden}, "not an http or https URL"},
		{azure.Config{ServiceURL: "https://" + hidden + "/%zz"}, "not a URL"},
		{azure.Config{ServiceURL: "https://me:" + hidden + "@sim.blob.core.windows.net"}, "neither a user"},
		{azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?" + hidden}, "no shared access signature"},
		{azure.Config{ServiceURL: "https://sim.blob.core.windows.net/box?sig=" + hidden}, "SOLOIST_CONTAINER"},
		{azure.Config{ServiceURL: "http://sim.blob.core.windows.net"}, "needs https"},
		{azure.Config{ServiceURL: "http://sim.blob.core.windows.net/?sig=" + hidden}, "use https"},
		{azure.Config{ServiceURL: "HTTP://store:10000/dev?sig=" + hidden}, "use https"},
		{azure.Config{ServiceURL: "http://10.0.0.4/dev?sig=" + hidden}, "use https"},
		{azure.Config{ServiceURL: "http://127.0.0.1.example.com/dev?sig=" + hidden}, "use https"},
		{azure.Config{ServiceURL: "http://localhost.example.com/dev?sig=" + hidden}, "use https"},
		{azure.Config{ConnectionString: "BlobEndpoint=http://store:10000/dev;SharedAccessSignature=sig=" + hidden}, "use https"},
		{azure.Config{ConnectionString: "DefaultEndpointsProtocol=http;AccountName=sim;SharedAccessSignature=?sig=" + hidden}, "use https"},
		{azure.Config{AccountName: "https://" + hidden}, "__accountName"},
		{azure.Config{AccountName: "sim", Credential: hidden}, "__credential"},
		{azure.Config{AccountName: "sim", ClientID: hidden}, "__credential=managedidentity"},
		{azure.Config{AccountName: "sim", ManagedIdentityResourceID: hidden}, "__credential=managedidentity"},
		{azure.Config{AccountName: "sim", Credential: "ManagedIdentity", ClientID: hidden, ManagedIdentityResourceID: hidden}, "exclude each other"},
		{azure.Config{AccountName: "sim", ClientSecret: hidden}, "go together"},
		{azure.Config{AccountName: "sim", TenantID: hidden, ClientID: hidden}, "go together"},
		{azure.Config{AccountName: "sim", ClientID: hidden, ClientSecret: hidden}, "go together"},
		{azure.Config{AccountName: "sim", TenantID: hidden, ClientSecret: hidden}, "go together"},
		{azure.Config{AccountName: "sim", TenantID: hidden + "/ ?", ClientID: hidden, ClientSecret: hidden}, "malformed"},
		{azure.Config{ConnectionString: keyed, Container: "ab"}, "SOLOIST_CONTAINER"},
		{azure.Config{ConnectionString: keyed, Container: strings.Repeat("a", 64)}, "SOLOIST_CONTAINER"},
		{azure.Config{ConnectionString: keyed, Container: "Abc"}, "SOLOIST_CONTAINER"},
		{azure.Config{ConnectionString: keyed, Container: "a--b"}, "SOLOIST_CONTAINER"},
		{azure.Config{ConnectionString: keyed, Container: "-ab"}, "SOLOIST_CONTAINER"},
		{azure.Config{ConnectionString: keyed, Container: "ab-"}, "SOLOIST_CONTAINER"},
		{azure.Config{ConnectionString: keyed, Container: hidden + "_"}, "SOLOIST_CONTAINER"},
	}
	for _, tt := range tests {
		_, err := azure.Open(tt.config)
		if err == nil {
			t.Errorf("opened, want an error that says %q", tt.says)
			continue
		}
		if text := err.Error(); !strings.Contains(text, tt.says) || !strings.HasPrefix(text, "azure: ") {
			t.Errorf("got %q, want it to say %q", text, tt.says)
		}
		for _, value := range []string{hidden, secret} {
			if strings.Contains(err.Error(), value) {
				t.Errorf("tells a secret: %v", err)
			}
		}
	}
}
