"""Brings a manifest into a shape in which a server can apply it, and take back later what is no longer in it."""

from base64 import b64encode
from collections.abc import Mapping

from reconciler.objects import Manifest


def applicable(manifest: Manifest) -> Manifest:
    return _without_empty_spec(_with_encoded_texts(manifest))


def _without_empty_spec(manifest: Manifest) -> Manifest:
    """A server that has to take the last field out of an empty spec makes null of it, and then refuses that."""
    if manifest.get("spec") != {}:
        return manifest
    return {name: value for name, value in manifest.items() if name != "spec"}


def _with_encoded_texts(manifest: Manifest) -> Manifest:
    """The server copies `stringData` of a Secret into `data`, where nobody owns it: a key would never go again."""
    texts = manifest.get("stringData")
    is_secret = (manifest["apiVersion"], manifest["kind"]) == ("v1", "Secret")
    if not is_secret or not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        return manifest
    encoded = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
    rest = {name: value for name, value in manifest.items() if name != "stringData"}
    return {**rest, "data": {**(manifest.get("data") or {}), **encoded}}
