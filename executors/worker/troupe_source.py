"""From a snippet's text to code objects: parse, protect the answering tool, split off the value."""

import ast
import linecache

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class ToolErased(NameError):
    """The snippet assigns to the tool that ends the run, and never calls it."""


def _binds(function, name):
    """True when `name` is a parameter or a local variable of the function."""
    args = function.args
    every = args.posonlyargs + args.args + args.kwonlyargs + [args.vararg, args.kwarg]
    if any(a is not None and a.arg == name for a in every):
        return True
    body = function.body if isinstance(function.body, list) else [function.body]
    local = False
    for node in (n for stmt in body for n in ast.walk(stmt)):
        if isinstance(node, ast.Global) and name in node.names:
            return False
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            local = True
    return local


class _Uses(ast.NodeTransformer):
    """Finds a tool's calls and assignments in the module's scope; renames the variable."""

    def __init__(self, name, rename=False):
        self.name = name
        self.rename = rename
        self.called = False
        self.assigned = False

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == self.name:
            self.called = True
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
            return node
        return self.generic_visit(node)

    def visit_Name(self, node):
        if node.id == self.name:
            self.assigned = self.assigned or isinstance(node.ctx, ast.Store)
            if self.rename:
                node.id += "_variable"
        return node

    def visit_comprehension(self, node):
        before = self.assigned
        node = self.generic_visit(node)
        self.assigned = before  # its variables are its own
        return node

    def generic_visit(self, node):
        if isinstance(node, _FUNCTIONS) and _binds(node, self.name):
            return node
        if isinstance(node, _DEFINITIONS) and node.name == self.name:
            self.assigned = True
        if isinstance(node, ast.alias) and (node.asname or node.name) == self.name:
            self.assigned = True
        return super().generic_visit(node)


def protect(tree, name):
    """Renames a variable called like the answering tool, so that the tool stays callable."""
    uses = _Uses(name)
    uses.visit(tree)
    if uses.assigned and not uses.called:
        raise ToolErased(f"'{name}' is the tool that gives the answer: assigning to it would erase"
                         f" it. Use another variable name, and call {name}(...) with the answer.")
    if uses.assigned:
        _Uses(name, rename=True).visit(tree)


def filename_of(snippet):
    return f"<snippet {snippet}>"


def remember(filename, code):
    """Lets tracebacks, inspect and pdb show the snippet's lines."""
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)


def forget(filename):
    del linecache.cache[filename]


def compile_expression(code, filename, ending_tools):
    """The code of a snippet that is one expression on one line, without the tree that takes as long
    again; None when it is not, or when its tree has to be looked at."""
    if "\n" in code or "=" in code or not code[:1].isprintable() or code[:1] == " ":
        return None
    if any(name in code for name in ending_tools):
        return None
    try:
        return compile(code, filename, "eval", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def compile_snippet(tree, filename):
    """(code of the statements or None, code of the last expression or None)."""
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    body = compile(tree, filename, "exec", dont_inherit=True) if tree.body or not last else None
    return body, last and compile(last, filename, "eval", dont_inherit=True)
