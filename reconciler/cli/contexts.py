"""The contexts of a kubeconfig that a command reads, for commands that work without a fleet."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from reconciler.cli.init_contexts import Contexts, cluster_names, instead, one_per_cluster, read_contexts
from reconciler.errors import KfleetError
from reconciler.objects import ClusterName
from reconciler.text import quote_value

MANAGER = "manager"


def context_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--cluster-timeout",
            "timeout",
            type=click.FloatRange(min=0.1),
            default=10,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait for a response of a cluster.",
        ),
        click.option(
            "--kubeconfig",
            default="",
            metavar="FILE",
            help="File with the contexts. [default: $KUBECONFIG, or ~/.kube/config]",
        ),
        click.option("--context", "contexts", multiple=True, metavar="CONTEXT", help="Context to read; repeatable."),
    ):
        command = option(command)
    return command


def named_contexts(kubeconfig: str, contexts: Sequence[str]) -> Mapping[ClusterName, str]:
    """Return the contexts by the names that their clusters get in a fleet; without a choice, one per cluster."""
    known = read_contexts(kubeconfig)
    chosen = tuple(dict.fromkeys(contexts)) or one_per_cluster(known, [known.current] if known.current else [])
    _check(known, chosen)
    # In a fleet only the manager may be called manager, and cluster_names takes the first one for it.
    ordered = sorted(chosen, key=lambda context: context != MANAGER)
    return {ClusterName(name): context for name, context in zip(cluster_names(ordered), ordered, strict=True)}


def _check(known: Contexts, chosen: Sequence[str]) -> None:
    names = [context.name for context in known.known]
    problems = [
        KfleetError(f"--context: no context {quote_value(name)} in the kubeconfig{instead(name, names)}")
        for name in chosen
        if name not in names
    ]
    if problems:
        raise ExceptionGroup("options", problems)
