"""Methods and problems of the user's own: `kind: "my_pkg.my_module:MyMethod"`.

Naming one runs code that a data file names, so it is done only when the user allows it (`--allow-code`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

from simulator.problems import Problem
from simulator.spec import Spec
from simulator.strategies import Strategy
from simulator.units import UnitError


class _Own(Spec):
    """Stands for a class of the user's own until it is loaded; validation gives an instance of that class."""

    model_config = ConfigDict(extra="allow")

    base: ClassVar[type[BaseModel]]
    kind: str = Field(pattern=r"^[\w.]+:\w+$", description="package.module:Class")

    @model_validator(mode="wrap")
    @classmethod
    def _loaded(cls, data: Any, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:
        if isinstance(data, cls.base):
            return data
        named = str(data["kind"])
        if not (info.context or {}).get("allow_code"):
            raise UnitError(
                repr(named), "a shipped kind", "--allow-code lets a scenario load code of your own"
            )
        loaded = own_class(named, cls.base, (info.context or {}).get("folders", ()))
        return loaded.model_validate(data, strict=True, context=info.context)


class OwnStrategy(_Own):
    """A training method of the user's own."""

    base: ClassVar[type[BaseModel]] = Strategy


class OwnProblem(_Own):
    """A problem of the user's own."""

    base: ClassVar[type[BaseModel]] = Problem


FILES: set[str] = set()
"""Files of the user's code that have been loaded: what fails there is the user's to mend."""


def own_class(named: str, base: type[BaseModel], folders: Sequence[Path] = ()) -> type[BaseModel]:
    """The class that `package.module:Class` names, with that name as its `kind`.

    Args:
        named: where it is; looked for in the working directory, then in `folders`.
        base: what it must be a subclass of.
        folders: where the scenario file lies.

    Raises:
        UnitError: no such module or class, or it is no subclass of `base`.
    """
    module_name, _, class_name = named.partition(":")
    for folder in (Path.cwd(), *folders):  # the console script has neither
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        module = import_module(module_name)
        FILES.add(module.__file__ or "")
        found = getattr(module, class_name)
    except Exception as error:  # whatever the user's module raises is the user's to mend
        said = f"{type(error).__name__}: {error}"
        raise UnitError(f"{named!r}, {said}", "package.module:Class that can be imported") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UnitError(repr(named), f"a subclass of {base.__module__}.{base.__name__}")
    fields: dict[str, Any] = {"kind": (Literal[named], named)}
    return create_model(found.__name__, __base__=found, __module__=found.__module__, **fields)
