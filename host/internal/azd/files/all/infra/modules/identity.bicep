// The identity that the program has. It may read and write blobs and messages of the storage account, and pull the image.
// It is not the app's own: that would exist only after the app, too late to pull its image.

param location string
param tags object
param storageName string

@description('The queue of the alarm; empty: none, so nobody gets a role for messages.')
param queueName string

@description('Registry of the image; empty: there is none.')
param registryName string = ''

@description('Whether the host of Functions keeps its own blobs in the account: it asks for the owner of blob data.')
param ownsBlobs bool = false

@description('Who deploys, and wakes the program up after that; empty: nobody.')
param deployerId string = ''
param deployerType string = 'User'

// https://learn.microsoft.com/azure/role-based-access-control/built-in-roles
var storageBlobDataContributor = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
var storageBlobDataOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
var storageQueueDataContributor = '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
var storageQueueDataMessageSender = 'c6a89b2d-59bc-44d0-9896-0f6e12d7b80a'
var acrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-${uniqueString(resourceGroup().id)}'
  location: location
  tags: tags
}

resource account 'Microsoft.Storage/storageAccounts@2024-01-01' existing = {
  name: storageName
}

resource data 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in concat([ownsBlobs ? storageBlobDataOwner : storageBlobDataContributor], empty(queueName) ? [] : [storageQueueDataContributor]): {
    name: guid(account.id, identity.id, role)
    scope: account
    properties: {
      principalId: identity.properties.principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

resource wake 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerId) && !empty(queueName)) {
  name: guid(account.id, deployerId, storageQueueDataMessageSender)
  scope: account
  properties: {
    principalId: deployerId
    principalType: deployerType
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', storageQueueDataMessageSender)
  }
}

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' existing = if (!empty(registryName)) {
  name: empty(registryName) ? 'none' : registryName
}

resource pull 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(registryName)) {
  name: guid(resourceGroup().id, identity.id, acrPull)
  scope: registry
  properties: {
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPull)
  }
}

output id string = identity.id
output clientId string = identity.properties.clientId
