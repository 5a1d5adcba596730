"""Certificates, keys and kubeconfig files of the sandbox's control planes."""

import datetime as dt
import ipaddress
import subprocess
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reconciler.errors import SandboxError
from reconciler.sandbox.programs import PROGRAMS
from reconciler.sandbox.state import SandboxCluster, SandboxState

LIFETIME = dt.timedelta(days=3650)
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM text."""

    certificate: str
    key: str


def make_authority(name: str, *, is_rsa: bool = False) -> Pair:
    key = _new_key(is_rsa=is_rsa)
    subject = _name(name)
    certificate = (
        _unsigned(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(is_authority=True), critical=True)
        # Kueue keeps a CA that it finds only if it carries its own name as a host name.
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def make_server_pair(authority: Pair, *names: str, is_rsa: bool = False) -> Pair:
    """A serving certificate for host names and addresses."""
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
    return _signed(authority, _name(names[0]), ExtendedKeyUsageOID.SERVER_AUTH, alternatives, is_rsa=is_rsa)


def make_client_pair(authority: Pair, user: str, group: str) -> Pair:
    """A certificate that logs in as a user of a group."""
    return _signed(authority, _name(user, group), ExtendedKeyUsageOID.CLIENT_AUTH, None)


def make_signing_key() -> str:
    """The key that signs service account tokens."""
    return _key_text(_new_key(is_rsa=False))


def _signed(
    authority: Pair,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    alternatives: x509.SubjectAlternativeName | None,
    *,
    is_rsa: bool = False,
) -> Pair:
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    issuer_key = serialization.load_pem_private_key(authority.key.encode(), None)
    if not isinstance(issuer_key, PrivateKey):
        raise TypeError(type(issuer_key))
    key = _new_key(is_rsa=is_rsa)
    builder = (
        _unsigned(subject, issuer.subject, key)
        .add_extension(_key_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    )
    if alternatives:
        builder = builder.add_extension(alternatives, critical=False)
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def _unsigned(subject: x509.Name, issuer: x509.Name, key: PrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour back, so that a clock that is corrected meanwhile does not make it invalid.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organisation:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _new_key(*, is_rsa: bool) -> PrivateKey:
    if is_rsa:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def _pair(certificate: x509.Certificate, key: PrivateKey) -> Pair:
    return Pair(certificate.public_bytes(serialization.Encoding.PEM).decode(), _key_text(key))


def _key_text(key: PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


def write_kubeconfig(path: Path, clusters: Iterable[SandboxCluster]) -> None:
    """Written whole or not at all: clients read it while parts of the sandbox come and go."""
    partial = path.with_suffix(".partial")
    partial.touch(mode=0o600)
    partial.write_text(kubeconfig_text(clusters))
    partial.rename(path)


def kubeconfig_text(clusters: Iterable[SandboxCluster]) -> str:
    """One context per cluster, named as the cluster; the first is the current one."""
    known = tuple(clusters)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": known[0].name if known else "",
        "clusters": [{"name": entry.name, "cluster": _server(entry)} for entry in known],
        "users": [{"name": entry.name, "user": _user(entry)} for entry in known],
        "contexts": [{"name": entry.name, "context": _context(entry)} for entry in known],
    }
    return yaml.safe_dump(content, sort_keys=False)


def _server(cluster: SandboxCluster) -> dict[str, Any]:
    return {"server": cluster.access.server, "certificate-authority-data": _encoded(cluster.access.ca)}


def _user(cluster: SandboxCluster) -> dict[str, Any]:
    return {"token": cluster.access.token}


def _context(cluster: SandboxCluster) -> dict[str, Any]:
    return {"cluster": str(cluster.name), "user": str(cluster.name), "namespace": "default"}


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def kubectl_command(state: SandboxState, cluster: str, *arguments: str) -> list[str]:
    context = state.cluster(cluster).name
    options = (f"--kubeconfig={state.kubeconfig}", f"--context={context}")
    return [str(PROGRAMS["kubernetes"].binary), "kubectl", *options, *arguments]


def kubectl(state: SandboxState, cluster: str, *arguments: str) -> str:
    """Run one kubectl command and return what it printed."""
    answer = subprocess.run(
        kubectl_command(state, cluster, *arguments), capture_output=True, text=True, check=False, cwd=Path("/")
    )
    if answer.returncode != 0:
        raise SandboxError(f"{cluster}: kubectl {' '.join(arguments)}", answer.stderr.strip())
    return answer.stdout
