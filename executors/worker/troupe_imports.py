"""The import allow-list: a courtesy to the model, which learns early what it can use. The wall
around the snippet is the kernel's."""

import builtins
import importlib.util
import types


def allows(rules, module):
    """`a.b` allows itself and its parents, `a.*` all of a and a itself, `*` everything."""
    for rule in rules:
        if rule == "*" or rule == module or rule.startswith(module + "."):
            return True
        if rule.endswith(".*") and module.startswith(rule[:-1]):
            return True
    return False


def missing(rules):
    """The listed packages that are not installed."""
    roots = sorted({rule.split(".")[0] for rule in rules if rule != "*"})
    return [root for root in roots if importlib.util.find_spec(root) is None]


def _refuse(module, rules):
    raise ImportError(f"Import of '{module}' is not allowed. Allowed imports: {', '.join(rules)}",
                      name=module)


def guarded_builtins(rules):
    """Builtins for the snippets' own globals: modules that they import keep the real ones."""
    guarded = types.ModuleType("builtins")
    vars(guarded).update(vars(builtins))
    real_import = builtins.__import__

    def import_(name, globals=None, locals=None, fromlist=(), level=0):
        # C code that imports for itself (time.strptime) comes here too, with a list: statements
        # never pass one.
        by_statement = not isinstance(fromlist, list)
        if by_statement and level == 0 and not allows(rules, name):
            _refuse(name, rules)
        module = real_import(name, globals, locals, fromlist, level)
        for item in fromlist or ():
            part = f"{name}.{item}"
            found = getattr(module, item, None)
            if isinstance(found, types.ModuleType) and found.__name__ == part:
                if not allows(rules, part):
                    _refuse(part, rules)
        return module

    guarded.__import__ = import_
    return guarded
