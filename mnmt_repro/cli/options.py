"""What several commands share: how they are declared, and options of the form NAME=VALUE."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from mnmt_repro.atomic import probe, write_bytes
from mnmt_repro.corpora.textfile import read_packed, unpack
from mnmt_repro.errors import InputError, tell
from mnmt_repro.typed_config import FieldError, convert, setting

if TYPE_CHECKING:
    import pandas as pd

PURPOSES = {
    "data": "list corpora, check texts, train, extend, trim or adopt a vocabulary",
    "train": "train a translation model; the same command again goes on where it stopped",
    "upgrade": "give a trained model more languages, width and depth, to be trained further",
    "translate": "translate lines from standard input to standard output with a trained model",
    "evaluate": "score a trained model: nats per target token, and with --decode BLEU and chrF",
    "compare": "test whether the losses of one model are lower than those of another, or by chance",
    "export": "write a model as a folder that transformers (hf) or CTranslate2 (ct2) loads",
    "fit": "fit a scaling law to a table of losses, by size, weight and data, each pair apart",
    "recommend": "recommend the weights of a mixture at one model size, by laws of each pair",
    "sweep": (
        "train what is missing of declared cohorts or of a grid of your own, or decode or analyse "
        "finished runs; without a name, list the cohorts"
    ),
    "retrain": (
        "train stored runs again and compare their test losses with the stored ones; without a "
        "run, list those that can be, the quickest first"
    ),
}
"""What each command does, in the order of the help; `mnmt_repro.cli.NAME` declares it."""

MODEL = "what `train` wrote, or a Hugging Face model"
"""Help of a trained model, which is named without a flag."""


@dataclass(frozen=True, kw_only=True)
class JsonOption:
    """The option of a command whose answer programs may read."""

    json: bool = setting("print JSON in place of a table", False)


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, and reads options again where some decide others' defaults."""

    usual: Callable[[argparse.Namespace], Mapping[str, Any]] | None = None
    """Defaults that follow from the options, such as a preset's."""

    def error(self, message: str) -> NoReturn:
        """Raise `InputError` with the command; the usage of all options would hide the mistake."""
        if command := self.prog.removeprefix("mnmt-repro").strip():
            raise InputError(f"{command}: {message}")
        raise InputError(f"{message}; see mnmt-repro --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and once more with the defaults that follow from the options, if there are any."""
        parsed = super().parse_known_args(args, namespace)
        if self.usual is not None:
            self.set_defaults(**self.usual(parsed[0]))
            parsed = super().parse_known_args(args, namespace)
        return parsed


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows each default that the help does not, wraps sentences and keeps lines of examples."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, []) or "(default: " in (action.help or ""):
            return action.help
        return super()._get_help_string(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        return "\n".join(line if line[:1] == " " else textwrap.fill(line, width) for line in lines)


def add_command(
    commands: Any,
    name: str,
    purpose: str = "",
    *,
    examples: Sequence[str],
    act: Callable[[Any], int],
    more: str = "",
    read: Callable[[argparse.Namespace], Any] | None = None,
    usual: Callable[[argparse.Namespace], Mapping[str, Any]] | None = None,
) -> argparse.ArgumentParser:
    """Declare a command.

    Parameters
    ----------
    purpose
        Its one line in the list of commands; empty where `PURPOSES` has it.
    examples, more
        End its `--help`.
    act
        Is called with the dataclass of its options, whose fields are declared (see `add_fields`),
        or where it takes none with what was parsed.
    read
        Makes that dataclass of what was parsed; None: `read_fields`.
    usual
        Defaults that follow from other options, by the names of `argparse`; see `Parser`.
    """
    purpose = purpose or PURPOSES[name]
    heading = "example" if len(examples) == 1 else "examples"
    parser: Parser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
        epilog="\n  ".join([f"{heading}:", *examples]) + f"\n\n{more}" * bool(more),
        formatter_class=HelpFormatter,
    )
    parser.usual = usual
    kind = cast(type, get_type_hints(act)["options"])
    parser.set_defaults(act=act, parser=parser)
    if dataclasses.is_dataclass(kind):
        add_fields(parser, kind)
        make = read or partial(read_fields, kind=kind)
        parser.set_defaults(act=lambda parsed: act(make(parsed)))
    return parser


def add_fields(
    parser: argparse._ActionsContainer,
    kind: type,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Declare an option for each field of a dataclass that has a help; see `typed_config.setting`.

    The type of a field decides what its option takes: one of the values of a `Literal`, nothing
    (`bool`), a value each time that it is given (`tuple`), else a value of that type. A field that
    is a dataclass gives the options of its own fields.

    Parameters
    ----------
    defaults
        Defaults in place of the fields' own.
    """
    hints, group = get_type_hints(kind, include_extras=True), parser
    for each in dataclasses.fields(kind):
        how, hint = dict(each.metadata), hints[each.name]
        if "group" in how:
            group = parser.add_argument_group(how.pop("group"))
        if dataclasses.is_dataclass(hint):
            add_fields(group, cast(type, hint), **how)
        elif "help" in how:
            default = defaults.get(each.name, each.default)
            how["default"] = None if default in (dataclasses.MISSING, ()) else default
            flags = how.pop("flags", None) or (f"--{each.name.replace('_', '-')}",)
            if flags[0].startswith("-"):
                how["dest"] = _name(each)
            group.add_argument(*flags, **({} if "nargs" in how else _taken(hint)) | how)


def _name(each: dataclasses.Field[Any]) -> str:
    """What `argparse` calls a field: as its long flag, where that is not the field's name."""
    long = [flag for flag in each.metadata.get("flags", ()) if flag.startswith("--")]
    return long[0].lstrip("-").replace("-", "_") if long else each.name


def _taken(hint: Any) -> dict[str, Any]:
    """What `argparse` is told of an option whose field has this type."""
    if hint is bool:
        return {"action": "store_true"}
    if NoneType in (parts := get_args(hint)):  # where it is not given
        (hint,) = (part for part in parts if part is not NoneType)
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if get_origin(hint) is tuple:
        return {"action": "append"}

    def read(text: str) -> Any:
        try:
            return convert(text, hint, ())
        except FieldError as error:
            raise argparse.ArgumentTypeError(error.why) from error

    return {"type": read}


_Options = TypeVar("_Options")


def read_fields(options: argparse.Namespace, kind: type[_Options], **made: Any) -> _Options:
    """The dataclass that parsed options are fields of; `made` has those that are not options."""
    hints = get_type_hints(kind)
    for each in dataclasses.fields(cast(Any, kind)):
        if each.name not in made and dataclasses.is_dataclass(hints[each.name]):
            made[each.name] = read_fields(options, cast(type, hints[each.name]))
        elif each.name not in made and "help" in each.metadata:
            value = getattr(options, _name(each))
            made[each.name] = tuple(value or ()) if each.default == () else value
    return kind(**made)


def comma_list(text: str) -> list[str]:
    """Split `a,b,c`.

    >>> comma_list("eng-deu, eng-zho")
    ['eng-deu', 'eng-zho']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def by_place(text: str, where: str) -> list[str]:
    """Split `a,b`, whose parts mean something by where they stand; `where` names the option.

    >>> by_place("0.5, 1", "--gamma")
    ['0.5', '1']

    Raises
    ------
    InputError
        When a part is empty: left out, it would shift the others.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(f"{where} {text}: part {parts.index('') + 1} is empty; give it a value")
    return parts


def named_numbers(texts: Iterable[str], option: str) -> dict[str, float]:
    """Read PAIR=NUMBER, once or more.

    >>> named_numbers(["eng-deu=2", "eng-zho=0.5"], "--prefer")
    {'eng-deu': 2.0, 'eng-zho': 0.5}
    """
    numbers: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"{option} {text}: write PAIR=NUMBER, such as eng-deu=2")
        if name in numbers:
            raise InputError(f"{option} {text}: {name} is named twice")
        numbers[name] = number(value, f"{option} {text}")
    return numbers


def number(text: str, where: str, kind: Any = float) -> Any:
    """Read a number of a type of `typed_config`; `where` names the option in the error."""
    try:
        return convert(text, kind, ())
    except FieldError as error:
        raise InputError(f"{where}: {error}") from error


def check_columns(path: Path, there: Iterable[object], needed: Mapping[str, str]) -> None:
    """Refuse a table that lacks a column; `needed` has the option that names each."""
    names = list(map(str, there))
    for column, flag in needed.items():
        if column not in names:
            known = "; columns are told apart by comma, semicolon or tab" * (len(names) == 1)
            raise InputError(
                f"{path}: no column {column!r}; name yours with {flag}; there are "
                f"{', '.join(names)}{known}"
            )


_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def read_table(path: Path, needed: Mapping[str, str]) -> pd.DataFrame:
    """Read a table with a header line that holds the `needed` columns; every value stays text.

    The separator (comma, semicolon or tab) is told from the header, and blank lines are left out.
    The file may be gzip or xz. The index holds the line of each row.

    Raises
    ------
    InputError
        When the file cannot be read, is no table, or lacks a column; those it has are named.
    """
    import pandas as pd

    packed = unpack(read_packed(path), path)  # once: a pipe cannot be read again
    try:
        text = packed.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not in UTF-8; save it as CSV in UTF-8") from error
    if bad := _NO_TEXT.search(text):  # it would end the process where a chart shows it
        line = text.count("\n", 0, bad.start()) + 1
        raise InputError(f"{path} line {line}: holds the character U+{ord(bad[0]):04X}; remove it")
    separator = max(",;\t", key=text.strip().partition("\n")[0].count)
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    rows: dict[int, list[str]] = {}
    try:
        for row in reader:
            if any(cells := [cell.strip() for cell in row]):
                rows[reader.line_num] = cells
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: {error}") from error
    if len(rows) < 2:
        raise InputError(f"{path}: holds no rows below a header line")
    first, names = next(iter(rows.items()))
    if double := [name for name in names if name and names.count(name) > 1]:
        raise InputError(f"{path} line {first}: two columns are called {double[0]!r}")
    for line, cells in rows.items():
        if len(cells) != len(names):
            raise InputError(
                f"{path} line {line}: has {len(cells)} values, and the header {len(names)}; is the "
                "file whole, or is there a comment above the header?"
            )
    del rows[first]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=names, dtype=object)
    frame = frame.drop(columns="", errors="ignore")
    check_columns(path, frame.columns, needed)
    return frame


def numbers_of(frame: pd.DataFrame, column: str, path: Path) -> pd.Series:
    """Numbers of a column of `read_table`; `InputError` with the line of one that is none."""
    import pandas as pd

    numbers = pd.to_numeric(frame[column], errors="coerce")
    why = "not a number (write a decimal point, or leave out a row that has none)"
    refuse(~(numbers.abs() < math.inf), frame, column, path, why)
    return numbers


def refuse(bad: pd.Series, frame: pd.DataFrame, column: str, path: Path, why: str) -> None:
    """Raise `InputError` with file, line and column of the first `bad` row of `read_table`."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        line, value = frame.index[row], frame[column].iloc[row]
        shown = repr(value) if value else "it is empty"
        raise InputError(f"{path} line {line}, column {column}: {why}: {shown}")


def check_folder(path: Path, flag: str) -> None:
    """Refuse a folder that cannot be made or written into, before anything is trained."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        above = f"cannot be written, since {there} " * (there != path)
        raise InputError(f"{flag} {path}: {above}is a file; name a folder")
    try:
        probe(there)  # as rows will be written
    except OSError as error:
        why = f"cannot be written ({error.strerror}); name another folder"
        raise InputError(f"{flag} {path}: {why}") from error


def write_output(path: Path, flag: str, text: str) -> None:
    """Write a file that an option names, whole or not at all, and say so.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    try:
        write_bytes(path, text.encode())
    except OSError as error:
        raise InputError(f"{flag} {path}: cannot be written: {error.strerror}") from error
    tell(f"wrote {path}")


def write_table(path: Path, flag: str, table: pd.DataFrame) -> None:
    """Write a table as CSV; see `write_output`.

    Raises
    ------
    InputError
        Also where a table program would run a cell as a formula.
    """
    for cell in table.select_dtypes(exclude="number").stack():
        if re.match(r"[=@]|[+-](?!\.?\d[\d.eE+-]*$)", str(cell)):
            raise InputError(
                f"{flag} {path}: a table program would run {str(cell)!r} as a formula; rename it"
            )
    write_output(path, flag, table.to_csv(index=False))


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that JSON cannot hold become null."""
    print(json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return None
    return value


def check_device(name: str) -> None:
    """Refuse a device that is not here.

    Raises
    ------
    InputError
        When torch knows no such device, or sees none of that number.
    """
    if name == "cpu":
        return
    import torch

    try:
        device = torch.device(name)
        if device.type != "cuda":
            raise RuntimeError
    except RuntimeError:
        raise InputError(f"--device {name}: give cpu, cuda, cuda:1, ...") from None
    there = torch.cuda.device_count()
    if (device.index or 0) >= there:
        raise InputError(
            f"--device {name}: torch {torch.__version__} sees {there} CUDA device(s) here; "
            "leave the option out to use the processor"
        )
