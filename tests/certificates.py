"""Certificates for the servers of a test: a certificate authority and its certificates."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

LOOPBACK = "127.0.0.1"
VALID = dt.timedelta(days=2)


@dataclass(frozen=True)
class Certificate:
    """Files in PEM format; `both` contains the key and the certificate, as Java servers need it."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """A certificate authority that writes into a folder; its own certificate is `ca`."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = _builder(self._name, self._name, self._key)
        signed = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(signed.public_bytes(Encoding.PEM))

    def sign(self, name: str, password: str = "", valid: dt.timedelta = VALID) -> Certificate:
        """A certificate for loopback, and its key, optionally encrypted by a password.

        Args:
            name: of the subject, and of the files.
            password: of the key.
            valid: from now on; less than nothing: it has expired.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
        builder = _builder(subject, self._name, key, valid).add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        protection = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)
        made = Certificate(
            *(self._folder / f"{name}.{what}.pem" for what in ("cert", "key", "all"))
        )
        made.certificate.write_bytes(certificate)
        made.key.write_bytes(private)
        made.both.write_bytes(private + certificate)
        return made


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid: dt.timedelta = VALID,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + valid)
    )
