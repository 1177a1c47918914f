from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.project import load_project
from pipeline.errors import DocumentError, InputError

Caller = Callable[..., Any]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_layers_in_order(tmp_path: Path) -> None:
    """Flag, environment, project file, user file, default: the first value is used."""
    user = tmp_path / "xdg"
    _write(user / "medusa" / "config.yaml", "participant: user\nnode: user\nspark: {memory: 2g}\n")
    _write(
        tmp_path / "p" / "medusa.yaml", "participant: file\nnode: file\nspark.master: local[3]\n"
    )
    project = load_project(
        {"participant": "flag"},
        {
            "XDG_CONFIG_HOME": str(user),
            "MEDUSA_PARTICIPANT": "env",
            "MEDUSA_SPARK_MASTER": "local[4]",
        },
        tmp_path / "p",
    )
    found = project.settings
    assert (found.participant, found.spark_master, found.node) == ("flag", "local[4]", "file")
    assert (found.spark_memory, found.registry_url) == ("2g", "http://127.0.0.1:8081")
    assert project.source("participant") == "flag"
    assert project.source("spark.master") == "environment"
    assert project.source("node").startswith("project file")
    assert project.source("spark.memory").startswith("user file")
    assert project.source("registry.url") == "default"


def test_project_file_is_found_upward_and_paths_begin_there(tmp_path: Path) -> None:
    """In a folder below the project, the data folder is that of the project."""
    _write(tmp_path / "medusa.yaml", "data: state\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    project = load_project({}, {"HOME": str(tmp_path)}, below)
    assert project.folder == tmp_path
    assert project.data == tmp_path / "state"
    assert project.settings.checkpoints == str(tmp_path / "state" / "checkpoints")


def test_checkpoints_are_no_uri(tmp_path: Path) -> None:
    """They are in a folder, which may be a mounted network folder."""
    with pytest.raises(InputError, match="a folder of this machine, or one that it has mounted"):
        load_project({}, {"MEDUSA_CHECKPOINTS": "s3a://bucket/x"}, tmp_path)


def test_unknown_setting_names_the_file_and_what_exists(tmp_path: Path) -> None:
    """The error for a mistyped setting lists the existing ones."""
    _write(tmp_path / "medusa.yaml", "kafka: {bootstrap: x}\n")
    with pytest.raises(DocumentError) as caught:
        load_project({}, {"HOME": str(tmp_path)}, tmp_path)
    problem = caught.value.problems[0]
    assert "kafka.bootstrap is not a setting" in problem.message
    assert problem.file.endswith("medusa.yaml")
    assert problem.line == 1
    assert "kafka.bootstrap_servers" in problem.choices


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "\x00"])
def test_a_file_that_is_no_settings_file_is_bad_input(tmp_path: Path, text: str) -> None:
    """Broken YAML and lists are errors that name the file."""
    _write(tmp_path / "medusa.yaml", text)
    with pytest.raises(InputError) as caught:
        load_project({}, {"HOME": str(tmp_path)}, tmp_path)
    assert "medusa.yaml" in str(caught.value)


def test_an_empty_settings_file_sets_nothing(tmp_path: Path) -> None:
    """Nor does one with comments only."""
    _write(tmp_path / "medusa.yaml", "# node: n1\n\n")
    project = load_project({}, {"HOME": str(tmp_path)}, tmp_path)
    assert (project.folder, project.settings.node) == (tmp_path, "node1")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.memory", "lots"), ("spark.memory", "1024"), ("participant", "a.b"), ("node", "../x")],
)
def test_the_error_for_an_invalid_value_names_its_source(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    """File and line, variable, or argument; it is not left to Java half a minute later."""
    assert medusa("config", "show", "--set", f"{setting}={value}").code == 64
    monkeypatch.setenv(f"MEDUSA_{setting.upper().replace('.', '_')}", value)
    by_variable = medusa("config", "show")
    assert by_variable.code == 65
    assert f"MEDUSA_{setting.upper().replace('.', '_')}: {setting} cannot be" in by_variable.err
    monkeypatch.delenv(f"MEDUSA_{setting.upper().replace('.', '_')}")
    Path("medusa.yaml").write_text(f"# mine\n{setting}: {value}\n", encoding="utf-8")
    in_file = medusa("config", "show")
    assert in_file.code == 65
    assert f"medusa.yaml:2: {setting} cannot be '{value}'" in in_file.err


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("kafka.bootstrap_servers", "a:b:c"),
        ("kafka.bootstrap_servers", "a:9092,"),
        ("kafka.bootstrap_servers", "a:9092 b:9092"),
        ("kafka.bootstrap_servers", "a:65536"),
        ("kafka.bootstrap_servers", "a:0"),
        ("zookeeper.connect", "a:2181:/medusa"),
        ("zookeeper.connect", "/medusa"),
        ("zookeeper.connect", "a:2181/x,b:2181/x"),
        ("registry.url", "127.0.0.1:8081"),
        ("registry.url", "http://a:b:c"),
    ],
)
def test_invalid_addresses_are_refused_when_settings_are_read(
    medusa: Caller, setting: str, value: str
) -> None:
    """The error contains the form of an address; it is not left to a driver."""
    called = medusa("config", "show", "--set", f"{setting}={value}")
    assert called.code == 64
    assert f"{setting} cannot be '{value}': it is " in called.err
    assert "HOST:PORT" in called.err


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("kafka.bootstrap_servers", "broker_1.example:65535, b-2:1,PLAINTEXT://[::1]:9092,plain"),
        ("zookeeper.connect", "a:2181,b:2181/medusa/eu"),
        ("zookeeper.connect", "127.0.0.1"),
        ("registry.url", "https://user@registry.example/path"),
    ],
)
def test_every_form_of_an_address_is_accepted(medusa: Caller, setting: str, value: str) -> None:
    """Several with commas, names with and without a port, IPv6, a scheme, a path."""
    assert medusa("config", "show", "--set", f"{setting}={value}").code == 0


