"""The house: lcc/README.md lists its rooms from top to bottom, and an import goes only to a room further down.

A room is a folder of modules; a module that stands in `lcc/` itself is a room of its own. Every import counts, wherever
it stands: in a function, for the type checker alone, or as a string that names a module and something in it (so
`lcc.cli` finds its commands).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = {"lcc": "lcc", "lcc_daemon": "daemon/lcc_daemon", "lcc_hook": "hook/lcc_hook"}
"""Each package's name, and its folder."""

ROUND = {("lcc_hook.client", "lcc_hook.unserved")}
"""The hook's program loads what else there is to do only where no daemon answers; that uses the program's own parts."""

DOORS = {"lcc.transcript", "lcc_daemon.dispatch"}
"""What leads into the rooms within its own room, whose other modules are what those rooms are built on."""

COMPUTED = {"lcc.cli", "lcc.transcript.formats"}
"""What imports by a table: the commands are named whole there, and the formats stand in the table's own room."""


@dataclass(frozen=True)
class Import:
    """One module that names another."""

    source: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def is_import_call(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))


@dataclass(frozen=True)
class House:
    """The modules of some packages, by name."""

    modules: dict[str, Path]

    def imports(self) -> Iterator[Import]:
        """Every import of one of these modules by another."""
        for name, path in self.modules.items():
            tree = ast.parse(path.read_bytes(), filename=str(path))
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            for node in ast.walk(tree):
                for target in self._named(node, package):
                    if target != name:
                        yield Import(name, target, getattr(node, "lineno", 0))

    def room(self, module: str) -> str:
        """The package that a module stands in; a package's own file stands in it; `lcc`'s modules are rooms."""
        if self.modules[module].name == "__init__.py":
            return module
        package = module.rpartition(".")[0]
        return module if package == "lcc" else package

    def _named(self, node: ast.AST, package: str) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from filter(None, (self._module(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -(node.level - 1) or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                found = self._module(f"{base}.{alias.name}")
                if found:
                    yield found
        elif is_import_call(node):
            words = (word.value for word in node.args if isinstance(word, ast.Constant))
            yield from (word for word in words if word in self.modules)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name, _, attribute = node.value.partition(":")
            if name in self.modules and attribute.isidentifier():
                yield name

    def _module(self, name: str) -> str | None:
        """The module that ``name``, or the first part of it, stands for; None where it is not of this house."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name or None


def house_in(folders: dict[str, Path]) -> House:
    """The house of the packages in ``folders``."""
    modules = {}
    for package, folder in folders.items():
        for path in folder.rglob("*.py"):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return House(modules)


def circles(arrows: set[tuple[str, str]]) -> set[frozenset[str]]:
    """The sets of names that can all be reached from each other."""
    nexts: dict[str, set[str]] = {}
    for source, target in arrows:
        nexts.setdefault(source, set()).add(target)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            fresh = nexts.get(todo.pop(), set()) - seen
            seen |= fresh
            todo += fresh
        return seen

    reach = {name: reached(name) for name in nexts}
    return {
        frozenset(other for other in reach[name] if name in reach.get(other, ()))
        for name in nexts
        if name in reach[name]
    }


def listed() -> list[str]:
    """The rooms of lcc/README.md from top to bottom, as paths."""
    text = (CHECKOUT / "lcc" / "README.md").read_text(encoding="utf-8")
    section = text.partition("## The rooms, for builders\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.M)


def module_of(room: str) -> str:
    """The name that Python has for a room's path."""
    for package, folder in PACKAGES.items():
        if room.startswith(f"{folder}/"):
            return ".".join([package, *room.removeprefix(f"{folder}/").removesuffix(".py").split("/")]).rstrip(".")
    raise AssertionError(f"lcc/README.md lists {room}, which is in no package")


@pytest.fixture(scope="module")
def house() -> House:
    return house_in({name: CHECKOUT / folder for name, folder in PACKAGES.items()})


@pytest.fixture(scope="module")
def upwards(house: House) -> list[Import]:
    """The imports that go to a room further up in the list, or to none that is listed.

    `lcc` itself holds nothing but its name.
    """
    order = {module_of(room): number for number, room in enumerate(listed())}
    found = []
    for each in house.imports():
        source, target = house.room(each.source), house.room(each.target)
        leads_in = each.source in DOORS and target.startswith(f"{source}.")
        if source == target or target == "lcc" or leads_in:
            continue
        if order.get(source, len(order)) >= order.get(target, -1):
            found.append(each)
    return found


def test_the_list_of_rooms_is_the_folders_that_there_are() -> None:
    folders = {
        path.relative_to(CHECKOUT)
        for package in PACKAGES.values()
        for path in (CHECKOUT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    rooms = {f"{path.parent}/" for path in folders if path.parent != Path("lcc")}
    rooms |= {str(path) for path in folders if path.parent == Path("lcc") and path.suffix == ".py"}
    assert sorted(listed()) == sorted(rooms - {"lcc/__init__.py"})


def test_imports_run_downwards(upwards: list[Import]) -> None:
    assert not upwards, "\n".join(map(str, upwards))


def test_no_modules_import_each_other_in_a_circle(house: House) -> None:
    arrows = {(each.source, each.target) for each in house.imports()} - ROUND
    assert circles(arrows) == set()


def test_no_import_is_hidden(house: House) -> None:
    """A name that is put together when it is needed is seen by no test: two places may, each by its own table."""
    hidden = {
        name
        for name, path in house.modules.items()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if is_import_call(node) and not all(isinstance(word, ast.Constant) for word in node.args)
    }
    assert hidden == COMPUTED


def test_what_is_excused_is_there(house: House) -> None:
    """An excuse goes with what it excused."""
    imports = set(house.imports())
    assert {(each.source, each.target) for each in imports} >= ROUND
    assert {each.source for each in imports if each.target.startswith(f"{house.room(each.source)}.")} >= DOORS


FORMS = [
    "import lcc.low.ground",
    "import lcc.low.ground as ground",
    "from lcc.low.ground import thing",
    "from lcc.low import ground",
    "from .low import ground",
    "from .low.ground import thing",
    "def f():\n    from lcc.low.ground import thing",
    "class C:\n    def f(self):\n        import lcc.low.ground",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lcc.low.ground import Thing",
    "try:\n    pass\nexcept ImportError:\n    from lcc.low.ground import thing",
    "COMMAND = 'lcc.low.ground:thing'",
    "import importlib\nimportlib.import_module('lcc.low.ground')",
    "from importlib import import_module\nimport_module('lcc.low.ground')",
]


@pytest.mark.parametrize("code", FORMS)
def test_every_form_of_import_is_seen(tmp_path: Path, code: str) -> None:
    (tmp_path / "low").mkdir()
    for name in ("__init__.py", "low/__init__.py", "low/ground.py"):
        (tmp_path / name).touch()
    (tmp_path / "top.py").write_text(code + "\n")
    made = house_in({"lcc": tmp_path})
    assert [(each.source, each.target) for each in made.imports()] == [("lcc.top", "lcc.low.ground")]
    assert (made.room("lcc.top"), made.room("lcc.low.ground")) == ("lcc.top", "lcc.low")


@pytest.mark.parametrize(
    "code", ["import json", "from lccc.low import ground", "'lcc.ground: no such file'", "'lcc.ground'"]
)
def test_what_is_no_import_of_ours_is_none(tmp_path: Path, code: str) -> None:
    (tmp_path / "ground.py").touch()
    (tmp_path / "top.py").write_text(code + "\n")
    assert list(house_in({"lcc": tmp_path}).imports()) == []


def test_a_circle_is_found_however_long() -> None:
    assert circles({("a", "b"), ("b", "c")}) == set()
    assert circles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == {frozenset("abc")}
    assert circles({("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")}) == {frozenset("ab"), frozenset("cd")}
