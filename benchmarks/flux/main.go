// Applies a list of objects with Flux's apply library, as kustomize-controller does, and prints how many it changed.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const parallel = 16

func main() {
	if len(os.Args) != 4 {
		exit(fmt.Errorf("usage: flux KUBECONFIG CONTEXT LIST.json"))
	}
	manager, err := connect(os.Args[1], os.Args[2])
	exit(err)
	text, err := os.ReadFile(os.Args[3])
	exit(err)
	objects := read(text)
	changes, err := manager.ApplyAll(context.Background(), objects, ssa.DefaultApplyOptions())
	exit(err)
	changed := 0
	for _, entry := range changes.Entries {
		if entry.Action != ssa.UnchangedAction {
			changed++
		}
	}
	fmt.Printf("%d objects, %d changed\n", len(changes.Entries), changed)
}

func connect(kubeconfig, name string) (*ssa.ResourceManager, error) {
	loader := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		loader, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, err
	}
	access.QPS = -1 // the server decides how fast it goes, not the client
	kube, err := client.New(access, client.Options{})
	if err != nil {
		return nil, err
	}
	manager := ssa.NewResourceManager(kube, nil, ssa.Owner{Field: "kfleet", Group: "kfleet.dev"})
	manager.SetConcurrency(parallel)
	return manager, nil
}

func read(text []byte) []*unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	exit(list.UnmarshalJSON(text))
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for number := range list.Items {
		objects[number] = &list.Items[number]
	}
	return objects
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
