"""What the subcommands share: common options, options made from dataclasses, grouped help pages, and the console."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer
from typer.core import TyperCommand

from regard.decode.config import SearchConfig
from regard.setting import Setting, settings_of

if TYPE_CHECKING:
    from rich.console import Console

Command = Callable[..., None]


def in_group(group: str, *names: str, help: str, metavar: str | None = None) -> Any:
    """An option that the help page shows under the heading `group`."""
    return typer.Option(*names, help=help, rich_help_panel=group, metavar=metavar)


Run = Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors to stderr.")]
Checkpoint = Annotated[int | None, in_group("Model", help="Step of a checkpoint to use instead of the final weights.")]
Precision = Annotated[
    str | None,
    in_group(
        "Speed and memory",
        metavar="fp32|int8",
        help="Precision of translation; by default int8 where `regard quantise` allowed it, else fp32.",
    ),
]
Shortlist = Annotated[
    int,
    in_group(
        "Speed and memory",
        metavar="K",
        help="Only target tokens of a vocabulary shortlist: each source token brings the K that occur with it most, "
        "counted in the run's training data (0 is the whole vocabulary); may change the result.",
    ),
]
Tag = Annotated[str | None, in_group("Model", help="Corpus tag to put before each source line.")]


class GroupedHelp(TyperCommand):
    """A command whose help page has one section for each group of options, in plain text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(heading(parameter), []).append(record)
        width = min(max(len(name) for records in sections.values() for name, _ in records), 30)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in records])


def heading(parameter: Any) -> str:
    """The section of the help page for an argument or an option."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Other options"


def with_options(*search: str, wording: Mapping[str, str] | None = None) -> Callable[[Command], Command]:
    """A decorator that gives a command one option for each field of a dataclass.

    `**search` stands for the named fields of `SearchConfig`, or for all of them; what is not given on the command line
    is None. Any other parameter whose type is a dataclass stands for the fields of that, made with `setting`.
    `wording` has the help, one sentence without its full stop, of those fields that the command calls by other words.
    """

    def decorate(function: Command) -> Command:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
        bundles: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

        @wraps(function)
        def command(**values: Any) -> None:
            for name, bundle in bundles.items():
                values[name] = bundle(**{each.name: values.pop(each.name) for each in fields(bundle)})
            function(**values)

        command.__dict__["__signature__"] = Signature(list(flat_parameters(parameters, search, wording or {})))
        return command

    return decorate


def flat_parameters(
    parameters: Iterable[Parameter], search: tuple[str, ...], wording: Mapping[str, str]
) -> Iterator[Parameter]:
    """The parameters that Typer sees: required ones, then the decoding options, then the others in their order."""
    named = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters if each.kind != Parameter.VAR_KEYWORD]
    required = [each for each in named if each.default is Parameter.empty and not is_dataclass(each.annotation)]
    yield from required
    yield from search_parameters(search, wording)
    for each in named:
        if is_dataclass(each.annotation):
            yield from bundle_parameters(cast("type[Any]", each.annotation))
        elif each not in required:
            yield each


def search_parameters(names: tuple[str, ...], wording: Mapping[str, str]) -> Iterator[Parameter]:
    """An option for each of the named fields of `SearchConfig`, or for all of them."""
    kinds, settings = get_type_hints(SearchConfig), settings_of(SearchConfig)
    for name in names or settings:
        worded = replace(settings[name], text=wording.get(name, settings[name].text))
        yield option(name, kinds[name] | None, None, worded)


def bundle_parameters(bundle: type[Any]) -> Iterator[Parameter]:
    """An option for each field of a dataclass."""
    kinds, settings = get_type_hints(bundle), settings_of(bundle)
    for each in fields(bundle):
        yield option(each.name, kinds[each.name], each.default, settings[each.name])


def option(name: str, kind: Any, default: Any, setting: Setting) -> Parameter:
    """A setting as Typer's parameter; `kind` may be optional."""
    metavar = setting.metavar or "|".join(setting.choices) or None
    info = in_group(setting.group, f"--{name.replace('_', '-')}", help=setting.help, metavar=metavar)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def console(quiet: bool) -> Console:
    from rich.console import Console

    return Console(stderr=True, quiet=quiet)
