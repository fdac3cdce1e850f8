package azure

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// Open checks the configuration and returns the store. It sends no request: the
// first call shows whether the service is there and lets us in.
func Open(c Config) (*Store, error) {
	direct := c.Transport == nil
	c.Transport = cutter{c.transport()}
	if c.Container == "" {
		c.Container = DefaultContainer
	}
	if err := checkContainer(c.Container); err != nil {
		return nil, err
	}
	client, id, err := c.client()
	if err != nil {
		return nil, err
	}
	box := client.NewContainerClient(c.Container)
	bare, _, _ := strings.Cut(box.URL(), "?")
	way := credentialsOf(c, box.URL(), id)
	way.direct = direct
	return &Store{container: box, name: c.Container, url: bare, way: way}, nil
}

// client picks the way in, in the order of the Functions host. The identity is
// nil where there is none.
func (c Config) client() (*service.Client, *identity, error) {
	switch {
	case c.ConnectionString != "":
		account, err := parseConnectionString(c.ConnectionString)
		if err != nil {
			return nil, nil, fmt.Errorf("azure: %s: %w", connectionSetting, err)
		}
		client, err := account.client(c.options(blobService))
		return client, nil, err
	case c.ServiceURL != "":
		return c.atURL()
	case c.AccountName != "":
		if !accountName.MatchString(c.AccountName) {
			return nil, nil, fmt.Errorf("azure: %s: not 3 to 24 lower-case letters and digits", accountSetting)
		}
		return c.withIdentity("https://" + c.AccountName + ".blob.core.windows.net/")
	}
	return nil, nil, fmt.Errorf("azure: no storage: set a %s, a %s or an %s", connectionSetting, urlSetting, accountSetting)
}

func (c Config) atURL() (*service.Client, *identity, error) {
	u, err := serviceURL(c.ServiceURL)
	if err != nil {
		return nil, nil, fmt.Errorf("azure: %s: %w", urlSetting, err)
	}
	if u.RawQuery == "" {
		if u.Scheme != "https" {
			return nil, nil, fmt.Errorf("azure: %s: an identity needs https", urlSetting)
		}
		return c.withIdentity(u.String())
	}
	if inClear(u) {
		return nil, nil, fmt.Errorf("azure: %s: %w", urlSetting, errInClear)
	}
	client, err := plainClient(u.String(), c.options(blobService))
	return client, nil, err
}

func (c Config) withIdentity(url string) (*service.Client, *identity, error) {
	options := c.options(blobService)
	id, err := c.identify(&options)
	if err != nil {
		return nil, nil, err
	}
	client, err := plainClient(url, options)
	return client, id, err
}
