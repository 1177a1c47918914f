from pathlib import Path

import pytest

from brokers.access import Login, TlsFiles, read_login
from pipeline.errors import InputError
from pipeline.secrets import Secret, SecretSetting
from tests.certificates import Authority, Certificate

PASSWORD = "of the key"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority in a separate folder."""
    return Authority(tmp_path_factory.mktemp("access") / "authority", "ours")


@pytest.fixture(scope="module")
def client(authority: Authority) -> Certificate:
    """A certificate whose key has a password."""
    return authority.sign("client", PASSWORD)


def files(
    ca: Path | str = "", certificate: Path | str = "", key: Path | str = "", password: str = ""
) -> TlsFiles:
    """The settings of one server."""
    setting = SecretSetting(password, "kafka.tls.key_password")
    return TlsFiles("kafka", str(ca), str(certificate), str(key), setting)


def test_certificate_key_and_authority_are_read(authority: Authority, client: Certificate) -> None:
    """Contents of the files, and an SSL context for Python."""
    tls = files(authority.ca, client.certificate, client.key, PASSWORD).read()
    assert tls.ca is not None
    assert tls.ca.text == authority.ca.read_text()
    assert tls.identity is not None
    assert tls.identity.key_password == Secret(PASSWORD)
    assert tls.context().check_hostname


def test_secrets_are_not_in_the_representation(authority: Authority, client: Certificate) -> None:
    """A private key may be part of the contents."""
    printed = repr(files(authority.ca, client.certificate, client.key, PASSWORD).read())
    assert "BEGIN" not in printed
    assert PASSWORD not in printed


def test_an_authority_alone_is_enough(authority: Authority) -> None:
    """Most servers require no client certificate."""
    assert files(authority.ca).read().identity is None


def test_inconsistent_settings_are_refused_with_their_names(
    authority: Authority, client: Certificate, tmp_path: Path
) -> None:
    """Before a connection: which setting, what is wrong, and no secret."""
    other = authority.sign("other")
    binary, old = tmp_path / "binary", tmp_path / "old.pem"
    binary.write_bytes(b"\xff\xfe")
    old.write_text("-----BEGIN EC PRIVATE KEY-----\n")
    cases = [
        (files(tmp_path / "none"), "kafka.tls.ca", "cannot be read"),
        (files(binary), "kafka.tls.ca", "not in PEM format"),
        (files(client.key), "kafka.tls.ca", "holds no certificate"),
        (files(authority.ca, client.certificate), "kafka.tls", "kafka.tls.key is missing"),
        (files(key=client.key), "kafka.tls", "kafka.tls.certificate is missing"),
        (files(authority.ca, client.certificate, old), "kafka.tls.key", "PKCS #8"),
        (files(authority.ca, other.certificate, client.key, PASSWORD), "kafka.tls.key", "not the"),
        (files(authority.ca, client.certificate, client.key, "wrong"), "kafka.tls.key", "another"),
        (files(authority.ca, client.certificate, client.key), "kafka.tls.key", "another password"),
    ]
    for wrong, place, words in cases:
        with pytest.raises(InputError) as caught:
            wrong.read()
        assert caught.value.place == place
        assert words in caught.value.message
        assert PASSWORD not in str(caught.value)


def test_credentials_are_a_name_and_a_password() -> None:
    """Neither, or both."""
    assert read_login("zookeeper", "", SecretSetting()) is None
    assert read_login("zookeeper", "me", SecretSetting("x")) == Login("me", Secret("x"))
    with pytest.raises(InputError, match=r"zookeeper\.password is missing"):
        read_login("zookeeper", "me", SecretSetting())
    with pytest.raises(InputError, match=r"zookeeper\.user is missing"):
        read_login("zookeeper", "", SecretSetting("x"))
