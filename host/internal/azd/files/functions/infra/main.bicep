// A resource group with storage, log, identity and the Functions app. azd puts the program into it.
targetScope = 'subscription'

@description('Name of the azd environment.')
@minLength(1)
@maxLength(64)
param environmentName string

@minLength(1)
param location string

@description('Name of the Functions app, before a suffix that makes it unique.')
@maxLength(18)
param resourceName string

@description('Name of the records: programs of one name share their ticks.')
param app string

@description('The queue of the alarm.')
@minLength(3)
@maxLength(63)
param queueName string

@description('Recreate, or RollingUpdate, which is a preview of the platform.')
param updateStrategy string = 'Recreate'

@description('Who gets a mail when an alert fires; empty: nobody.')
param alertEmail string = ''

@description('Who deploys, and wakes the program up after that; empty: nobody.')
param deployerId string = ''
param deployerType string = 'User'

var packages = 'packages'
var tags = {
  'azd-env-name': environmentName
}

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module storage 'modules/storage.bicep' = {
  name: 'storage'
  scope: group
  params: {
    location: location
    tags: tags
    queueName: queueName
    containers: [
      packages
    ]
  }
}

module logs 'modules/logs.bicep' = {
  name: 'logs'
  scope: group
  params: {
    location: location
    tags: tags
  }
}

module identity 'modules/identity.bicep' = {
  name: 'identity'
  scope: group
  params: {
    location: location
    tags: tags
    storageName: storage.outputs.name
    queueName: queueName
    deployerId: deployerId
    deployerType: deployerType
    ownsBlobs: true
  }
}

module functions 'modules/functions.bicep' = {
  name: 'functions'
  scope: group
  params: {
    location: location
    environmentName: environmentName
    resourceName: resourceName
    app: app
    queueName: queueName
    workspaceId: logs.outputs.id
    identityId: identity.outputs.id
    identityClientId: identity.outputs.clientId
    blobEndpoint: storage.outputs.blobEndpoint
    queueEndpoint: storage.outputs.queueEndpoint
    packages: packages
    updateStrategy: updateStrategy
  }
}

module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  scope: group
  params: {
    location: location
    tags: tags
    workspaceId: logs.outputs.id
    // What the handler writes to its standard output is the text of a trace.
    lines: 'AppTraces | extend line = parse_json(Message) | where isnotempty(line.msg) | extend job = tostring(line.job)'
    email: alertEmail
  }
}

// azd keeps these; the second is for the hook that wakes the program up.
output AZURE_RESOURCE_GROUP string = group.name
output JOBS_STORAGE_URL string = storage.outputs.blobEndpoint
