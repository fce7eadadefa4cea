"""Tools as Python functions: what a snippet calls, and the final answer that ends it."""

import inspect
import keyword

import troupe_bridge
import troupe_values

_REQUIRED = object()
_OMITTED = object()


class FinalAnswer(BaseException):
    """Ends the snippet from anywhere; `except Exception` does not catch it."""


class Answers:
    """The snippet's final answer, once there is one. The first one counts."""

    def __init__(self):
        self.given = False
        self.value = None
        self.tagged = None

    def give(self, name, value):
        if not self.given:
            try:
                self.tagged = troupe_values.encode(value)
            except troupe_values.NotSerialisable as e:
                raise TypeError(f"{name}: the answer cannot be sent: {e}. Give numbers, text, lists,"
                                " dicts, dates or other plain values.") from None
            self.value = value
            self.given = True
        raise FinalAnswer


class _Binder:
    """Binds a call's arguments to a JSON Schema's properties, in the schema's order."""

    def __init__(self, name, schema):
        self.name = name
        required = set(schema.get("required") or ())
        properties = schema.get("properties") or {}
        self.defaults = {}
        for key, prop in properties.items():
            default = prop.get("default", _OMITTED) if isinstance(prop, dict) else _OMITTED
            missing = _REQUIRED if key in required and default is _OMITTED else default
            self.defaults[key] = missing

    def bind(self, args, kwargs):
        names = list(self.defaults)
        if len(args) > len(names):
            raise TypeError(f"{self.name}() takes {len(names)} positional arguments but"
                            f" {len(args)} were given")
        bound = dict(zip(names, args))
        for key, value in kwargs.items():
            if key in bound:
                raise TypeError(f"{self.name}() got multiple values for argument '{key}'")
            if key not in self.defaults:
                raise TypeError(f"{self.name}() got an unexpected keyword argument '{key}';"
                                f" it takes: {', '.join(names) or 'none'}")
            bound[key] = value
        return self._complete(bound)

    def _complete(self, bound):
        missing = [k for k, d in self.defaults.items() if k not in bound and d is _REQUIRED]
        if missing:
            raise TypeError(f"{self.name}() missing required argument:"
                            f" {', '.join(map(repr, missing))}")
        for key, default in self.defaults.items():
            if key not in bound and default is not _OMITTED:
                bound[key] = default
        return bound

    def signature(self):
        """For help() and inspect; None when the names are no Python parameters."""
        if any(not k.isidentifier() or keyword.iskeyword(k) for k in self.defaults):
            return None
        parameters, optional = [], False
        for key, default in self.defaults.items():
            optional = optional or default is not _REQUIRED
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            shown = inspect.Parameter.empty
            if optional:
                shown = None if default in (_REQUIRED, _OMITTED) else default
            parameters.append(inspect.Parameter(key, kind, default=shown))
        return inspect.Signature(parameters)


class _Shown:
    """What inspect finds under a tool: its signature, made only for those who look."""

    def __init__(self, binder):
        self._binder = binder

    def __call__(self, *args, **kwargs):
        raise TypeError(f"call {self._binder.name} itself")

    @property
    def __signature__(self):
        return self._binder.signature()


def _encode_arguments(name, bound):
    try:
        return {key: troupe_values.encode(value) for key, value in bound.items()}
    except troupe_values.NotSerialisable as e:
        raise TypeError(f"{name}: an argument cannot be sent: {e}") from None


def make_tool(spec, bridge, answers):
    """A Python function for one tool spec."""
    name, schema = spec["name"], spec.get("parameters") or {}
    binder = _Binder(name, schema)
    ends_run = bool(spec.get("ends_run"))
    plain_answer = ends_run and name == "final_answer" and list(binder.defaults) == ["answer"]

    def tool(*args, **kwargs):
        bound = binder.bind(args, kwargs)
        if plain_answer:
            answers.give(name, bound.get("answer"))
        arguments = _encode_arguments(name, bound)
        try:
            value = troupe_values.decode(bridge.call(name, arguments))
        except troupe_bridge.FrameTooLarge as e:
            raise TypeError(f"{name}: the arguments are too large: {e}") from None
        if ends_run:
            answers.give(name, value)
        return value

    tool.__name__ = tool.__qualname__ = name
    tool.__module__ = "__main__"
    tool.__doc__ = spec.get("description")
    tool.__wrapped__ = _Shown(binder)
    return tool
