"""Knowledge about Kueue, as pure functions over plain manifests: its kinds, versions, defaults, rules and arithmetic.

Everything uses one model, `kueue.x-k8s.io/v1beta2` as of Kueue 0.19. Other versions are converted on input (`upgrade`)
and on output (`write`), because a comparison across versions would find differences that are not real.
"""
