"""Commands of the host: programs run beside the interpreter, which waits for them.

A command writes to the same pipe as the interpreter does: the host drains it always, so nobody
waits for a background process that keeps it open."""

import os
import signal
import sys
import time

import troupe_files

GROUP_SECONDS = 1


def _stdin_file(text):
    """A descriptor to read the text from. A file: a pipe would need a thread that feeds it."""
    if not text:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    name = f".troupe-{os.urandom(8).hex()}"
    directory = troupe_files.open_directory("")
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=directory)
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        view = memoryview(text.encode())
        while view:
            view = view[os.write(file, view):]
        os.lseek(file, 0, os.SEEK_SET)
        return file
    except BaseException:
        os.close(file)
        raise


def _start(request):
    import subprocess  # here: most sandboxes never need it

    os.close(troupe_files.open_directory(request["cwd"]))  # it is there, below the work directory
    stdin = _stdin_file(request["stdin"])
    try:
        return subprocess.Popen(request["argv"], stdin=stdin, start_new_session=True,
                                cwd=os.path.join(troupe_files.WORK, request["cwd"]))
    finally:
        os.close(stdin)


def _wait(child, interrupts):
    """Waits for the child alone; kills its process group when an interrupt comes first."""
    def ended():
        try:
            # WNOWAIT: cut short by an interrupt, the wait has changed nothing.
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass

    if interrupts.wait(ended):
        return False
    os.killpg(child.pid, signal.SIGKILL)
    return True


def _await_group(leader):
    """Until the last of those that were killed is gone: its last write still reaches the pipe, and
    would stand in the output of the next command."""
    until = time.monotonic() + GROUP_SECONDS
    try:
        while time.monotonic() < until:
            os.killpg(leader, 0)
            time.sleep(0.001)
    except OSError:
        pass  # nobody is left, or nobody of ours


def _exit(child, killed):
    _, status = os.waitpid(child.pid, 0)
    child.returncode = status  # the Popen object need not care any more
    if killed:
        _await_group(child.pid)
    if os.WIFSIGNALED(status):
        return {"status": 0, "signal": os.WTERMSIG(status), "killed": killed}
    return {"status": os.WEXITSTATUS(status), "signal": 0, "killed": False}


def run(request, interrupts):
    """The members of the reply: "exit", or "error" when there was no child or no status."""
    try:
        sys.stdout.flush()  # what was printed before comes before
    except Exception:
        pass  # a snippet closed or replaced it
    interrupts.install()
    with interrupts:
        try:
            interrupts.pending = False
            interrupts.armed = True
            child = _start(request)
            return {"exit": _exit(child, _wait(child, interrupts))}
        except troupe_files.Refused as e:
            return {"error": f"cwd: {e}"}
        except ChildProcessError:
            return {"error": "its exit status went to a wait of the code's own"}
        except (OSError, ValueError) as e:
            return {"error": f"{request['argv'][0]}: {getattr(e, 'strerror', None) or e}"}
        finally:
            interrupts.armed = False
            interrupts.pending = False
