package azure_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host/azure"
)

// Where the container is, how it is asked, and where the queues are: that follows from where the blobs are, or a setting of its
// own says it. A queue has one address, whichever settings lead to it.
func TestOpen(t *testing.T) {
	const (
		simBlob, simQueue = "https://sim.blob.core.windows.net", "https://sim.queue.core.windows.net"
		shared, bearer    = "SharedKey sim:", "Bearer "
		emulator          = "SharedKey devstoreaccount1:"
		development       = "UseDevelopmentStorage=true"
	)
	tests := []struct {
		what        string
		config      azure.Config
		blob, query string // of the first request
		queue       string
		auth        string // how its Authorization begins
	}{
		{"key", azure.Config{ConnectionString: keyed}, simBlob, "", simQueue, shared},
		{"as the portal gives it", azure.Config{ConnectionString: "DefaultEndpointsProtocol=https;AccountName=sim;AccountKey=" + secret + ";EndpointSuffix=core.chinacloudapi.cn"},
			"https://sim.blob.core.chinacloudapi.cn", "", "https://sim.queue.core.chinacloudapi.cn", shared},
		{"other case, spaces", azure.Config{ConnectionString: " accountname = sim ; ACCOUNTKEY = " + secret + " ;"}, simBlob, "", simQueue, shared},
		{"endpoint and key", azure.Config{ConnectionString: "BlobEndpoint=http://store:10000/dev;" + keyed}, "http://store:10000/dev", "", "http://store:10001/dev", shared},
		{"two endpoints", azure.Config{ConnectionString: "BlobEndpoint=http://store:1/dev;QueueEndpoint=http://store:2/dev;" + keyed}, "http://store:1/dev", "", "http://store:2/dev", shared},
		{"signature", azure.Config{ConnectionString: "BlobEndpoint=" + simBlob + ";SharedAccessSignature=?ss=bq&sig=x"}, simBlob, "?sig=x&ss=bq", simQueue, ""},
		{"emulator", azure.Config{ConnectionString: development}, "http://127.0.0.1:10000/devstoreaccount1", "", "http://127.0.0.1:10001/devstoreaccount1", emulator},
		{"emulator elsewhere", azure.Config{ConnectionString: development + ";DevelopmentStorageProxyUri=http://azurite-host"},
			"http://azurite-host:10000/devstoreaccount1", "", "http://azurite-host:10001/devstoreaccount1", emulator},
		{"emulator elsewhere, port named", azure.Config{ConnectionString: development + ";DevelopmentStorageProxyUri=https://azurite-host:10000/"},
			"https://azurite-host:10000/devstoreaccount1", "", "https://azurite-host:10001/devstoreaccount1", emulator},
		{"URL with signature", azure.Config{ServiceURL: simBlob + "/?sv=1&sig=x"}, simBlob, "?sig=x&sv=1", simQueue, ""},
		{"signature on this machine", azure.Config{ServiceURL: "http://127.0.0.1:10000/dev?sig=x"}, "http://127.0.0.1:10000/dev", "?sig=x", "http://127.0.0.1:10001/dev", ""},
		{"signature on localhost", azure.Config{ConnectionString: "BlobEndpoint=http://LocalHost:10000/dev;SharedAccessSignature=sig=x"},
			"http://LocalHost:10000/dev", "?sig=x", "http://localhost:10001/dev", ""},
		{"signature on ::1", azure.Config{ServiceURL: "http://[::1]:10000/dev?sig=x"}, "http://[::1]:10000/dev", "?sig=x", "http://[::1]:10001/dev", ""},
		{"URL", azure.Config{ServiceURL: simBlob}, simBlob, "", simQueue, bearer},
		{"URL with a port", azure.Config{ServiceURL: "https://Sim.blob.core.windows.net:443/"}, "https://Sim.blob.core.windows.net:443", "", simQueue, bearer},
		{"two URLs", azure.Config{ServiceURL: "https://blobs.contoso.com", QueueURL: "https://queues.contoso.com"}, "https://blobs.contoso.com", "", "https://queues.contoso.com", bearer},
		{"account", azure.Config{AccountName: "sim"}, simBlob, "", simQueue, bearer},
		{"account, URL of queues", azure.Config{AccountName: "sim", QueueURL: "https://sim.queue.core.usgovcloudapi.net/"}, simBlob, "", "https://sim.queue.core.usgovcloudapi.net", bearer},
		{"connection string wins", azure.Config{ConnectionString: keyed, ServiceURL: "https://url.blob.core.windows.net", AccountName: "name"}, simBlob, "", simQueue, shared},
		{"URL wins", azure.Config{ServiceURL: "https://url.blob.core.windows.net", AccountName: "name"},
			"https://url.blob.core.windows.net", "", "https://url.queue.core.windows.net", bearer},
		{"container", azure.Config{ConnectionString: keyed, Container: "a-b"}, simBlob, "", simQueue, shared},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			platform(t)
			if tt.auth == bearer {
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
			u, box := *got[0].URL, tt.blob+"/"+cmp.Or(tt.config.Container, "soloist")
			u.RawPath, u.RawQuery = "", u.Query().Encode()
			if u.String() != box+"/app/job"+tt.query || s.String() != box {
				t.Errorf("%s asks %s, want %s", s, &u, box)
			}
			if auth := got[0].Header.Get("Authorization"); !strings.HasPrefix(auth, tt.auth) || auth != "" && tt.auth == "" {
				t.Errorf("authorization %q, want %q...", auth, tt.auth)
			}
			if q := queued(t, tt.config); q.String() != tt.queue+"/"+queueName {
				t.Errorf("the queue is %s, want %s", q, tt.queue)
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
	}
	refused := func(err error, says string) {
		t.Helper()
		text := fmt.Sprint(err)
		if !strings.Contains(text, says) || !strings.HasPrefix(text, "azure: ") || strings.Contains(text, hidden) || strings.Contains(text, secret) {
			t.Errorf("got %q, want an error that says %q and no secret", text, says)
		}
	}
	for _, tt := range tests {
		_, err := azure.Open(tt.config)
		refused(err, tt.says)
		_, err = azure.OpenQueue(tt.config, queueName)
		refused(err, tt.says)
	}
	for _, name := range []string{"ab", strings.Repeat("a", 64), "Abc", "a--b", "-ab", "ab-", hidden + "_"} {
		_, err := azure.Open(azure.Config{ConnectionString: keyed, Container: name})
		refused(err, "SOLOIST_CONTAINER")
		_, err = azure.OpenQueue(azure.Config{ConnectionString: keyed}, name)
		refused(err, "SOLOIST_ALARM_QUEUE")
	}
	const simBlob = "https://sim.blob.core.windows.net"
	for _, tt := range []struct {
		config azure.Config
		says   string
	}{
		{azure.Config{ConnectionString: "BlobEndpoint=https://blobs.contoso.com;" + keyed}, `the host "blobs.contoso.com" of the blobs: set QueueEndpoint`},
		{azure.Config{ConnectionString: "QueueEndpoint=" + hidden + ";" + keyed}, "QueueEndpoint is not a queue service URL"},
		{azure.Config{ConnectionString: "BlobEndpoint=" + simBlob + ";SharedAccessSignature=sr=c&sig=" + hidden}, "its shared access signature is not for queues"},
		{azure.Config{ServiceURL: simBlob + "/?ss=b&sig=" + hidden}, "want one of the account for blobs and queues (ss=bq)"},
		{azure.Config{ServiceURL: "https://blobs.contoso.com"}, "set AzureWebJobsStorage__queueServiceUri"},
		{azure.Config{AccountName: "sim", QueueURL: "http://sim.queue.core.windows.net"}, "AzureWebJobsStorage__queueServiceUri): an identity needs https"},
		{azure.Config{AccountName: "sim", QueueURL: hidden}, "not an http or https URL"},
	} {
		_, err := azure.OpenQueue(tt.config, queueName)
		refused(err, tt.says)
	}
}
