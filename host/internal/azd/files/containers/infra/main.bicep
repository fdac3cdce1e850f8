// All that is there before the program: a resource group with storage, log, registry, identity and environment. The program
// itself is in jobs.bicep, which is deployed with each new image.
targetScope = 'subscription'

@description('Name of the azd environment.')
@minLength(1)
@maxLength(64)
param environmentName string

@minLength(1)
param location string

@description('Name of the container app or job.')
@maxLength(18)
param resourceName string

@description('The queue of the alarm; empty: replicas stay up.')
@maxLength(63)
param queueName string

@description('Who gets a mail when an alert fires; empty: nobody.')
param alertEmail string = ''

@description('Who deploys, and wakes the program up after that; empty: nobody.')
param deployerId string = ''
param deployerType string = 'User'

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

module environment 'modules/environment.bicep' = {
  name: 'environment'
  scope: group
  params: {
    location: location
    tags: tags
    workspaceName: logs.outputs.name
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
    registryName: environment.outputs.registryName
  }
}

module alerts 'modules/alerts.bicep' = {
  name: 'alerts'
  scope: group
  params: {
    location: location
    tags: tags
    workspaceId: logs.outputs.id
    // Of a job, the group is the execution: the job's name and a suffix.
    lines: 'ContainerAppConsoleLogs_CL | where column_ifexists("ContainerAppName_s", "") == "${resourceName}" or column_ifexists("ContainerGroupName_s", "") startswith "${resourceName}-" | extend line = parse_json(Log_s) | extend job = tostring(line.job)'
    email: alertEmail
  }
}

// azd keeps these for jobs.parameters.json, and for the push of the image.
output AZURE_RESOURCE_GROUP string = group.name
output AZURE_CONTAINER_REGISTRY_ENDPOINT string = environment.outputs.registryServer
output JOBS_ENVIRONMENT_ID string = environment.outputs.environmentId
output JOBS_IDENTITY_ID string = identity.outputs.id
output JOBS_IDENTITY_CLIENT_ID string = identity.outputs.clientId
output JOBS_STORAGE_NAME string = storage.outputs.name
output JOBS_STORAGE_URL string = storage.outputs.blobEndpoint