def test_a_password_in_a_wrong_address_is_not_repeated(medusa: Caller) -> None:
    """Messages end up in logs."""
    called = medusa("config", "show", "--set", "registry.url=ftp://me:secret@host")
    assert called.code == 64
    assert "//…@host" in called.err
    assert "secret" not in called.err


SECRETS = ("kafka.password", "kafka.tls.key_password", "zookeeper.password", "registry.password")


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_no_secret_is_shown(medusa: Caller, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """From any source, in a URL too; a reference to one is shown as it is written."""
    monkeypatch.setenv("KAFKA_PASSWORD", "geheim-1")
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", "https://me:geheim-2@registry.example/path")
    Path("medusa.yaml").write_text(
        "zookeeper:\n  password: geheim-3\nkafka: {tls: {key_password: '${file:of/key}'}}\n",
        encoding="utf-8",
    )
    called = medusa("config", "show", "-o", form)
    assert called.code == 0
    assert "geheim" not in called.out + called.err
    assert "********" in called.out
    if form == "json":
        found = {one["name"]: one["value"] for one in called.data["settings"]}
        assert found["registry.url"] == "https://registry.example/path"
        assert found["registry.user"] == "me"
        assert found["kafka.tls.key_password"] == "${file:of/key}"


def test_a_login_in_the_address_of_a_registry_is_a_login(tmp_path: Path) -> None:
    """Equal to the settings for it, which override it in the same source."""
    url = "https://m%40e:a%3Ab@registry.example:81/path"
    variables = {"SCHEMA_REGISTRY_URL": url, "HOME": str(tmp_path)}
    found = load_project({}, variables, tmp_path).settings
    assert found.registry_url == "https://registry.example:81/path"
    assert found.registry_user == "m@e"
    assert found.registry_password.resolve({}).reveal() == "a:b"
    variables["SCHEMA_REGISTRY_PASSWORD"] = "other"
    found = load_project({}, variables, tmp_path).settings
    assert found.registry_password.resolve({}).reveal() == "other"


def test_files_of_a_project_are_found_from_anywhere(tmp_path: Path) -> None:
    """Certificates and secrets are relative to the project file."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    _write(tmp_path / "medusa.yaml", "kafka: {password: '${file:of/kafka}', tls: {ca: ca.pem}}\n")
    _write(tmp_path / "of" / "kafka", "geheim\n")
    found = load_project({}, {"HOME": str(tmp_path)}, below).settings
    assert found.kafka_tls_ca == str(tmp_path / "ca.pem")
    assert found.kafka_password.resolve({}).reveal() == "geheim"


@pytest.mark.parametrize("setting", SECRETS)
def test_a_secret_on_the_command_line_is_refused(medusa: Caller, setting: str) -> None:
    """All users of the machine can see it there; a reference is accepted."""
    called = medusa("config", "show", "--set", f"{setting}=geheim")
    assert called.code == 64
    assert "geheim" not in called.err
    assert "${env:NAME}" in called.err
    assert medusa("config", "show", "--set", f"{setting}=${{env:SOMETHING}}").code == 0


def test_a_password_in_an_address_on_the_command_line_is_refused(medusa: Caller) -> None:
    """It is a secret too."""
    called = medusa("config", "show", "--set", "registry.url=http://me:geheim@registry.example")
    assert called.code == 64
    assert "geheim" not in called.err


@pytest.mark.parametrize(
    "variable",
    [
        ("KAFKA_SECURITY_PROTOCOL", "SSL"),
        ("ZOOKEEPER_PASSWORD", "x"),
        ("SCHEMA_REGISTRY_USER", "x"),
    ],
)
def test_up_refuses_authentication_settings(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    """They are for external servers; those of `up` have no authentication."""
    monkeypatch.setenv(*variable)
    called = medusa("up", "--data", "data")
    assert called.code == 65
    assert "`medusa node start`" in called.err


def test_config_show_prints_the_source_of_values(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`config show -o json` contains value and source of every setting."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "broker:1")
    called = medusa("config", "show", "-o", "json", "--set", "node=n7")
    assert called.code == 0
    assert called.data["schema_version"] == 1
    found = {s["name"]: (s["value"], s["source"]) for s in called.data["settings"]}
    assert found["kafka.bootstrap_servers"] == ("broker:1", "environment")
    assert found["node"] == ("n7", "flag")
    assert found["spark.master"][1] == "default"


@pytest.mark.parametrize("assignment", ["node", "nodes=1"])
def test_a_wrong_assignment_is_a_usage_error(medusa: Caller, assignment: str) -> None:
    """--set requires NAME=VALUE with the name of a setting."""
    assert medusa("config", "show", "--set", assignment).code == 64
