"""Files of keys: a participant's private key, and the public keys of partners it has confirmed.

<folder>/alice.key         private key, PEM, readable by its owner only
<folder>/alice.key.next    one that is being put in its place
<folder>/known_keys        one line for each partner: name and public key
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.contracts.documents.keys import (
    PrivateKey,
    PublicKey,
    check_public,
    key_from_pem,
)
from pipeline.contracts.terms import PartyId
from pipeline.errors import EnvironmentProblem, RefusedError

_OWNER_ONLY: Final = 0o600
_FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
_KNOWN: Final = "known_keys"


@dataclass(frozen=True, slots=True)
class KeyFolder:
    """Folder of keys."""

    path: Path

    def private(self, party: PartyId, public: PublicKey) -> PrivateKey | None:
        """The private key that belongs to a public one; None: it is not here.

        Completes a change of the key that was interrupted.

        Raises:
            RefusedError: others can read the file, or it holds no key.
        """
        current, following = self.current(party), self._read(self._next(party))
        if following is not None and following.public == public:
            self.install(party)
            return following
        return current if current is not None and current.public == public else None

    def current(self, party: PartyId) -> PrivateKey | None:
        """The private key of a participant; None: there is no file."""
        return self._read(self.file(party))

    def following(self, party: PartyId) -> PrivateKey | None:
        """The private key of a change that was begun; None: none was."""
        return self._read(self._next(party))

    def file(self, party: PartyId) -> Path:
        """The file of a participant's private key."""
        return self.path / f"{party}.key"

    def create(self, party: PartyId, key: PrivateKey) -> None:
        """Write a first private key; never replaces a file."""
        self._write_new(self.file(party), key.pem())

    def prepare(self, party: PartyId, key: PrivateKey) -> None:
        """Write the private key that `install` puts in the place of the present one."""
        self._write_new(self._next(party), key.pem())

    def install(self, party: PartyId) -> None:
        """Put the prepared key in the place of the present one, which is removed."""
        try:
            self._next(party).replace(self.file(party))
        except OSError as error:
            raise self._problem(error) from error

    def known(self) -> dict[PartyId, PublicKey]:
        """The confirmed keys of partners.

        Raises:
            RefusedError: a line is not a name and a key.
        """
        path = self.path / _KNOWN
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedError(f"the file cannot be read: {error}", place=str(path)) from error
        found: dict[PartyId, PublicKey] = {}
        for number, line in enumerate(lines, start=1):
            party, _, key = line.partition(" ")
            found[PartyId(party)] = check_public(key, f"{path}, line {number}")
        return found

    def remember(self, party: PartyId, public: PublicKey) -> None:
        """Confirm the key of a partner, in the place of an earlier one."""
        known = {**self.known(), party: public}
        text = "".join(f"{name} {key}\n" for name, key in sorted(known.items()))
        path = self.path / _KNOWN
        following = path.with_suffix(".next")
        following.unlink(missing_ok=True)
        self._write_new(following, text.encode())
        following.replace(path)

    def _next(self, party: PartyId) -> Path:
        return self.path / f"{party}.key.next"

    def _read(self, path: Path) -> PrivateKey | None:
        try:
            with path.open("rb") as file:
                mode, pem = os.fstat(file.fileno()).st_mode, file.read(10_000)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._problem(error) from error
        if mode & _OTHERS:
            raise RefusedError(
                "others can read or write this private key",
                place=str(path),
                hint=f"`chmod 600 {path}`; if others may have read it, "
                "`medusa participant key rotate --revoke`.",
            )
        return key_from_pem(pem, str(path))

    def _write_new(self, path: Path, content: bytes) -> None:
        try:
            self.path.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(path, flags, _OWNER_ONLY), "wb") as file:  # noqa: PTH123 - a number
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError as error:
            raise RefusedError(
                "this file exists already; private keys are never overwritten", place=str(path)
            ) from error
        except OSError as error:
            raise self._problem(error) from error

    def _problem(self, error: OSError) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"keys cannot be read or written: {error.strerror}",
            place=str(self.path),
            hint="the setting `keys` (MEDUSA_KEYS) names the folder.",
        )
