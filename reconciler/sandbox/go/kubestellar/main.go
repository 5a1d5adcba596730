// KubeStellar's controllers of one workload description space, a sub-command each.
//
// Both talk to the spaces by kubeconfig files instead of looking for KubeFlex control planes. Neither listens on a port,
// so a health endpoint of our own says that they run.
package main

import (
	"fmt"
	"net/http"
	"os"

	"k8s.io/klog/v2"
)

var parts = map[string]func(ready func()){
	"binding":   runBinding,
	"transport": runTransport,
}

func main() {
	if len(os.Args) < 3 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kubestellar binding|transport HEALTH-ADDRESS ...")
		os.Exit(2)
	}
	run, address := parts[os.Args[1]], os.Args[2]
	os.Args = append(os.Args[:1], os.Args[3:]...)
	run(func() { serveHealth(address) })
}

func serveHealth(address string) {
	http.HandleFunc("/readyz", func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusOK) })
	go func() { exitOn(http.ListenAndServe(address, nil), "health endpoint ended") }()
}

func exitOn(err error, message string) {
	if err != nil {
		klog.ErrorS(err, message)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}
