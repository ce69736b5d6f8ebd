"""YAML 1.2 as plain data, with the line and column of every field.

PyYAML parses the text; which plain words are numbers, booleans or null follows the core schema of YAML 1.2.2, section
10.3.2: `no`, `on`, `12:30`, `1_000` and dates are strings. The merge key `<<` of YAML 1.1 is still understood, since
suite files in use have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from stateval.errors import SuiteError
from stateval.records.source import Problem, Source

Path = tuple[str | int, ...]
"""Where a value stands in a document: the keys and list positions that lead to it."""

_TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_ALIASED_NODES = 100_000
_TOO_LONG = 10**4300

_PATTERNS = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    "int": (re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), list("-+0123456789")),
    "float": (
        re.compile(
            r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
        ),
        list("-+.0123456789"),
    ),
    "merge": (re.compile(r"<<\Z"), ["<"]),
}


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The data of one document, and where in the text each field begins (line and column count from 1).

    A mapping's entry begins at its key. `path` is the file's name for messages.
    """

    value: Any
    path: str | None
    marks: dict[Path, tuple[int, int]] = field(repr=False)

    def source(self, path: Path) -> Source:
        """The place of a field; of the nearest field around it where the field itself is not in the text."""
        known = path
        while known and known not in self.marks:
            known = known[:-1]
        line, column = self.marks.get(known, (1, 1))
        return Source(path=self.path, line=line, column=column, field=dotted(path) or None)


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: `gate.conditions.0.value`."""
    return ".".join(str(part) for part in path)


def read_yaml(text: bytes | str, path: str | None = None) -> YamlDocument:
    """The one document in this text.

    Raises SuiteError, naming file, line and field: text that is no UTF-8 or no YAML, an empty text, several documents,
    keys that are given twice or are no scalars, tags that stand for more than plain data, aliases that contain
    themselves or unfold to more than 100,000 values.
    """
    decoded = _decode(text, path)
    try:
        node = _CoreLoader(decoded).get_single_node()
        if node is None:
            raise SuiteError([Problem("the file is empty", Source(path))])
        reading = _Reading(path)
        value = reading.value(node, ())
    except yaml.YAMLError as error:
        raise SuiteError([_problem(error, decoded, path)]) from None
    except RecursionError:
        raise SuiteError([Problem("the file is nested too deeply", Source(path))]) from None
    if reading.problems:
        raise SuiteError(reading.problems)
    return YamlDocument(value, path, reading.marks)


def read_value(text: str) -> Any:
    """A value as it is written after `key:`; what `--set key=value` takes. Raises SuiteError like `read_yaml`."""
    return read_yaml(text).value if text.strip() else None


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's parser with the words of the core schema in place of those of YAML 1.1."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _kind, (_pattern, _first) in _PATTERNS.items():
    _CoreLoader.add_implicit_resolver(_TAG + _kind, _pattern, _first)


class _Reading:
    """Turns nodes into data, collecting marks and problems on the way."""

    def __init__(self, path: str | None) -> None:
        self.marks: dict[Path, tuple[int, int]] = {}
        self.problems: list[Problem] = []
        self._path = path
        self._open: set[int] = set()
        self._met: set[int] = set()
        self._aliased = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.marks.setdefault(path, _place(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            return self._refuse(node, path, "the alias stands inside of what it stands for")
        if self._is_too_much(node):
            raise SuiteError([Problem("the aliases unfold to more than 100,000 values", self._source(node, path))])
        self._open.add(id(node))
        try:
            return self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        finally:
            self._open.discard(id(node))

    def _is_too_much(self, node: yaml.Node) -> bool:
        if id(node) in self._met:
            self._aliased += 1 + len(node.value)
        self._met.add(id(node))
        return self._aliased > _MOST_ALIASED_NODES

    def _sequence(self, node: yaml.Node, path: Path) -> Any:
        if node.tag != _TAG + "seq":
            return self._refuse(node, path, _unknown_tag(node))
        return [self.value(item, (*path, position)) for position, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> Any:
        if node.tag != _TAG + "map":
            return self._refuse(node, path, _unknown_tag(node))
        own: dict[str, Any] = {}
        parents = [value for key, value in node.value if key.tag == _TAG + "merge"]
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, path, "a key must be a word, not a list or a mapping")
            elif key_node.tag != _TAG + "merge":
                self._entry(own, key_node, value_node, (*path, _text(key_node)))
        return self._merged(parents, path) | own

    def _entry(self, own: dict[str, Any], key_node: yaml.ScalarNode, value_node: yaml.Node, path: Path) -> None:
        key = _text(key_node)
        if key in own:
            self._refuse(key_node, path, f"the key is given twice (first in line {self.marks[path][0]})")
            return
        self.marks.setdefault(path, _place(key_node))
        own[key] = self.value(value_node, path)

    def _merged(self, nodes: list[yaml.Node], path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for parent in (
            one for node in nodes for one in (node.value if isinstance(node, yaml.SequenceNode) else [node])
        ):
            if isinstance(parent, yaml.MappingNode):
                merged = (self.value(parent, path) or {}) | merged
            else:
                self._refuse(parent, path, "`<<` takes a mapping or a list of mappings")
        return merged

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        try:
            match node.tag.removeprefix(_TAG):
                case "str" | "merge":
                    return _text(node)
                case "null" if _fits("null", node):
                    return None
                case "bool" if _fits("bool", node):
                    return node.value.lower() == "true"
                case "int" if _fits("int", node):
                    return _whole_number(node.value)
                case "float" if _fits("float", node) or _fits("int", node):
                    return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            return self._refuse(node, path, "the number is too long")
        return self._refuse(node, path, _unknown_tag(node))

    def _refuse(self, node: yaml.Node, path: Path, message: str) -> None:
        self.problems.append(Problem(message, self._source(node, path)))

    def _source(self, node: yaml.Node, path: Path) -> Source:
        line, column = _place(node)
        return Source(self._path, line, column, dotted(path) or None)


def _text(node: yaml.ScalarNode) -> str:
    """The text, in which a pair of escaped surrogates (`"\\ud83d\\ude00"`, as JSON writes it) is one character."""
    text = str(node.value)
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _fits(kind: str, node: yaml.ScalarNode) -> bool:
    return _PATTERNS[kind][0].match(node.value) is not None


def _whole_number(text: str) -> int:
    """The integer. Raises ValueError where it has more than 4,300 digits, as Python does for decimal ones."""
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    number = int(text, 10) if base == 10 else int(text[2:], base)
    if abs(number) >= _TOO_LONG:
        raise ValueError("more than 4,300 digits")
    return number


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _unknown_tag(node: yaml.Node) -> str:
    tag = node.tag.replace(_TAG, "!!")
    return f"the tag `{tag}` does not fit here: a suite file holds text, numbers, booleans, lists and mappings only"


def _decode(text: bytes | str, path: str | None) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise SuiteError([Problem("the text is not UTF-8", Source(path, line))]) from None


def _problem(error: yaml.YAMLError, text: str, path: str | None) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        return Problem(f"the character U+{code:04X} is not allowed in YAML", Source(path, line))
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = Source(path, mark.line + 1, mark.column + 1) if mark else Source(path)
        return Problem(_in_plain_words(error), place)
    return Problem(f"this is no YAML: {error}", Source(path))


def _in_plain_words(error: yaml.MarkedYAMLError) -> str:
    said = " ".join(_sentences(error))
    if "\\t" in said:
        return "a tab stands where YAML wants spaces"
    if "single document" in said:
        return "a second document begins here (`---`); a suite file has one"
    if "mapping values are not allowed here" in said:
        return "a colon makes this a second `key: value` in one line; put the text in quotes, or mend the indentation"
    return f"this is no YAML: {said}"


def _sentences(error: yaml.MarkedYAMLError) -> Iterator[str]:
    if error.context:
        yield error.context + ","
    if error.problem:
        yield error.problem
