"""`kfleet render`: the objects of each cluster."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import yaml

from reconciler.cli.options import load_or_stop, read_recording, recorded_capacity, snapshot_option, source_options
from reconciler.errors import EdgeError, ExitCode
from reconciler.objects import ClusterName, Manifest, ref_of
from reconciler.pipeline.load import Source
from reconciler.pipeline.render import Rendered, find_gaps, find_unobserved, render_offline, write_offline
from reconciler.skypilot.render import configuration_text
from reconciler.spec.model import FleetSpec

FOLDER = "dir="
INDEX = ".kfleet-render"
OBSERVE_HINT = "record one with kfleet snapshot --out FILE, and pass it with --snapshot FILE"

_MISREAD = re.compile(r"[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+]?0[oxbOXB][0-9a-fA-F_]+|[yYnN]")

Manifests = Mapping[ClusterName, Sequence[Manifest]]


@click.command()
@source_options
@snapshot_option
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
def render(source: Source, snapshot: str | None, cluster: str, output: str, team: str) -> int:
    """Print the Kubernetes objects of each cluster, in the API version that its Kueue serves.

    Contacts no cluster: the version of Kueue is the one in the Cluster's spec, or the newest. A queue whose quota
    depends on a capacity that has to be observed is left out with an error, and the command exits with 4;
    --snapshot supplies recorded values.

    \b
    Examples:
      kfleet render --cluster hub | kubectl --context hub diff -f -
      kfleet render --overlay prod -o dir=out
      kfleet render --skypilot team1 > config.yaml
    """
    if team:
        click.echo(_server_configuration(load_or_stop(source).spec, team), nl=False)
        return 0
    if output not in {"yaml", "json"} and not (output.startswith(FOLDER) and output != FOLDER):
        raise click.BadParameter(f"{output!r} is not one of yaml, json, dir=OUT", param_hint="--output")
    rendered = render_offline(load_or_stop(source), recorded_capacity(read_recording(snapshot)))
    chosen = _chosen(rendered, cluster)
    for gap in find_gaps(rendered, chosen):
        click.secho(f"gap: {gap}", fg="yellow", err=True)
    unobserved = find_unobserved(rendered, chosen)
    for entry in unobserved:
        click.secho(f"error: {entry}; it is left out ({OBSERVE_HINT})", fg="red", err=True)
    if unobserved and output.startswith(FOLDER):
        raise EdgeError(
            output.removeprefix(FOLDER), "nothing is written: a folder without these objects reads as a delete"
        )
    manifests = {name: write_offline(rendered, name) for name in chosen}
    if output == "yaml":
        click.echo(_yaml_text(manifests), nl=False)
    elif output == "json":
        click.echo(_json_text(manifests))
    else:
        _write_folder(Path(output.removeprefix(FOLDER)), manifests)
    return ExitCode.INCOMPLETE if unobserved or find_gaps(rendered, chosen) else ExitCode.OK


def _server_configuration(spec: FleetSpec, team: str) -> str:
    """Print the bare file, which `helm --set-file apiService.config=…` expects."""
    teams = {tenant.name: tenant for tenant in spec.tenants if tenant.skypilot}
    if team not in teams:
        known = ", ".join(teams) or "none; add skypilot: {} to a Tenant"
        raise click.BadParameter(f"no team {team!r} uses SkyPilot; teams that do: {known}", param_hint="--skypilot")
    return configuration_text(teams[team])


def _chosen(rendered: Rendered, cluster: str) -> list[ClusterName]:
    names = [entry.name for entry in rendered.spec.clusters]
    if cluster and cluster not in names:
        raise click.BadParameter(f"no cluster {cluster!r}; there are: {', '.join(names)}", param_hint="--cluster")
    return [ClusterName(cluster)] if cluster else names


def _yaml_text(objects_of: Manifests) -> str:
    return "".join(
        f"---\n# {ref_of(cluster, manifest)}\n{_document(manifest)}"
        for cluster, manifests in objects_of.items()
        for manifest in manifests
    )


class _Dumper(yaml.CSafeDumper):
    """Quotes strings that kubectl would read as something else: it accepts more forms of numbers than PyYAML."""


def _quoted(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _MISREAD.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)


def _document(manifest: Manifest) -> str:
    text: str = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False)
    return text


def _json_text(objects_of: Manifests) -> str:
    """Return a List that kubectl accepts for one cluster, or the clusters with their objects for several."""
    if len(objects_of) == 1:
        content: object = {"apiVersion": "v1", "kind": "List", "items": list(*objects_of.values())}
    else:
        content = {"clusters": [{"name": name, "objects": list(objects)} for name, objects in objects_of.items()]}
    return json.dumps(content, indent=2)


def _write_folder(folder: Path, objects_of: Manifests) -> None:
    """Write one file per object. Delete the files that an earlier render listed; refuse a folder it did not write."""
    files = {
        name: _document(manifest)
        for cluster, manifests in objects_of.items()
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
    click.echo(f"{folder}: {len(files)} objects of {len(objects_of)} clusters", err=True)


def _remove_earlier(folder: Path, wanted: set[str]) -> None:
    index = folder / INDEX
    if folder.is_dir() and any(folder.iterdir()) and not index.exists():
        raise EdgeError(str(folder), "is not empty and was not written by kfleet render", "choose an empty folder")
    known = index.read_text().splitlines() if index.exists() else []
    folder.mkdir(parents=True, exist_ok=True)
    # Write the list first: if the command is interrupted after this, the next render still knows all of its files.
    index.write_text("\n".join(sorted({*known, *wanted})))
    for name in set(known) - wanted:
        (folder / name).unlink(missing_ok=True)
    index.write_text("\n".join(sorted(wanted)))


def _file_names(cluster: ClusterName, manifests: Sequence[Manifest]) -> Mapping[str, Manifest]:
    """Return CLUSTER/[NAMESPACE/]KIND-NAME.yaml; the group is added if two kinds of the same name would collide."""
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
    """Return a text that is a valid file name on every system and cannot leave its folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".")
