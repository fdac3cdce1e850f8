// Alerts on what the program logs. Each looks at the last 15 minutes every 5, since lines take some minutes to get there.

param location string
param tags object
param workspaceId string

@description('Query that has the lines of the program, each parsed as `line`, with its `job`.')
param lines string

@description('Who gets a mail; empty: nobody, and the portal shows the alerts.')
param email string = ''

var rules = [
  {
    name: 'run-failed'
    text: 'A run failed, stalled or was abandoned.'
    severity: 2
    where: 'where tostring(line.event) == "run.ended" and tostring(line.level) == "WARN" and tostring(line.outcome) in ("failed", "stalled", "abandoned")'
  }
  {
    name: 'tick-not-run'
    text: 'A tick was missed, or the replica that ran it died.'
    severity: 2
    where: 'where tostring(line.event) == "tick.settled" and tostring(line.level) == "WARN" and tostring(line.outcome) in ("missed", "abandoned")'
  }
  {
    name: 'error'
    text: 'The program logs an error: it is stuck, or the storage refuses it.'
    severity: 1
    where: 'where tostring(line.level) == "ERROR"'
  }
]

resource mail 'Microsoft.Insights/actionGroups@2023-01-01' = if (!empty(email)) {
  name: 'mail-${uniqueString(resourceGroup().id)}'
  location: 'global'
  tags: tags
  properties: {
    enabled: true
    groupShortName: 'jobs'
    emailReceivers: [
      {
        name: 'operator'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

resource alerts 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [
  for rule in rules: {
    name: '${rule.name}-${uniqueString(resourceGroup().id)}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: rule.name
      description: rule.text
      severity: rule.severity
      enabled: true
      scopes: [
        workspaceId
      ]
      // The table is made with the first line that is logged.
      skipQueryValidation: true
      evaluationFrequency: 'PT5M'
      windowSize: 'PT15M'
      criteria: {
        allOf: [
          {
            query: '${lines} | ${rule.where}'
            timeAggregation: 'Count'
            dimensions: [
              {
                name: 'job'
                operator: 'Include'
                values: [
                  '*'
                ]
              }
            ]
            operator: 'GreaterThan'
            threshold: 0
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      autoMitigate: true
      actions: {
        actionGroups: empty(email) ? [] : [
          mail.id
        ]
      }
    }
  }
]
