# SPDX-License-Identifier: Apache-2.0
"""What a .pt2 file is checked for before torch.export.load sees it. Loading makes Python code of
its names, expressions and guards and runs that, so each text in it must be of the form that its
place has: identifiers, arithmetic of sizes, comparisons of sizes, operators of a list. Anything
else is refused by its place in the file.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .archive_checks import Refused, open_archive

NAMESPACES = {"aten", "prims", "torchvision", "quantized", "quantized_decomposed", "torchao"}
HIGHER_ORDER = set(
    """
    cond while_loop scan associative_scan map_impl wrap_with_set_grad_enabled wrap_with_autocast
    flex_attention invoke_subgraph
    """.split()
)
FILE_OPERATORS = {"from_file", "save"}
PYTHON_OPERATORS = set(
    """
    add sub mul truediv floordiv mod pow neg pos abs eq ne lt le gt ge and_ or_ not_ xor invert
    lshift rshift getitem
    """.split()
)
MATH = set(
    """
    ceil floor trunc sqrt exp log log2 sin cos tan sinh cosh tanh asin acos atan pow isnan isinf
    inf nan
    """.split()
)
SYM = set(
    """
    sym_max sym_min sym_float sym_int sym_not sym_ite sym_sum sym_fresh_size sym_sqrt _sym_sqrt
    _sym_log2 _sym_cos _sym_cosh _sym_sin _sym_sinh _sym_tan _sym_tanh _sym_asin _sym_acos
    _sym_atan _sym_exp
    """.split()
)
FUNCTIONS = set(
    """
    FloorDiv ModularIndexing Where PythonMod Mod CleanDiv CeilToInt FloorToInt CeilDiv LShift
    RShift PowByNatural FloatPow FloatTrueDiv IntTrueDiv IsNonOverlappingAndDenseIndicator
    TruncToFloat TruncToInt RoundToInt RoundDecimal ToFloat Identity Max Min Abs floor ceiling
    sqrt Eq Ne Ge Gt Le Lt And Or Not ITE Piecewise Pow BitwiseFn_bitwise_and
    BitwiseFn_bitwise_or max min abs Add Mul Integer Rational Equality Unequality GreaterThan
    LessThan StrictGreaterThan StrictLessThan IntInfinity NegativeIntInfinity Infinity
    NegativeInfinity BooleanTrue BooleanFalse cast_symbool_to_symint_guardless math.ceil
    math.floor math.sqrt math.trunc math.isnan torch.sym_max torch.sym_min torch.sym_float
    torch.sym_not torch.sym_sum torch._sym_sqrt
    """.split()
)
POWERS = {"Pow", "PowByNatural", "FloatPow", "LShift"}
CONSTANTS = {"oo", "int_oo", "inf", "nan", "true", "false", "math.inf"}
SIZES = {"size", "stride", "storage_offset", "dim", "numel", "item"}
ARITHMETIC = (
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Pow,
    ast.BitAnd,
    ast.BitOr,
    ast.LShift,
    ast.RShift,
)
TREE_TYPES = {
    None,
    "builtins.tuple",
    "builtins.list",
    "builtins.dict",
    "collections.OrderedDict",
    "collections.deque",
    "collections.namedtuple",
    "collections.defaultdict",
    "torch.fx.immutable_collections.immutable_list",
    "torch.fx.immutable_collections.immutable_dict",
}
LONGEST = 20_000  # of an expression; those of real files have some hundred letters

ASSUMPTIONS = set(
    """
    integer positive nonnegative negative nonpositive real finite zero nonzero even odd
    precision
    """.split()
)
NUMBER = re.compile(r"[-+0-9.e]{1,400}")
SYMBOL = re.compile(r"[a-z]{1,8}\d{1,9}")
PATH = re.compile(r"[\w.\-:/+ ]*")  # of a parameter: between quotes it stays a text in any language
PLAIN = re.compile(r"[\w .,:+\-/<>=()\[\]]*")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


def check(path: Path) -> None:
    """Raises Refused with the place and the reason, RuntimeError for what is no archive of
    PyTorch's.
    """
    reader, names = open_archive(path)
    sizes = {name: reader.get_record_size(name) for name in names}
    for name in names:
        is_program = "models/" in name  # whatever its ending: PyTorch loads every file there
        if is_program or name.endswith(("_weights_config.json", "_constants_config.json")):
            try:
                content = json.loads(reader.get_record(name))
                if is_program:
                    _Checker(name).program(content)
                else:
                    _check_tensors(name, content["config"], sizes)
            except RecursionError:
                raise Refused(f"{name}: nested too deep") from None
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise Refused(
                    f"{name}: not of the form of an exported program: "
                    f"{type(error).__name__}: {error}"
                ) from error


def _check_tensors(file: str, config: dict[str, dict], sizes: dict[str, int]) -> None:
    """Files of tensors, and of no objects. A tensor without bytes has no elements: PyTorch would
    make zeros of the size that is claimed.
    """
    for name, about in config.items():
        if not re.fullmatch(r"(weight|tensor)_\d+", about["path_name"]):
            raise Refused(f"{file}: {name[:120]!r} is {about['path_name'][:120]!r}, no tensor")
        record = f"{file.rpartition('/')[0]}/{about['path_name']}"
        extents = [extent["as_int"] for extent in (about.get("tensor_meta") or {}).get("sizes", [])]
        if sizes.get(record) == 0 and math.prod(extents) != 0:
            raise Refused(f"{file}: {name[:120]!r} has no bytes and claims the size {extents}")


def identifier(text: str) -> str | None:
    """Why `text` cannot be a name in generated code; None if it can."""
    if not text.isidentifier() or not text.isascii():
        return "is no name"
    if keyword.iskeyword(text) or (text.startswith("__") and text.endswith("__")):
        return "is a name that Python keeps for itself"
    return None


def operator(text: str) -> str | None:
    """Why `text` is none of the operators that a network may call."""
    head, _, rest = text.partition(".")
    parts = text.split(".")
    if (
        (head == "_operator" and rest in PYTHON_OPERATORS)
        or (head == "math" and rest in MATH)
        or (head == "torch" and rest in SYM)
    ):
        return None
    if text.startswith("torch.ops.") and all(identifier(part) is None for part in parts):
        if parts[2] == "higher_order":
            return (
                None
                if len(parts) == 4 and parts[3] in HIGHER_ORDER
                else "is no operator that strata lets a file call"
            )
        if parts[2] in NAMESPACES and len(parts) == 5 and parts[3] not in FILE_OPERATORS:
            return None
        return (
            "reads or writes files"
            if parts[3:] and parts[3] in FILE_OPERATORS
            else "is no operator that strata lets a file call"
        )
    return "is no operator that strata lets a file call"


def expression(text: str, guard: bool = False) -> str | None:
    """Why `text` is no arithmetic of sizes; as a guard it may ask the inputs L[...] for theirs."""
    if len(text) > LONGEST:
        return f"is {len(text)} letters long; allowed are {LONGEST}"
    try:
        tree = ast.parse(text, mode="eval").body
        _walk(tree, guard)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return f"is no arithmetic of sizes ({error})"
    return None


def _dotted(node: ast.expr) -> str:
    return (
        f"{_dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def _walk(node: ast.expr, guard: bool) -> None:
    """Raises ValueError at the first part that is not allowed."""

    def each(parts: list[ast.expr]) -> None:
        for part in parts:
            _walk(part, guard)

    match node:
        case ast.Constant(value=value) if type(value) in (int, float, bool):
            return None
        case ast.Name(id=name) if name in CONSTANTS or SYMBOL.fullmatch(name):
            return None
        case ast.Attribute() if _dotted(node) in CONSTANTS:
            return None
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
            if isinstance(op, (ast.Pow, ast.LShift)):
                _check_power(left, right)
            return each([left, right])
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not() | ast.Invert(), operand=operand):
            return each([operand])
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in ops
        ):
            return each([left, *others])
        case ast.BoolOp(values=values):
            return each(values)
        case ast.IfExp(test=test, body=body, orelse=other) if guard:
            return each([test, body, other])
        case ast.Tuple(elts=parts):
            return each(parts)
        case ast.Call(func=function, args=arguments, keywords=[]) if _dotted(function) in FUNCTIONS:
            if _dotted(function) in POWERS:
                _check_power(*arguments)
            return each(arguments)
        case ast.Call(
            func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))], keywords=assumptions
        ) if SYMBOL.fullmatch(name) and _are_constants(assumptions):
            return None
        case ast.Call(
            func=ast.Name(id="Float"), args=[ast.Constant(value=str(number))], keywords=settings
        ) if NUMBER.fullmatch(number) and _are_constants(settings):
            return None
        case _ if guard and _input(node):
            return None
    raise ValueError(f"'{ast.unparse(node)[:80]}'")


def _are_constants(keywords: list[ast.keyword]) -> bool:
    """positive=True, precision=53."""
    return all(
        word.arg in ASSUMPTIONS
        and isinstance(word.value, ast.Constant)
        and type(word.value.value) in (bool, int)
        for word in keywords
    )


def _check_power(base: ast.expr, exponent: ast.expr) -> None:
    """Raises ValueError for a number that could fill the memory: an exponent that is neither a
    symbol nor a number up to 64, or a power of a power.
    """
    nested = any(
        (isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Pow, ast.LShift)))
        or (isinstance(part, ast.Call) and _dotted(part.func) in POWERS)
        for part in ast.walk(base)
    )
    number = exponent
    if isinstance(number, ast.Call) and _dotted(number.func) == "Integer" and len(number.args) == 1:
        number = number.args[0]
    number = number.operand if isinstance(number, ast.UnaryOp) else number
    symbol = isinstance(number, ast.Name) or (
        isinstance(number, ast.Call) and _dotted(number.func) == "Symbol"
    )
    if nested or not (
        symbol
        or (
            isinstance(number, ast.Constant)
            and isinstance(number.value, (int, float))
            and number.value <= 64
        )
    ):
        raise ValueError("a power above 64")


def _input(node: ast.expr) -> bool:
    """L['x'], L['args'][0], L['x'].size()[1] and the like."""
    match node:
        case ast.Name(id="L"):
            return True
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            return _input(inner) and (
                type(key) is int or (isinstance(key, str) and PATH.fullmatch(key) is not None)
            )
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[], keywords=[]):
            return name in SIZES and _input(inner)
    return False


class _Checker:
    """Walks one exported program as JSON. Texts are told by the name of their field; what has no
    rule of its own must be plain.
    """

    def __init__(self, file: str) -> None:
        self.file = file

    def refuse(self, place: str, text: Any, why: str) -> None:
        raise Refused(f"{self.file}: {place}: {str(text)[:120]!r} {why}")

    def by(self, rule: Callable[[str], str | None], place: str, text: Any) -> None:
        if not isinstance(text, str):
            self.refuse(place, text, "is no text")
        if why := rule(text):
            self.refuse(place, text, why)

    def program(self, program: dict) -> None:
        for i, guard in enumerate(program.get("guards_code") or []):
            self.by(lambda text: expression(text, guard=True), f"guards_code[{i}]", guard)
        for symbol in program.get("range_constraints") or {}:
            self.by(expression, "range_constraints", symbol)
        self.walk(
            "",
            {k: v for k, v in program.items() if k not in ("guards_code", "range_constraints")},
            "",
        )

    def walk(self, place: str, value: Any, field: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                self.key(place, key, field)
                self.field(f"{place}.{key}".lstrip("."), key, inner)
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                self.field(f"{place}[{i}]", field, inner)
        elif isinstance(value, str):
            self.text(place, value, field)

    def key(self, place: str, key: str, field: str) -> None:
        if field in (
            "tensor_values",
            "sym_int_values",
            "sym_float_values",
            "sym_bool_values",
            "as_string_to_argument",
        ):
            self.by(identifier, place, key)
        elif not PLAIN.fullmatch(key):
            self.refuse(place, key, "is no name of a field")

    def field(self, place: str, field: str, value: Any) -> None:
        if field == "metadata" and isinstance(value, dict):
            return self.metadata(place, value)
        if field in ("custom_obj_values", "as_custom_obj", "custom_obj") and value:
            self.refuse(place, value, "is an object of a class in C++ or Python")
        if field in ("in_spec", "out_spec") and isinstance(value, str):
            return self.tree(place, json.loads(value))
        if field == "constant_input" and isinstance(value, dict):
            constant = (value.get("value") or {}).get("as_string", "")
            if not PATH.fullmatch(constant):
                self.refuse(place, constant, "is a text with quotes or control characters")
        return self.walk(place, value, field)

    def text(self, place: str, text: str, field: str) -> None:
        if field in ("name", "as_name", "node_name"):
            if text:  # a constant among the inputs may have none
                self.by(identifier, place, text)
        elif field in ("forward_arg_names", "field_names"):
            self.by(identifier, place, text)
        elif field in ("target", "as_operator"):
            self.by(operator, place, text)
        elif field == "expr_str":
            self.by(expression, place, text)
        elif field in (
            "parameter_name",
            "buffer_name",
            "tensor_constant_name",
            "user_input_name",
            "fqn",
        ):
            if not PATH.fullmatch(text):
                self.refuse(place, text, "is no path of a tensor or a module")
        elif field in ("as_string", "as_strings"):
            if CONTROL.search(text) or '"' in text or "\\" in text or "\n" in text:
                self.refuse(place, text, "is a text with quotes or control characters")
        elif not PLAIN.fullmatch(text):
            self.refuse(place, text, "is not plain text")

    def metadata(self, place: str, metadata: dict) -> None:
        """Comments: what wrote the program. They go into comments of generated code, so they must
        not end a line in another way than \\n.
        """
        for key, text in metadata.items():
            if isinstance(text, str) and CONTROL.search(
                text if key not in ("custom", "from_node") else _decoded(text)
            ):
                self.refuse(f"{place}.{key}", text, "holds control characters")

    def tree(self, place: str, spec: Any) -> None:
        """A tree of containers, as torch.utils._pytree writes it: [protocol, node]."""

        def node(described: dict) -> None:
            if described["type"] not in TREE_TYPES:
                self.refuse(
                    place, described["type"], "is no container that strata lets a file name"
                )
            context = (
                json.loads(described["context"])
                if isinstance(described["context"], str)
                else described["context"]
            )
            self.context(place, context)
            for inner in described["children_spec"]:
                node(inner)

        node(spec[1])

    def context(self, place: str, context: Any) -> None:
        """Keys of a dict, a deque's length, a defaultdict's factory, a named tuple's type."""
        if isinstance(context, dict):
            if "__enum__" in context:
                self.refuse(place, context, "names an enumeration of another module")
            if context.get("default_factory_module", "builtins") != "builtins" or context.get(
                "default_factory_name", "list"
            ) not in ("list", "dict", "int", "float", "set", "tuple"):
                self.refuse(place, context, "names a function")
            for key, value in context.items():
                self.context(place, key)
                self.context(place, value)
        elif isinstance(context, list):
            for value in context:
                self.context(place, value)
        elif isinstance(context, str) and not PATH.fullmatch(context):
            self.refuse(place, context, "is a key with quotes or control characters")


def _decoded(text: str) -> str:
    """All texts in JSON."""

    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [t for pair in value.items() for part in pair for t in texts(part)]
        if isinstance(value, list):
            return [t for part in value for t in texts(part)]
        return [value] if isinstance(value, str) else []

    return "\n".join(texts(json.loads(text)))
