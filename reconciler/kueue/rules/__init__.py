"""Errors that the API server or Kueue's webhooks would report, found before they are contacted.

Exact on purpose: these rules reject what the server rejects, and nothing else, for server-side apply to an object that
may already exist. A plain create accepts more (it drops fields without a value, and the webhook of a new ClusterQueue
sets a missing quota), but the next change of such an object would be rejected. Advice that no server gives belongs to
the lint of the whole fleet.
"""
