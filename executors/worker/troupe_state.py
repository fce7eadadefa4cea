"""What a process has outside its memory and its files, for a copy of it to have too."""

import fcntl
import os
import stat
import time

from troupe_files import Refused, refusal

try:
    import _troupe  # only the jail's interpreter has it
except ImportError:
    _troupe = None

_STANDARD = range(5)  # descriptors that each worker has: input, output twice, host, init
HOST = 3


def _identity(info):
    return info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode)


def remember(numbers=_STANDARD):
    """When the worker has been given these descriptors, before the code can change them. The first
    time it has been done before this is called."""
    _troupe.remember(numbers[0], numbers[-1] + 1)


def remember_host():
    remember((HOST,))


def _info(number):
    try:
        return os.fstat(number)
    except OSError:
        return None


def _check_threads():
    for _ in range(10):  # one that has just been joined is there a moment longer
        if len(os.listdir("/proc/self/task")) == 1:
            return
        time.sleep(0.005)
    raise Refused("denied", "other threads are running, which a copy would lose")


def _check_memory():
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        for line in maps:
            parts = line.split(maxsplit=5)
            path = parts[5].strip() if len(parts) > 5 else ""
            if not parts[1].endswith("s"):
                continue
            if "w" in parts[1] or path.endswith(" (deleted)"):
                raise Refused("denied", f"memory is shared with other processes: {path}")
            if not os.path.exists(path):  # the mounts of a zygote that has died went with it
                raise Refused("unavailable", f"a file that it has mapped is gone: {path}")


class _Descriptor:
    """One that the code has opened, and how to open it again."""

    def __init__(self, number, info, given):
        self.number = number
        self.inheritable = os.get_inheritable(number)
        self.copy_of = next((n for n, own in given.items() if own == _identity(info)), None)
        if self.copy_of is not None:
            return
        self.path = os.readlink(f"/proc/self/fd/{number}")
        self._check(info)
        self.flags = fcntl.fcntl(number, fcntl.F_GETFL)
        self.offset = os.lseek(number, 0, os.SEEK_CUR) if stat.S_ISREG(info.st_mode) else 0

    def _check(self, info):
        mode = info.st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISCHR(mode)):
            raise Refused("denied", f"descriptor {self.number} is no file that can be opened"
                                    f" again: {self.path}")
        try:
            found = _identity(os.stat(self.path))
        except OSError:
            found = None
        if found != _identity(info):
            raise Refused("denied", f"descriptor {self.number} is a file that has no name any"
                                    f" more: {self.path}")

    def open(self):
        if self.copy_of is not None:
            source = self.copy_of
        else:
            source = os.open(self.path, self.flags)
            if self.offset:
                os.lseek(source, self.offset, os.SEEK_SET)
        if source != self.number:
            os.dup2(source, self.number, self.inheritable)
            if self.copy_of is None:
                os.close(source)
        else:
            os.set_inheritable(source, self.inheritable)


class State:
    """What a process has outside its memory, but for its files. Raises Refused."""

    def __init__(self, pipes):
        _check_threads()
        _check_memory()
        try:
            self.directory = os.getcwd()
        except FileNotFoundError:
            raise Refused("denied", "the working directory has been removed") from None
        self.mask = os.umask(0)
        os.umask(self.mask)
        found = {n: _info(n) for n in map(int, os.listdir("/proc/self/fd")) if n not in pipes}
        found = {n: info for n, info in found.items() if info}  # without that of the listing
        self.closed = [n for n in _STANDARD if n not in found]
        given = _troupe.given()
        self.descriptors = [_Descriptor(n, found[n], given) for n in sorted(found)
                            if given.get(n) != _identity(found[n])]

    def restore(self):
        """In another sandbox, that has only the worker's own descriptors."""
        for number in self.closed:
            os.close(number)
        for descriptor in self.descriptors:
            try:
                descriptor.open()
            except OSError as e:
                raise refusal(e, f"descriptor {descriptor.number}") from None
        try:
            os.chdir(self.directory)
        except OSError as e:
            raise refusal(e, self.directory) from None
        os.umask(self.mask)
