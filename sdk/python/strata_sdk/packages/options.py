# SPDX-License-Identifier: Apache-2.0
"""The name of a package's network, `PACKAGE:NAME?OPTION=VALUE&...`: its parts, and whether its
options are those of what makes the network, by the types in its signature."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..models import ROOT, ModelError

WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "list": "a list, as [1,2]",
    "none": "none",
}
KINDS = {bool: "bool", int: "int", float: "float", str: "str", list: "list", tuple: "list"}
# what would load weights in place of the random ones, in any of the packages
LOADS_WEIGHTS = (
    "pretrained weights weights_backbone checkpoint_path pretrained_cfg pretrained_cfg_overlay"
    " pretrained_backbone cache_dir use_pretrained_backbone"
).split()
FORM = "write PACKAGE:NAME?OPTION=VALUE&OPTION=VALUE, with numbers, true, false, none, text or a list as [1,2]"


@dataclasses.dataclass(frozen=True)
class Reference:
    """A name in its parts. `package`: as it is imported."""

    text: str
    scheme: str
    package: str
    name: str
    options: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Option:
    """What may be given for it, as keys of WORDS; None: that is not known."""

    kinds: frozenset[str] | None

    def takes(self, value: Any) -> bool:
        if self.kinds is None:
            return True
        kind = "none" if value is None else KINDS[type(value)]
        return kind in self.kinds or (kind == "int" and "float" in self.kinds)


def is_reference(model: str) -> bool:
    """Whether it has a package's name in front, as plan::is_of_package of src/plan says too."""
    return re.fullmatch(r"[a-z0-9_]+:.+", model, re.DOTALL) is not None


def packages() -> dict[str, dict]:
    """Scheme -> its entry in models/packages.json."""
    entries = json.loads((ROOT / "models/packages.json").read_text(encoding="utf-8"))
    return {entry["scheme"]: entry for entry in entries}


def reference_of(model: str) -> Reference:
    """The parts of a name for which is_reference() holds. Raises ModelError (usage)."""
    scheme, _, rest = model.partition(":")
    name, question, words = rest.partition("?")
    known = packages()
    if scheme not in known:
        near = difflib.get_close_matches(scheme, known, n=1, cutoff=0.5)
        raise ModelError(
            "usage",
            f"'{scheme}' in {model} is no package whose networks strata builds by name",
            (f"did you mean {near[0]}:{rest}? " if near else "")
            + f"allowed: {', '.join(known)}; a network of your own is path/to/file.py:build",
        )
    options: dict[str, Any] = {}
    for word in words.split("&") if question else []:
        key, equals, value = word.partition("=")
        if not key or not equals or not value:
            raise ModelError("usage", f"{model}: '{word}' behind the ? is no OPTION=VALUE", FORM)
        if key in options:
            raise ModelError("usage", f"{model}: the option '{key}' is given twice", FORM)
        options[key] = _value_of(model, key, value)
    for key in LOADS_WEIGHTS:
        if options.get(key):
            raise ModelError(
                "usage",
                f"{model}: '{key}' would load weights, and strata downloads none",
                "leave it out: weights are drawn at random by --seed, or come from your file by --weights",
            )
    return Reference(model, scheme, known[scheme]["package"], name, options)


def _value_of(model: str, key: str, text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE):
        return float(text)
    if not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise ModelError("usage", f"{model}: the option {key}={text} is no list", FORM) from None


def check_name(reference: Reference, known: Iterable[str], whose: str) -> None:
    """`known`: all that the package has, called `whose`. Raises ModelError with the nearest."""
    names = sorted(known)
    if reference.name in names:
        return
    near = difflib.get_close_matches(reference.name, names, n=3, cutoff=0.5)
    raise ModelError(
        "usage",
        f"{reference.text}: {whose} '{reference.name}'",
        f"did you mean {' or '.join(near)}?"
        if near
        else f"it has {len(names)}, as {names[0]}"
        if names
        else "",
    )


def check_options(reference: Reference, known: Mapping[str, Option]) -> None:
    """Raises ModelError (usage) for an option that is not among `known`, or of another kind than it
    takes."""
    for key, value in reference.options.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise ModelError(
                "usage",
                f"{reference.text}: {reference.name} has no option '{key}'",
                (f"did you mean {near[0]}? " if near else "")
                + (f"allowed: {', '.join(known)}" if known else "it has none"),
            )
        option = known[key]
        if not option.takes(value):
            kinds = " or ".join(WORDS[kind] for kind in WORDS if kind in (option.kinds or ()))
            got = WORDS["none" if value is None else KINDS[type(value)]]
            raise ModelError(
                "usage",
                f"{reference.text}: the option {key} takes {kinds}, not {got}",
                f"options of {reference.name}: {', '.join(known)}",
            )


# ---------------------------------------------------------------------------- from a signature


def options_in(function: Callable, leave_out: Sequence[str] = ()) -> dict[str, Option]:
    """The named parameters of a function or a class, with what their annotations or defaults say
    that they take. Left out is what a person cannot write, as a required class."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    hints = _hints_of(function)
    known = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in ("self", *leave_out, *LOADS_WEIGHTS):
            continue
        hint = hints.get(parameter.name, parameter.annotation)
        option = _option_of(parameter, hint)
        unwritable = option.kinds is None and hint is not parameter.empty
        if parameter.default is parameter.empty and option.kinds is None:
            continue
        if not (unwritable and parameter.default is None):
            known[parameter.name] = option
    return known


def takes_any(function: Callable) -> bool:
    """Whether it takes keywords that its signature does not name, or has no signature to look
    at."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def returned_class(function: Callable) -> type | None:
    """The class that a function's annotation says it returns."""
    result = _hints_of(function).get("return")
    return result if isinstance(result, type) else None


def _hints_of(function: Callable) -> dict[str, Any]:
    place = function.__init__ if isinstance(function, type) else inspect.unwrap(function)  # type: ignore[misc]
    try:
        return typing.get_type_hints(place)
    except Exception:  # names that are imported for type checkers only
        return {}


def _option_of(parameter: inspect.Parameter, hint: Any) -> Option:
    default = parameter.default
    kinds = None if hint is parameter.empty else _kinds_of(hint)
    if hint is parameter.empty and type(default) in KINDS:
        kinds = frozenset({KINDS[type(default)]})
    if kinds is not None and default is None:
        kinds |= {"none"}
    return Option(kinds)


def _kinds_of(hint: Any) -> frozenset[str] | None:
    if hint is None or hint is type(None):
        return frozenset({"none"})
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        parts = [_kinds_of(part) for part in typing.get_args(hint)]
        return None if None in parts else frozenset().union(*[part for part in parts if part])
    if origin is typing.Literal:
        return frozenset(
            "none" if value is None else KINDS.get(type(value), "str")
            for value in typing.get_args(hint)
        )
    place = origin or hint
    if isinstance(place, type):
        for kind, word in KINDS.items():
            if place is kind or (word == "list" and place in (Sequence, Iterable)):
                return frozenset({word})
    return None
