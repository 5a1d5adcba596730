"""`kfleet render`: the objects that each cluster should hold."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import yaml

from reconciler.cli.observing import observations_option, read_observations
from reconciler.cli.source import compute_or_stop, source_options
from reconciler.desired.skypilot import configuration_text
from reconciler.errors import EdgeError
from reconciler.objects import ClusterName, Manifest, ref_of
from reconciler.pipeline.capacity import with_recorded
from reconciler.pipeline.offline import Computed, Source, write_offline

FOLDER = "dir="
INDEX = ".kfleet-render"
INCOMPLETE = 4

_MISREAD = re.compile(r"[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+]?0[oxbOXB][0-9a-fA-F_]+|[yYnN]")

Rendered = Mapping[ClusterName, Sequence[Manifest]]


@click.command()
@source_options
@observations_option
@click.option("--cluster", default="", metavar="NAME", help="Only this cluster. [default: all]")
@click.option(
    "-o",
    "--output",
    default="yaml",
    show_default=True,
    metavar="yaml|json|dir=OUT",
    help="dir=OUT writes one file per object, OUT/CLUSTER/[NAMESPACE/]KIND-NAME.yaml.",
)
@click.option("--skypilot", "team", default="", metavar="TEAM", help="Only the config of this team's SkyPilot server.")
def render(source: Source, observations: str | None, cluster: str, output: str, team: str) -> int:
    """Print the Kubernetes objects of each cluster, in the API version that its Kueue serves.

    Asks no cluster: the version of Kueue is what the spec says of the cluster, or the newest. Exits with 4 when a
    capacity would have to be observed to know every quota; --observations says what was observed.

    \b
    Examples:
      kfleet render --cluster hub | kubectl --context hub diff -f -
      kfleet render --overlay prod -o dir=out
      kfleet render --skypilot team1 > config.yaml
    """
    if team:
        click.echo(_server_configuration(compute_or_stop(source), team), nl=False)
        return 0
    if output not in {"yaml", "json"} and not (output.startswith(FOLDER) and output != FOLDER):
        raise click.BadParameter(f"{output!r} is none of yaml, json, dir=OUT", param_hint="--output")
    computed = with_recorded(compute_or_stop(source), read_observations(observations))
    for gap in computed.desired.gaps:
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    rendered = {name: write_offline(computed, name) for name in _chosen(computed, cluster)}
    if output == "yaml":
        click.echo(_yaml_text(rendered), nl=False)
    elif output == "json":
        click.echo(_json_text(rendered))
    else:
        _write_folder(Path(output.removeprefix(FOLDER)), rendered)
    return INCOMPLETE if computed.desired.gaps else 0


def _server_configuration(computed: Computed, team: str) -> str:
    """For `helm --set-file apiService.config=…`, which wants the bare file."""
    teams = {tenant.name: tenant for tenant in computed.spec.tenants if tenant.skypilot}
    if team not in teams:
        known = ", ".join(teams) or "none; a Tenant with skypilot: {} is one"
        raise click.BadParameter(f"no team {team!r} uses SkyPilot; those that do: {known}", param_hint="--skypilot")
    return configuration_text(teams[team])


def _chosen(computed: Computed, cluster: str) -> list[ClusterName]:
    names = [entry.name for entry in computed.spec.clusters]
    if cluster and cluster not in names:
        raise click.BadParameter(f"no cluster {cluster!r}; there are: {', '.join(names)}", param_hint="--cluster")
    return [ClusterName(cluster)] if cluster else names


def _yaml_text(rendered: Rendered) -> str:
    return "".join(
        f"---\n# {ref_of(cluster, manifest)}\n{_document(manifest)}"
        for cluster, manifests in rendered.items()
        for manifest in manifests
    )


class _Dumper(yaml.CSafeDumper):
    """Quotes texts that kubectl would read as something else: it knows more forms of numbers than PyYAML does."""


def _quoted(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _MISREAD.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)


def _document(manifest: Manifest) -> str:
    text: str = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False)
    return text


def _json_text(rendered: Rendered) -> str:
    """A List that kubectl takes, for one cluster; clusters with their objects, for several."""
    if len(rendered) == 1:
        content: object = {"apiVersion": "v1", "kind": "List", "items": list(*rendered.values())}
    else:
        content = {"clusters": [{"name": name, "objects": list(objects)} for name, objects in rendered.items()]}
    return json.dumps(content, indent=2)


def _write_folder(folder: Path, rendered: Rendered) -> None:
    """One file per object. Files of an earlier render go, by its own list; a folder of somebody else is refused."""
    files = {
        name: _document(manifest)
        for cluster, manifests in rendered.items()
        for name, manifest in _file_names(cluster, manifests).items()
    }
    try:
        _remove_earlier(folder, set(files))
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError as error:
        raise EdgeError(str(folder), f"cannot write: {error.strerror}") from error
    click.echo(f"{folder}: {len(files)} objects of {len(rendered)} clusters", err=True)


def _remove_earlier(folder: Path, wanted: set[str]) -> None:
    index = folder / INDEX
    if folder.is_dir() and any(folder.iterdir()) and not index.exists():
        raise EdgeError(str(folder), "is not empty and was not written by kfleet render", "choose an empty folder")
    known = index.read_text().splitlines() if index.exists() else []
    folder.mkdir(parents=True, exist_ok=True)
    # The list first: whatever is interrupted after this, the next render knows every file as its own.
    index.write_text("\n".join(sorted({*known, *wanted})))
    for name in set(known) - wanted:
        (folder / name).unlink(missing_ok=True)
    index.write_text("\n".join(sorted(wanted)))


def _file_names(cluster: ClusterName, manifests: Sequence[Manifest]) -> Mapping[str, Manifest]:
    """CLUSTER/[NAMESPACE/]KIND-NAME.yaml; the group joins in where two kinds of one name would meet."""
    named: dict[str, Manifest] = {}
    for manifest in manifests:
        ref = ref_of(cluster, manifest)
        folder = "/".join(_plain(part) for part in (ref.cluster, ref.namespace) if part)
        name = f"{folder}/{_plain(f'{ref.kind.lower()}-{ref.name}')}.yaml"
        if name in named:
            name = f"{folder}/{_plain(f'{ref.kind.lower()}.{ref.group}-{ref.name}')}.yaml"
        named[name] = manifest
    return named


def _plain(text: str) -> str:
    """A text that is a file name everywhere and never leaves its folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".")
