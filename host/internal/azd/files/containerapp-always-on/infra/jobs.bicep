// The program as a container app whose replicas are up all the time.

param environmentName string
param location string = resourceGroup().location

@description('The image, which azd has pushed.')
param image string

@maxLength(18)
param resourceName string

@description('Name of the records: programs of one name share their ticks.')
param app string

param environmentId string
param registryServer string
param identityId string
param identityClientId string
param storageUrl string

resource jobs 'Microsoft.App/containerApps@2025-01-01' = {
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
      activeRevisionsMode: 'Single'
      registries: [
        {
          server: registryServer
          identity: identityId
        }
      ]
    }
    template: {
      // More than SOLOIST_GRACE: outcomes and leases are written after it.
      terminationGracePeriodSeconds: 45
      scale: {
        // At 0 nothing would wake the program up. With 2, the jobs of a replica that dies go on within their lease and two seconds.
        minReplicas: 2
        maxReplicas: 2
      }
      containers: [
        {
          name: 'jobs'
          image: image
          args: [
            'serve'
          ]
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
          env: [
            {
              name: 'SOLOIST_APP'
              value: app
            }
            {
              name: 'SOLOIST_STORAGE'
              value: storageUrl
            }
            {
              name: 'SOLOIST_GRACE'
              value: '25s'
            }
            {
              name: 'SOLOIST_ADDR'
              value: ':8080'
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
          probes: [
            {
              type: 'Startup'
              httpGet: {
                path: '/healthz'
                port: 8080
              }
              periodSeconds: 2
              timeoutSeconds: 5
              failureThreshold: 10
            }
            {
              // 503 until the storage has answered, so a revision that cannot reach it does not replace one that can.
              type: 'Readiness'
              httpGet: {
                path: '/readyz'
                port: 8080
              }
              periodSeconds: 10
              timeoutSeconds: 5
              failureThreshold: 3
            }
            {
              // 503 only where a restart helps.
              type: 'Liveness'
              httpGet: {
                path: '/healthz'
                port: 8080
              }
              periodSeconds: 10
              timeoutSeconds: 5
              failureThreshold: 3
            }
          ]
        }
      ]
    }
  }
}
