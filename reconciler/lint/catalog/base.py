"""The small fleet that the examples of rules stand in."""

BASE = """\
kind: Fleet
metadata: {name: example}
---
kind: Cluster
metadata: {name: hub}
spec: {role: manager}
---
kind: Cluster
metadata: {name: east, labels: {site: cnaf}}
spec: {role: worker}
---
kind: Flavor
metadata: {name: cpu}
spec:
  nodeLabels: {pool: cpu}
  capacity: {source: static, resources: {cpu: 100, memory: 1Ti}}
---
kind: Queue
metadata: {name: research}
spec:
  quota:
  - flavor: cpu
    resources: {cpu: 50%, memory: 50%}
---
kind: Tenant
metadata: {name: astro}
spec: {namespaces: [astro], queue: research}
"""
