"""What may stand where in a scenario: reads the annotations of specs, through unions, lists and mappings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel


def alternatives(annotation: Any) -> Iterator[Any]:
    """The types that an annotation allows, one by one; a tuple of annotations allows what any does."""
    if isinstance(annotation, tuple):
        for one in annotation:
            yield from alternatives(one)
    elif get_origin(annotation) is Annotated:
        yield from alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (tuple, dict, list, Literal) or not get_args(annotation):
        yield annotation
    else:
        for one in get_args(annotation):
            yield from alternatives(one)


def models(annotation: Any) -> list[type[BaseModel]]:
    """The models that may stand there."""
    return [one for one in alternatives(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]


def takes_mapping(annotation: Any) -> bool:
    """Whether a mapping may stand there."""
    return any(get_origin(one) is dict for one in alternatives(annotation)) or bool(models(annotation))


def below(annotation: Any, step: str | int, tags: Collection[str] = ()) -> tuple[Any, ...]:
    """What may stand at a key or an index of a value.

    Args:
        annotation: of the value.
        step: key or index.
        tags: the value's own `kind`, if known: it tells which model the value is.
    """
    if isinstance(step, int):
        lists = [one for one in alternatives(annotation) if get_origin(one) in (tuple, list)]
        items = (item for one in lists for item in get_args(one) if item is not Ellipsis)
        return tuple(alternatives(tuple(items)))
    known = models(annotation)
    meant = [model for model in known if not _kinds(model).isdisjoint(tags)] or known
    fields = [one for model in meant for one in _fields(model).get(step, ())]
    values = [get_args(one)[1] for one in alternatives(annotation) if get_origin(one) is dict]
    return (*fields, *alternatives(tuple(values)))


@cache
def _fields(model: type[BaseModel]) -> dict[str, tuple[Any, ...]]:
    """What may stand at each key of a model."""
    fields = model.model_fields.items()
    return {field.alias or name: tuple(alternatives(field.annotation)) for name, field in fields}


TAGS = ("kind", "graph")
"""Keys by which unions of specs are told apart."""


@cache
def _kinds(model: type[BaseModel]) -> frozenset[str]:
    """The values of its tag that select a model."""
    fields = (model.model_fields.get(tag) for tag in TAGS)
    literals = (field.annotation for field in fields if field and get_origin(field.annotation) is Literal)
    return frozenset(str(one) for literal in literals for one in get_args(literal))


def _at(spec: Any, loc: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """The models that may stand at a location of pydantic's, which names branches of unions on its way."""
    annotation = spec
    for step in loc:
        known = models(annotation)
        named = tuple(model for model in known if step in _kinds(model) or step == model.__name__)
        annotation = named or below(annotation, step) or annotation
    return models(annotation)


def keys(spec: Any, loc: tuple[int | str, ...]) -> set[str]:
    """The keys known at a location."""
    return {key for model in _at(spec, loc) for key in _fields(model)}


def kinds(spec: Any, loc: tuple[int | str, ...]) -> set[str]:
    """The kinds known at a location."""
    return {kind for model in _at(spec, loc) for kind in _kinds(model)}
