// The program as two jobs of Container Apps: one that the alarm starts, and one a day as the net under it. Both make one pass
// with `tick` and end.

param environmentName string
param location string = resourceGroup().location

@description('The image, which azd has pushed.')
param image string

@maxLength(18)
param resourceName string

@description('Name of the records: programs of one name share their ticks.')
param app string

@description('Seconds in which a pass ends.')
param tickTimeout int

param queueName string
param environmentId string
param registryServer string
param identityId string
param identityClientId string
param storageName string
param storageUrl string

// The platform counts from before the container's start, and the program ends a pass itself.
var replicaTimeout = tickTimeout + 120

var env = [
  {
    name: 'SOLOIST_APP'
    value: app
  }
  {
    name: 'SOLOIST_STORAGE'
    value: storageUrl
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
    // Less than the 30 s between SIGTERM and SIGKILL, which cannot be changed for a job.
    name: 'SOLOIST_GRACE'
    value: '20s'
  }
  {
    // Before that a pass leaves the rest to the next one.
    name: 'SOLOIST_TICK_TIMEOUT'
    value: '${tickTimeout}s'
  }
  {
    name: 'AZURE_CLIENT_ID'
    value: identityClientId
  }
  {
    name: 'AZURE_TOKEN_CREDENTIALS'
    value: 'ManagedIdentityCredential'
  }
]

resource jobs 'Microsoft.App/jobs@2025-01-01' = {
  name: resourceName
  location: location
  tags: {
    'azd-env-name': environmentName
    'azd-service-name': 'jobs'
  }
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    environmentId: environmentId
    configuration: {
      triggerType: 'Event'
      eventTriggerConfig: {
        parallelism: 1
        replicaCompletionCount: 1
        scale: {
          minExecutions: 0
          // A second one would find each tick taken.
          maxExecutions: 1
          pollingInterval: 30
          rules: [
            {
              name: 'alarm'
              type: 'azure-queue'
              identity: identityId
              metadata: {
                accountName: storageName
                queueName: queueName
                queueLength: '1'
                // A message that is still hidden is an alarm that is set, not one that rings.
                queueLengthStrategy: 'visibleonly'
              }
            }
          ]
        }
      }
      replicaTimeout: replicaTimeout
      // The program counts tries itself.
      replicaRetryLimit: 0
      registries: [
        {
          server: registryServer
          identity: identityId
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'jobs'
          image: image
          args: [
            'tick'
          ]
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
          env: env
        }
      ]
    }
  }
}

// The net: once a day, in case that a message was lost.
resource daily 'Microsoft.App/jobs@2025-01-01' = {
  name: '${resourceName}-daily'
  location: location
  tags: {
    'azd-env-name': environmentName
  }
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    environmentId: environmentId
    configuration: {
      triggerType: 'Schedule'
      scheduleTriggerConfig: {
        cronExpression: '7 3 * * *'
        parallelism: 1
        replicaCompletionCount: 1
      }
      replicaTimeout: replicaTimeout
      // The program counts tries itself.
      replicaRetryLimit: 0
      registries: [
        {
          server: registryServer
          identity: identityId
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'jobs'
          image: image
          args: [
            'tick'
          ]
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
          env: env
        }
      ]
    }
  }
}
