"""What Kueue itself knows, as pure functions over plain manifests: its kinds, versions, defaults, rules and arithmetic.

Everything speaks one model, `kueue.x-k8s.io/v1beta2` as of Kueue 0.19. Other versions are translated on the way in
(`upgrade`) and on the way out (`write`), because a comparison across versions would find differences that are none.
"""
