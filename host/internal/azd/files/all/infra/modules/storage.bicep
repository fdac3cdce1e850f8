// The storage account: records and leases of the jobs are blobs, the alarm is a message of a queue. There are no shared
// keys: only identities with a role can use it.

param location string
param tags object

@description('The queue of the alarm; empty: none.')
param queueName string

@description('Blob containers beside the one of the records.')
param containers array = []

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  name: 'st${uniqueString(resourceGroup().id)}'
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: 'Standard_LRS'
  }
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    defaultToOAuthAuthentication: true
    supportsHttpsTrafficOnly: true
    minimumTlsVersion: 'TLS1_2'
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' = {
  parent: account
  name: 'default'
  properties: {
    // Each write of a record would leave a version behind.
    isVersioningEnabled: false
  }
}

resource containerOf 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = [
  for name in concat(['soloist'], containers): {
    parent: blobs
    name: name
  }
]

resource queues 'Microsoft.Storage/storageAccounts/queueServices@2024-01-01' = if (!empty(queueName)) {
  parent: account
  name: 'default'
}

resource alarm 'Microsoft.Storage/storageAccounts/queueServices/queues@2024-01-01' = if (!empty(queueName)) {
  parent: queues
  name: empty(queueName) ? 'none' : queueName
}

output name string = account.name
output blobEndpoint string = account.properties.primaryEndpoints.blob
output queueEndpoint string = account.properties.primaryEndpoints.queue
