"""An exception as the model is told about it."""

import linecache
import re
import traceback

import troupe_values

_MAX_MESSAGE = 4 << 10
_MAX_TRACEBACK = 16 << 10
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


def describe(error, filename):
    """{type, message, line, traceback}; bounded, whatever the exception's methods do."""
    line = _line_of(error, filename)
    message = _message_of(error)
    if isinstance(error, SyntaxError):
        message = str(error.msg)
    elif isinstance(error, AssertionError) and not message and line:
        message = linecache.getline(filename, line).strip()
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
