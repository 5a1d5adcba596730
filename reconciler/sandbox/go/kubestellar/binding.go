package main

import (
	"context"
	"flag"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubestellar/kubestellar/pkg/binding"
	"github.com/kubestellar/kubestellar/pkg/status"
)

const workers = 4

// runBinding resolves policies into bindings and brings returned status back to the workload objects.
func runBinding(ready func()) {
	wdsFile := flag.String("wds-kubeconfig", "", "kubeconfig of the workload description space")
	itsFile := flag.String("its-kubeconfig", "", "kubeconfig of the inventory and transport space")
	wdsName := flag.String("wds-name", "", "name of the workload description space")
	klog.InitFlags(nil)
	flag.Parse()
	ctrl.SetLogger(klog.Background())

	ctx := context.Background()
	wds, its := restConfig(*wdsFile), restConfig(*itsFile)
	bindings, err := binding.NewController(klog.Background(), wds, its, *wdsName, nil)
	exitOn(err, "cannot make the binding controller")
	exitOn(bindings.EnsureCRDs(ctx), "cannot install the CRDs")
	exitOn(bindings.AppendKSResources(ctx), "cannot discover the installed CRDs")
	listers := make(chan interface{}, 1)
	statuses, err := status.NewController(wds, its, *wdsName)
	exitOn(err, "cannot make the status controller")
	// Each Start waits three seconds for an error; the second gets its listers from the first.
	go func() { exitOn(bindings.Start(ctx, workers, listers), "cannot start the binding controller") }()
	exitOn(statuses.Start(ctx, workers, listers), "cannot start the status controller")
	ready()
	<-ctrl.SetupSignalHandler().Done()
}

func restConfig(path string) *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	exitOn(err, "cannot read the kubeconfig "+path)
	return config
}
