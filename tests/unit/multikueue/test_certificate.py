"""Client certificates by a library that makes them: kfleet reads until when they are valid."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reconciler.multikueue.certificate import certificate_end

START = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def certificate(end: datetime, names: int = 1) -> str:
    """`names` makes the issuer, which stands before the field, as long as wanted."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, f"user-{number}") for number in range(names)]
    name = x509.Name(attributes)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(START).not_valid_after(end)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize("end", [START + timedelta(days=365), datetime(2061, 1, 2, 3, 4, 5, tzinfo=UTC)])
@pytest.mark.parametrize("names", [1, 40])
def test_end_of_a_certificate_is_read(end: datetime, names: int) -> None:
    assert certificate_end(certificate(end, names)) == end


def test_end_of_the_first_certificate_of_a_chain_counts() -> None:
    first, second = START + timedelta(days=1), START + timedelta(days=9)
    assert certificate_end(certificate(first) + certificate(second)) == first


def test_end_of_other_text_is_unknown() -> None:
    whole = certificate(START + timedelta(days=1))
    for text in ("", "A", "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----", "é"):
        assert certificate_end(text) is None
    for length in range(len(whole)):
        certificate_end(whole[:length])
