package azure

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// An account is what a connection string says: a key or a signature, never
// both.
type account struct {
	url       string // of the blobs, with the signature
	queue     string // of the queues, without it; empty: from the blobs' address
	name, key string
}

// development is what UseDevelopmentStorage=true stands for
// (https://learn.microsoft.com/azure/storage/common/storage-connect-azurite):
// the key is public.
var development = account{
	url:  "http://127.0.0.1:10000/devstoreaccount1",
	name: "devstoreaccount1",
	key:  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
}

func (a account) client(o azcore.ClientOptions) (*service.Client, error) {
	if a.key == "" {
		return plainClient(a.url, o)
	}
	cred, err := service.NewSharedKeyCredential(a.name, a.key)
	if err != nil {
		return nil, fmt.Errorf("azure: %s: AccountKey is not base64", connectionSetting)
	}
	client, err := service.NewClientWithSharedKeyCredential(a.url, cred, &service.ClientOptions{ClientOptions: o})
	if err != nil {
		return nil, fmt.Errorf("azure: %s: the client library refuses it", connectionSetting)
	}
	return client, nil
}

// parseConnectionString reads the pairs of a connection string
// (https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string).
// Unlike the client library it takes the keys in any case, as the Functions
// host does, and its errors name the key at fault.
func parseConnectionString(text string) (account, error) {
	pairs, err := splitPairs(text)
	if err != nil {
		return account{}, err
	}
	if strings.EqualFold(pairs["usedevelopmentstorage"], "true") {
		return emulator(pairs["developmentstorageproxyuri"])
	}
	a := account{name: pairs["accountname"], key: pairs["accountkey"], queue: pairs["queueendpoint"]}
	if a.url, err = endpoint(pairs); err != nil {
		return account{}, err
	}
	signature := strings.TrimPrefix(pairs["sharedaccesssignature"], "?")
	switch {
	case a.key != "" && a.name == "":
		return account{}, errors.New("it has AccountKey without AccountName: want both")
	case a.key != "":
		if _, err := base64.StdEncoding.DecodeString(a.key); err != nil {
			return account{}, errors.New("AccountKey is not base64: want the key as the portal shows it")
		}
		return a, nil
	case signature == "":
		return account{}, errors.New("it has neither AccountKey nor SharedAccessSignature: want one of them")
	case !strings.Contains(signature, "sig="):
		return account{}, errors.New("SharedAccessSignature has no signature")
	}
	if u, err := url.Parse(a.url); err != nil || inClear(u) {
		return account{}, errInClear
	}
	a.url += "?" + signature
	return a, nil
}

// emulator is the account of an emulator on the host that proxy names, if it
// names one: a DevelopmentStorageProxyUri stands for an address without its port
// (https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string#connect-to-the-emulator-account-using-the-shortcut).
func emulator(proxy string) (account, error) {
	if proxy == "" {
		return development, nil
	}
	u, err := serviceURL(proxy)
	if err != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" || u.Port() != "" && u.Port() != "10000" {
		return account{}, errors.New("DevelopmentStorageProxyUri is not http or https and a host, with port 10000 or none: for another address give BlobEndpoint, AccountName and AccountKey")
	}
	a := development
	a.url = u.Scheme + "://" + strings.TrimSuffix(u.Host, ":10000") + ":10000/" + a.name
	return a, nil
}

// splitPairs does not quote text in its errors: any part may be a key.
func splitPairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for i, part := range strings.Split(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("part %d is not of the form key=value", i+1)
		}
		pairs[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return pairs, nil
}

func endpoint(pairs map[string]string) (string, error) {
	if blob := pairs["blobendpoint"]; blob != "" {
		u, err := serviceURL(blob)
		if err != nil || u.RawQuery != "" {
			return "", errors.New("BlobEndpoint is not a blob service URL without a query")
		}
		return strings.TrimSuffix(u.String(), "/") + "/", nil
	}
	name, protocol, suffix := pairs["accountname"], pairs["defaultendpointsprotocol"], pairs["endpointsuffix"]
	if protocol == "" {
		protocol = "https"
	}
	if suffix == "" {
		suffix = "core.windows.net"
	}
	switch {
	case name == "":
		return "", errors.New("it has neither AccountName nor BlobEndpoint: want one of them")
	case !accountName.MatchString(name):
		return "", errors.New("AccountName is not 3 to 24 lower-case letters and digits")
	case protocol != "https" && protocol != "http":
		return "", errors.New("DefaultEndpointsProtocol is neither https nor http")
	}
	u, err := serviceURL(protocol + "://" + name + ".blob." + suffix + "/")
	if err != nil {
		return "", errors.New("EndpointSuffix is not a host name")
	}
	return u.String(), nil
}
