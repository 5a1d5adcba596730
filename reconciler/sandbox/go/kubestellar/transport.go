package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	transport "github.com/kubestellar/kubestellar/pkg/transport/cmd"
)

// runTransport carries the objects of each binding to the clusters' namespaces of the transport space.
func runTransport(ready func()) {
	ready()
	transport.GenericMain(manifestWorks{})
}

type manifestWorks struct{}

func (manifestWorks) WrapObjects(objects []*unstructured.Unstructured) runtime.Object {
	manifests := make([]workv1.Manifest, 0, len(objects))
	for _, object := range objects {
		manifests = append(manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Object: object}})
	}
	return &workv1.ManifestWork{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.SchemeGroupVersion.String(), Kind: "ManifestWork"},
		Spec:     workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: manifests}},
	}
}
