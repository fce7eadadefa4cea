"""fork(): copies of this worker that go on in other sandboxes.

For each branch the worker forks a helper, which sends the session's files and then its own memory
through a pipe; a fresh worker in the other sandbox takes both, and goes on as that helper. So all
branches begin at one moment, none waits for another, and the worker itself does not change."""

import errno
import os
import select
import signal
import sys

import troupe_state
import troupe_tree
from troupe_files import Refused, refusal

try:
    import _troupe  # only the jail's interpreter has it
except ImportError:
    _troupe = None

_SPARE = 4  # descriptors that sending a copy takes
_TICK = 0.02  # s: how soon it is noticed that a branch has gone


# --- the source ----------------------------------------------------------------------------------

def _fail(pipe, error):
    kind = error.kind if isinstance(error, Refused) else "unavailable"
    text = error.strerror if isinstance(error, OSError) else str(error)
    text = f"the session cannot be copied: {text}"
    try:
        troupe_tree.send_record(pipe, kind="failed", error=text, **{"as": kind})
    except OSError:
        pass


def _start(bridge, pipes, pipe, mask):
    """The helper's pid in the worker, None when there is none; (request, frame_bytes) in the
    branch."""
    bridge.saving = True
    try:
        pid = os.fork()
    except OSError as e:
        _fail(pipe, e)
        return None
    finally:
        bridge.saving = False
    if pid:
        return pid
    moved = None
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for other in pipes:
            if other != pipe:
                os.close(other)
        troupe_tree.send_files(pipe)
        troupe_tree.send_record(pipe, kind="image")
        moved = _troupe.send_image(pipe)
    except BaseException as e:
        _fail(pipe, e)
    if moved is None:
        os._exit(0)
    return moved


def _has_ended(pid):
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True  # the code ignores SIGCHLD


def _wait_for(helpers):
    """Until all {pid: pipe} have ended. One whose branch has gone is not waited for."""
    poll = select.poll()
    for pipe in helpers.values():
        poll.register(pipe, 0)
    while True:
        for pid in [pid for pid in helpers if _has_ended(pid)]:
            pipe = helpers.pop(pid)
            poll.unregister(pipe)
            os.close(pipe)  # the branch may be waiting for more
        if not helpers:
            return
        signal.sigtimedwait((signal.SIGCHLD,), _TICK)
        gone = [pipe for pipe, _ in poll.poll(0)]
        for pid, pipe in helpers.items():
            if pipe in gone:
                os.kill(pid, signal.SIGKILL)


def _start_all(bridge, pipes):
    """(request, frame_bytes) in a branch."""
    helpers = {}
    # The code's own handler is not to hear of the helpers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    try:
        for pipe in pipes:
            started = _start(bridge, pipes, pipe, mask)
            if isinstance(started, tuple):
                pipes.clear()  # there are none here
                helpers.clear()
                return started
            if started:
                helpers[started] = pipe
        for pipe in set(pipes) - set(helpers.values()):
            os.close(pipe)
        pipes.clear()
        _wait_for(helpers)
        return None
    finally:
        for pid, pipe in helpers.items():
            os.kill(pid, signal.SIGKILL)
            os.close(pipe)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Arrival:
    """In a branch: whom the host waits for, the new sandbox's limit, and what is yet to be done."""

    def __init__(self, moved, state):
        self.request, self.frame_bytes = moved
        self.restore = state.restore


def _take_pipes(count):
    """As many as there are descriptors for, at least one. Raises OSError."""
    pipes, lacking = [], None
    spare = [os.open("/", os.O_RDONLY) for _ in range(_SPARE)]
    for _ in range(count):
        try:
            pipes.append(_troupe.take_pipe())
        except OSError as e:
            lacking = e
            if e.errno != errno.EMFILE:
                break
    for number in spare:
        os.close(number)
    if not pipes:
        raise lacking
    return pipes


def send(bridge, count):
    """Makes `count` branches. None in the worker; an Arrival in each branch. Raises Refused."""
    pipes = []
    try:
        pipes = _take_pipes(count)
        state = troupe_state.State(pipes)
        try:
            sys.stdout.flush()
        except Exception:
            pass  # the code closed or replaced it
        moved = _start_all(bridge, pipes)
        return moved and Arrival(moved, state)
    except OSError as e:
        raise refusal(e, "the session cannot be copied") from None
    finally:
        for pipe in pipes:
            os.close(pipe)


# --- the target ----------------------------------------------------------------------------------

def take(bridge, request):
    """Ends this interpreter, to go on as the one that comes through a pipe. Returns never; raises
    Refused."""
    def words(text, kind):
        return bridge.pack({"op": "done", "id": request["id"], "error": text, "kind": kind})

    no_memory = words("the branch's memory limit is too small for the session", "over_budget")
    broken = words("the session's memory could not be taken over", "unavailable")
    pipe = None
    try:
        pipe = _troupe.take_pipe()
        troupe_tree.receive_files(pipe)
        _troupe.take_over(pipe, troupe_state.HOST, request["id"], bridge.max_frame, no_memory,
                          broken)
    except (LookupError, TypeError, ValueError) as e:
        raise Refused("corrupt", f"the session's files came malformed: {e}") from None
    except MemoryError:
        raise Refused("over_budget",
                      "the branch's memory limit is too small for the session's files") from None
    except OSError as e:
        if e.errno == errno.EXDEV:
            raise Refused("unavailable",
                          "the jail's zygote has been restarted since the session began") from None
        if e.errno == errno.ENODATA:
            raise Refused("unavailable",
                          "the sandbox that was branched ended meanwhile") from None
        raise refusal(e, "the branch cannot be made") from None
    finally:
        if pipe is not None:
            os.close(pipe)  # else the helper would wait for ever
