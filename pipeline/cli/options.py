"""Decorators of commands: the session, and options that several commands share."""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from pipeline.cli.common import common_of, common_options, flags_of, without_common
from pipeline.cli.output import Printer
from pipeline.cli.session import Session
from pipeline.errors import UsageError
from pipeline.ids import FragmentName, StreamName
from pipeline.planner.inputs import InputFrom
from pipeline.planner.state import Choices, OnChange
from pipeline.settings import problem_with

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])


def with_session(function: Callable[Concatenate[Session, P], None]) -> Callable[..., None]:
    """Decorator that adds the common options; the command receives a `Session` first."""

    @common_options
    @click.pass_context
    @functools.wraps(function)
    def wrapper(ctx: click.Context, /, **values: Any) -> None:
        found = common_of(ctx)
        session = Session(
            printer=Printer(found.output, color=not (found.no_color or os.environ.get("NO_COLOR"))),
            flags=flags_of(found),
            verbose=found.verbose,
            opener=ctx.obj,
        )
        function(session, **without_common(values))  # type: ignore[call-arg] # click passes what it parsed

    return wrapper


def with_registry(function: Callable[Concatenate[Session, P], None]) -> Callable[..., None]:
    """As `with_session`, with `--registry URL` for a registry other than that of the settings."""

    @click.option(
        "--registry",
        metavar="URL",
        help="The registry at this address, which may contain a login. It needs no Medusa "
        "installation, and deployed boxes are not checked. Default: registry.url.",
    )
    @with_session
    @functools.wraps(function)
    def wrapper(session: Session, /, registry: str | None, **values: Any) -> None:
        if registry is not None:
            problem = problem_with("registry.url", registry)
            if problem is not None:
                raise UsageError(f"--registry: {problem.message}")
            flags = {**session.flags, "registry.url": registry}
            session = replace(session, flags=flags, elsewhere=True)
        function(session, **values)  # type: ignore[call-arg] # click passes what it parsed

    return wrapper


def document_options(function: Callable[P, None]) -> Callable[..., None]:
    """Decorator that adds FILE and `-f FILE`, the network document; the command receives `file`."""

    @click.argument("document", metavar="[FILE]", required=False, type=click.Path())
    @document_option
    @functools.wraps(function)
    def wrapper(*args: Any, document: str | None, file: str | None, **values: Any) -> None:
        function(*args, file=one_document(document, file), **values)  # type: ignore[arg-type] # click passes what it parsed

    return wrapper


def one_document(argument: str | None, option: str | None) -> str | None:
    """The document of a call, given by its argument, by `-f`, or by both.

    Raises:
        UsageError: they are different documents.
    """
    if argument and option and Path(argument) != Path(option):
        raise UsageError(
            f"two documents are named: {argument}, and {option} with -f",
            hint="leave one of them out.",
        )
    return argument or option


def document_option(function: F) -> F:
    """Decorator that adds `-f FILE`, the network document."""
    return click.option(
        "-f",
        "--file",
        "file",
        metavar="FILE",
        type=click.Path(),
        help="The network document, in YAML or Python; default: network.yaml or network.py in the "
        "folder of medusa.yaml.",
    )(function)


def choice_options(function: Callable[P, None]) -> Callable[..., None]:
    """Decorator that adds `--state` and `--input`; the command receives `choices`."""

    @_input_option
    @_state_option
    @functools.wraps(function)
    def wrapper(
        *args: Any, choices: Choices, inputs: Mapping[StreamName, InputFrom], **values: Any
    ) -> None:
        function(*args, choices=replace(choices, inputs=inputs), **values)  # type: ignore[arg-type] # click passes what it parsed

    return wrapper


def _state_option(function: F) -> F:
    return click.option(
        "--state",
        "choices",
        multiple=True,
        metavar="[FRAGMENT=]HOW",
        callback=_choices,
        help="What to do with a state that does not fit the new plan: rebuild it from the input "
        "topics, or begin empty. For all such fragments, or for one; may be repeated.",
    )(function)


def _input_option(function: F) -> F:
    return click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="STREAM=WHERE",
        callback=_inputs,
        help="Where a fragment that has run begins to read a stream that it has never read: at "
        "the beginning of its topic, or at its end. Of one that it leaves before its end, `end` "
        "leaves the rest unread. May be repeated; `medusa plan` shows where it is needed.",
    )(function)


def _inputs(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> Mapping[StreamName, InputFrom]:
    found: dict[StreamName, InputFrom] = {}
    for value in values:
        name, _, where = value.rpartition("=")
        stream = StreamName(name)
        words = " or ".join(one.value for one in InputFrom)
        if not stream:
            raise click.BadParameter(f"{value!r} is not STREAM={words}")
        try:
            chosen = InputFrom(where)
        except ValueError as error:
            raise click.BadParameter(f"{where!r} is neither {words}") from error
        if found.setdefault(stream, chosen) is not chosen:
            raise click.BadParameter(f"{stream} cannot begin at both ends")
    return found


def _choices(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Choices:
    every: OnChange | None = None
    named: dict[FragmentName, OnChange] = {}
    for value in values:
        fragment, _, how = value.rpartition("=")
        try:
            found = OnChange(how)
        except ValueError as error:
            words = " or ".join(one.value for one in OnChange)
            raise click.BadParameter(f"{how!r} is neither {words}") from error
        if fragment:
            named[FragmentName(fragment.rpartition(".")[2])] = found
        else:
            every = found
    return Choices(every, named)


def timeout_option(seconds: float) -> Callable[[F], F]:
    """Decorator that adds `--timeout SECONDS` with a default."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0.1),
        default=seconds,
        show_default=True,
        metavar="SECONDS",
        help="Give up after so many seconds (exit code 75).",
    )
