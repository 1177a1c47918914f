"""Authentication settings of a server: credentials, trusted CAs, client certificate."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pipeline.errors import InputError
from pipeline.secrets import Secret, SecretSetting

_NO_PASSWORD: Final = Secret("")
_PLAIN_KEY: Final = "-----BEGIN PRIVATE KEY-----"
_ENCRYPTED_KEY: Final = "-----BEGIN ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials: user name and password."""

    user: str
    password: Secret


def read_login(server: str, user: str, password: SecretSetting) -> Login | None:
    """Read credentials from two settings; None if neither is set. `server` begins their names.

    Raises:
        InputError: one of them is missing, or the password cannot be resolved.
    """
    if not (user or password):
        return None
    for name, value in (("user", user), ("password", password)):
        if not value:
            raise InputError(
                f"{server}.{name} is missing",
                place="settings",
                hint=f"{server}.user and {server}.password go together.",
            )
    return Login(user, password.resolve())


@dataclass(frozen=True, slots=True)
class PemFile:
    """A PEM file and its content; the text may be a private key, so `repr` omits it."""

    path: Path
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """A client certificate and its private key."""

    certificate: PemFile
    key: PemFile
    key_password: Secret = _NO_PASSWORD


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings of a connection.

    Args:
        ca: the trusted CAs; None: those of this machine.
        identity: the client certificate; None: the client sends none.
    """

    ca: PemFile | None = None
    identity: Identity | None = None

    def context(self) -> ssl.SSLContext:
        """The SSL context for connections that Python makes; host names are checked.

        Raises:
            ssl.SSLError: a file has the wrong content, or the key's password is wrong.
        """
        context = ssl.create_default_context(cadata=self.ca.text if self.ca else None)
        if self.identity is not None:
            context.load_cert_chain(
                self.identity.certificate.path,
                self.identity.key.path,
                # Never None: OpenSSL would prompt on the terminal.
                self.identity.key_password.reveal,
            )
        return context


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """TLS settings of one server: paths, empty if not set. `server` begins their names."""

    server: str
    ca: str
    certificate: str
    key: str
    key_password: SecretSetting

    @property
    def any(self) -> bool:
        """Whether at least one of them is set."""
        return bool(self.ca or self.certificate or self.key or self.key_password)

    def read(self) -> Tls:
        """Read the files and check that key and certificate match.

        Raises:
            InputError: a file cannot be read or has the wrong content, or the certificate is set
                without its key or the key without its certificate.
        """
        ca = self._pem("ca", self.ca) if self.ca else None
        if ca is not None:
            self._check("ca", Tls(ca), f"{ca.path} holds no certificate")
        identity = self._identity()
        if identity is not None:
            self._check(
                "key",
                Tls(ca, identity),
                f"{identity.key.path} is not the key of {identity.certificate.path}, or it needs "
                f"another password",
            )
        return Tls(ca, identity)

    def _identity(self) -> Identity | None:
        if not (self.certificate or self.key or self.key_password):
            return None
        for one, name in ((self.certificate, "certificate"), (self.key, "key")):
            if not one:
                raise InputError(
                    f"{self.server}.tls.{name} is missing",
                    place=f"{self.server}.tls",
                    hint="a certificate and its key go together.",
                )
        password = self.key_password.resolve() if self.key_password else _NO_PASSWORD
        key = self._pem("key", self.key)
        if _PLAIN_KEY not in key.text and _ENCRYPTED_KEY not in key.text:
            raise InputError(
                f"{key.path} holds no private key in PKCS #8",
                place=f"{self.server}.tls.key",
                hint=f"`openssl pkcs8 -topk8 -in {key.path.name} -out NEW` writes it so; add "
                "-nocrypt for one without a password.",
            )
        return Identity(self._pem("certificate", self.certificate), key, password)

    def _pem(self, name: str, path: str) -> PemFile:
        place = f"{self.server}.tls.{name}"
        try:
            return PemFile(Path(path), Path(path).read_text(encoding="ascii"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}", place=place) from error
        except UnicodeDecodeError:
            # Not `from`: the error of Python contains the bytes of the file.
            raise InputError(
                f"{path} is not in PEM format",
                place=place,
                hint="it is text that begins with -----BEGIN.",
            ) from None

    def _check(self, name: str, tls: Tls, words: str) -> None:
        try:
            tls.context()
        except (ssl.SSLError, ValueError) as error:
            raise InputError(
                words,
                place=f"{self.server}.tls.{name}",
                hint="the files are in PEM format: text that begins with -----BEGIN.",
            ) from error
