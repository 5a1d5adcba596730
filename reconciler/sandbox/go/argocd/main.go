// Argo CD's plugin server, a client of it that sends a repository the way the repo-server does, and Argo CD's judgement of health.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	server "github.com/argoproj/argo-cd/v3/cmd/argocd-cmp-server/commands"
	"github.com/argoproj/argo-cd/v3/cmpserver/apiclient"
	"github.com/argoproj/argo-cd/v3/util/cmp"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const usage = `usage: argocd cmp-server ...
       argocd generate|parameters|match SECONDS SOCKET REPOSITORY FOLDER [NAME=VALUE ...]
       argocd health SCRIPT < OBJECT`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) > 0 && arguments[0] == "cmp-server":
		command := server.NewCommand()
		command.SetArgs(arguments[1:])
		return command.Execute()
	case len(arguments) == 2 && arguments[0] == "health":
		return judge(arguments[1])
	case len(arguments) >= 5:
		return ask(arguments[0], arguments[1], arguments[2], repository{arguments[3], arguments[4], arguments[5:]})
	}
	return fmt.Errorf(usage)
}

type repository struct {
	root, folder string
	environment  []string
}

type stream interface {
	cmp.StreamSender
	Context() context.Context
}

func (r repository) send(to stream) error {
	return cmp.SendRepoStream(to.Context(), r.folder, r.root, to, r.environment, []string{".git/*"})
}

func ask(what, deadline, socket string, files repository) error {
	patience, err := time.ParseDuration(deadline + "s")
	if err != nil {
		return err
	}
	connection, client, err := apiclient.NewConfigManagementPluginClientSet(socket).NewConfigManagementPluginClient()
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := answerOf(ctx, client, what, files)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

func answerOf(ctx context.Context, client apiclient.ConfigManagementPluginServiceClient, what string, files repository) (any, error) {
	switch what {
	case "generate":
		asked, err := client.GenerateManifest(ctx)
		if err != nil {
			return nil, err
		}
		if err := files.send(asked); err != nil {
			return nil, err
		}
		return asked.CloseAndRecv()
	case "parameters":
		asked, err := client.GetParametersAnnouncement(ctx)
		if err != nil {
			return nil, err
		}
		if err := files.send(asked); err != nil {
			return nil, err
		}
		return asked.CloseAndRecv()
	case "match":
		asked, err := client.MatchRepository(ctx)
		if err != nil {
			return nil, err
		}
		if err := files.send(asked); err != nil {
			return nil, err
		}
		return asked.CloseAndRecv()
	}
	return nil, fmt.Errorf(usage)
}

func judge(script string) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := json.NewDecoder(os.Stdin).Decode(&content); err != nil {
		return err
	}
	health, err := lua.VM{}.ExecuteHealthLua(&unstructured.Unstructured{Object: content}, string(text))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(health)
}
