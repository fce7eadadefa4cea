"""Files below the work directory, for the host: put, and got back, in pieces.

A path is opened one component at a time and never through a symbolic link, so it cannot lead out;
only plain files are opened, so nothing blocks."""

import base64
import errno
import os
import stat

WORK = "/work"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {errno.ENOENT: "not_found",
          **dict.fromkeys((errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EMFILE,
                            errno.ENOMEM), "over_budget"),
          **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EACCES,
                           errno.EPERM, errno.EROFS), "denied")}


class Refused(Exception):
    """What the host is told: `kind` is the name of an error of its own."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def refusal(error, path):
    return Refused(_KINDS.get(error.errno, "unavailable"), f"{path}: {error.strerror}")


def _check(info, wanted, path):
    if stat.S_ISLNK(info.st_mode):
        raise Refused("denied", f"{path}: a symbolic link")
    if not wanted(info.st_mode):
        what = "directory" if wanted is stat.S_ISDIR else "plain file"
        raise Refused("denied", f"{path}: not a {what}")


def _enter(directory, name, path, make):
    """A descriptor of the directory `name` in `directory`."""
    if make:
        try:
            os.mkdir(name, dir_fd=directory)
        except FileExistsError:
            pass
    _check(os.stat(name, dir_fd=directory, follow_symlinks=False), stat.S_ISDIR, path)
    return os.open(name, _DIRECTORY, dir_fd=directory)


def open_directory(path, make=False):
    """A descriptor of the directory at `path`, "" for the work directory."""
    directory = -1
    try:
        directory = os.open(WORK, _DIRECTORY)
        seen = []
        for name in path.split("/") if path else ():
            seen.append(name)
            inner = _enter(directory, name, "/".join(seen), make)
            os.close(directory)
            directory = inner
        return directory
    except BaseException as e:
        if directory >= 0:
            os.close(directory)
        if isinstance(e, OSError):
            raise refusal(e, path or WORK) from None
        raise


def _open_plain(path, flags, make=False):
    parent, _, name = path.rpartition("/")
    directory = open_directory(parent, make)
    try:
        try:
            _check(os.stat(name, dir_fd=directory, follow_symlinks=False), stat.S_ISREG, path)
        except FileNotFoundError:
            if not make:
                raise
        file = os.open(name, flags | _PLAIN, 0o666, dir_fd=directory)
    except OSError as e:
        raise refusal(e, path) from None
    finally:
        os.close(directory)
    try:
        _check(os.fstat(file), stat.S_ISREG, path)  # it may have changed since
        return file
    except BaseException:
        os.close(file)
        raise


def _put(path, data, append):
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
    file = _open_plain(path, flags, make=not append)
    try:
        view = memoryview(base64.b64decode(data))
        while view:
            view = view[os.write(file, view):]
    except OSError as e:
        raise refusal(e, path) from None
    finally:
        os.close(file)


def _get(path, offset, size):
    file = _open_plain(path, os.O_RDONLY)
    try:
        return base64.b64encode(os.pread(file, size, offset)).decode(), os.fstat(file).st_size
    except OSError as e:
        raise refusal(e, path) from None
    finally:
        os.close(file)


def serve(request):
    """Does a request for one piece, and gives the members of the reply. Raises Refused.

    put: the first piece makes the file and the directories above it, the others are appended.
    get: fewer bytes than asked for are the last ones."""
    if request["op"] == "put":
        _put(request["path"], request["data"], request["append"])
        return {}
    data, size = _get(request["path"], request["offset"], request["bytes"])
    return {"data": data, "size": size}
