// The program as a custom handler on the Flex Consumption plan: no instance between two calls.

param location string
param environmentName string

@maxLength(18)
param resourceName string

@description('Name of the records: programs of one name share their ticks.')
param app string

param queueName string
param workspaceId string
param identityId string
param identityClientId string
param blobEndpoint string
param queueEndpoint string

@description('Blob container that azd deploys the program to.')
param packages string

@description('What a deployment, or a changed setting, does with runs: Recreate ends them, RollingUpdate lets them go on for an hour.')
param updateStrategy string

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: 'appi-${uniqueString(resourceGroup().id)}'
  location: location
  tags: {
    'azd-env-name': environmentName
  }
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspaceId
  }
}

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  name: 'plan-${uniqueString(resourceGroup().id)}'
  location: location
  tags: {
    'azd-env-name': environmentName
  }
  kind: 'functionapp'
  sku: {
    tier: 'FlexConsumption'
    name: 'FC1'
  }
  properties: {
    reserved: true
  }
}

resource site 'Microsoft.Web/sites@2024-04-01' = {
  // At most 32 characters: the host makes its id of the first 32.
  name: '${resourceName}-${uniqueString(resourceGroup().id)}'
  location: location
  tags: {
    'azd-env-name': environmentName
    'azd-service-name': 'jobs'
  }
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${blobEndpoint}${packages}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      siteUpdateStrategy: {
        type: updateStrategy
      }
      scaleAndConcurrency: {
        instanceMemoryMB: 512
        maximumInstanceCount: 40
      }
      runtime: {
        name: 'custom'
        version: '1.0'
      }
    }
    siteConfig: {
      minTlsVersion: '1.2'
      appSettings: [
        {
          name: 'AzureWebJobsStorage__blobServiceUri'
          value: blobEndpoint
        }
        {
          name: 'AzureWebJobsStorage__queueServiceUri'
          value: queueEndpoint
        }
        {
          name: 'AzureWebJobsStorage__credential'
          value: 'managedidentity'
        }
        {
          name: 'AzureWebJobsStorage__clientId'
          value: identityClientId
        }
        {
          name: 'APPLICATIONINSIGHTS_CONNECTION_STRING'
          value: insights.properties.ConnectionString
        }
        {
          name: 'SOLOIST_APP'
          value: app
        }
        {
          name: 'SOLOIST_ALARM'
          value: 'queue'
        }
        {
          name: 'SOLOIST_ALARM_QUEUE'
          value: queueName
        }
        {
          // The first message after zero may take two minutes until it is handed over.
          name: 'SOLOIST_ALARM_LEAD'
          value: '150s'
        }
        {
          name: 'SOLOIST_STAY'
          value: '180s'
        }
      ]
    }
  }
}
