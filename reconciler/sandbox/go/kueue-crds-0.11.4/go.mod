module kfleet.dev/sandbox/kueue-crds

go 1.26.0

require sigs.k8s.io/kueue v0.11.4
