"""An exception as the model is told about it."""

import ast
import itertools
import linecache
import re
import traceback

import troupe_values

_MAX_MESSAGE = 4 << 10
_MAX_TRACEBACK = 16 << 10
_MAX_KEYS = 500  # comparing more, or longer ones, would take noticeable time
_MAX_KEY = 200
_SNIPPET = re.compile(r"<snippet \d+>")


def _message_of(error):
    try:
        text = str(error)
        return text if type(text) is str else str.__str__(text)
    except Exception as e:
        return f"<str() of the exception raised {type(e).__name__}>"


def _own_frames(stack, filename):
    """The snippets' frames; the current one goes by the plain name."""
    own = [f for f in stack if _SNIPPET.fullmatch(f.filename)]
    for frame in own:
        frame.line  # looked up now, by the real name
        if frame.filename == filename:
            frame.filename = "<snippet>"
    return traceback.StackSummary.from_list(own)


def _trim(report, filename, seen):
    if report is None or id(report) in seen:
        return
    seen.add(id(report))
    report.stack = _own_frames(report.stack, filename)
    if getattr(report, "filename", None) == filename:  # of a SyntaxError
        report.filename = "<snippet>"
    for linked in (report.__cause__, report.__context__, *(getattr(report, "exceptions", 0) or ())):
        _trim(linked, filename, seen)


def _line_of(error, filename):
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno or 0
    line, tb = 0, error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def _plain(node, frame):
    """What a constant, a name or `x[y]` of these stands for, where finding out runs no code."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return (frame.f_locals if node.id in frame.f_locals else frame.f_globals)[node.id]
    if isinstance(node, ast.Subscript):
        container, key = _plain(node.value, frame), _plain(node.slice, frame)
        if type(container) in (dict, list, tuple) and type(key) in (str, int):
            return container[key]
    raise LookupError


def _searched(frame, line, key):
    """The dicts in which the snippet's line has looked for the key in vain."""
    tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and node.lineno <= line <= node.end_lineno:
            try:
                container, wanted = _plain(node.value, frame), _plain(node.slice, frame)
            except LookupError:
                continue
            same = type(wanted) is type(key) and wanted == key
            if same and type(container) is dict and key not in container:
                yield container


def _near_key(error):
    """The key that was probably meant, in words; nothing where the dict is not a snippet's own."""
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    key = error.args[0] if len(error.args) == 1 else None
    if type(key) not in (str, int) or not _SNIPPET.fullmatch(tb.tb_frame.f_code.co_filename):
        return ""
    import difflib  # rarely needed, and each sandbox would pay for it
    for searched in _searched(tb.tb_frame, tb.tb_lineno, key):
        names = {str(k): k for k in itertools.islice(searched, _MAX_KEYS) if type(k) in (str, int)}
        short = [name for name in names if len(name) <= _MAX_KEY]
        if near := difflib.get_close_matches(str(key)[:_MAX_KEY], short, n=1):
            return f" (did you mean {names[near[0]]!r}?)"
    return ""


def describe(error, filename):
    """{type, message, line, traceback}; bounded, whatever the exception's methods do."""
    line = _line_of(error, filename)
    message = _message_of(error)
    if isinstance(error, SyntaxError):
        message = str(error.msg)
    elif isinstance(error, AssertionError) and not message and line:
        message = linecache.getline(filename, line).strip()
    elif type(error) is KeyError:
        try:
            message += _near_key(error)
        except Exception:
            pass  # the message is true without the hint
    elif isinstance(error, SystemExit):
        message = f"the code asked to exit with status {message or 0}; the sandbox goes on"
    try:
        report = traceback.TracebackException(type(error), error, error.__traceback__, limit=-200)
        _trim(report, filename, set())
        text = "".join(report.format())
    except Exception as e:
        text = f"{type(error).__name__}: {message}\n(no traceback: {type(e).__name__})\n"
    return {"type": type(error).__name__,
            "message": troupe_values.shorten(troupe_values._text(message), _MAX_MESSAGE),
            "line": line,
            "traceback": troupe_values.shorten(troupe_values._text(text), _MAX_TRACEBACK)}
