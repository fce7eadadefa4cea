"""A session's files, through a pipe from one worker to another. An image of memory follows.

A record is a 4-byte big-endian length and that many bytes of JSON; a file's bytes follow its
record."""

import json
import os
import stat

import troupe_files
from troupe_files import Refused, refusal

_PIECE = 256 << 10
_ZEROS = bytes(_PIECE)


# --- the pipe -----------------------------------------------------------------------------------

def _write(pipe, data):
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view):]


def _read(pipe, size):
    data = b""
    while len(data) < size:
        piece = os.read(pipe, size - len(data))
        if not piece:
            raise Refused("unavailable", "the sandbox that was branched ended meanwhile")
        data += piece
    return data


def send_record(pipe, **members):
    data = json.dumps(members).encode()
    _write(pipe, len(data).to_bytes(4, "big") + data)


def _records(pipe):
    """Those before the image."""
    while True:
        record = json.loads(_read(pipe, int.from_bytes(_read(pipe, 4), "big")))
        if record["kind"] == "failed":
            raise Refused(record["as"], record["error"])
        if record["kind"] == "image":
            return
        yield record


# --- files ---------------------------------------------------------------------------------------

class _FileSender:
    def __init__(self, pipe):
        self.pipe = pipe
        self.seen = {}  # inode -> path, of files with several names

    def send(self, tree):
        self.seen.clear()
        self._send_tree(tree)

    def _send_tree(self, path):
        info = os.lstat(path)
        self._send("directory", path, info)
        for name in sorted(os.listdir(path)):
            self._send_entry(f"{path}/{name}")

    def _send_entry(self, path):
        info = os.lstat(path)
        if stat.S_ISDIR(info.st_mode):
            self._send_tree(path)
        elif info.st_nlink > 1 and self.seen.setdefault(info.st_ino, path) != path:
            self._send("same", path, info, target=self.seen[info.st_ino])
        elif stat.S_ISLNK(info.st_mode):
            self._send("link", path, info, target=os.readlink(path))
        elif stat.S_ISREG(info.st_mode):
            self._send_file(path)
        elif stat.S_ISFIFO(info.st_mode):
            self._send("fifo", path, info)
        else:
            raise Refused("denied", f"{path}: no file that can be copied")

    def _send(self, kind, path, info, **members):
        send_record(self.pipe, kind=kind, path=path, mode=stat.S_IMODE(info.st_mode),
                     times=[info.st_atime_ns, info.st_mtime_ns], **members)

    def _send_file(self, path):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME | os.O_CLOEXEC)
        try:
            info = os.fstat(file)
            self._send("file", path, info, size=info.st_size)
            left = info.st_size
            while left:
                # Zeros where it has become shorter meanwhile.
                piece = os.read(file, min(left, _PIECE)) or _ZEROS[:min(left, _PIECE)]
                _write(self.pipe, piece)
                left -= len(piece)
        finally:
            os.close(file)


def send_files(pipe):
    sender = _FileSender(pipe)
    for tree in (troupe_files.WORK, "/tmp"):
        try:
            sender.send(tree)
        except OSError as e:
            raise refusal(e, e.filename or tree) from None


def _receive_file(pipe, path, size):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while size:
            piece = _read(pipe, min(size, _PIECE))
            size -= len(piece)
            if piece == _ZEROS[:len(piece)]:
                os.lseek(file, len(piece), os.SEEK_CUR)  # a hole takes no room
                continue
            view = memoryview(piece)
            while view:
                view = view[os.write(file, view):]
        os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
    finally:
        os.close(file)


def _make(pipe, record):
    kind, path = record["kind"], record["path"]
    if kind == "directory":
        os.makedirs(path, exist_ok=True)
    elif kind == "file":
        _receive_file(pipe, path, record["size"])
    elif kind == "link":
        os.symlink(record["target"], path)
    elif kind == "same":
        os.link(record["target"], path, follow_symlinks=False)
    elif kind == "fifo":
        os.mkfifo(path)


def receive_files(pipe):
    made = []
    for record in _records(pipe):
        try:
            _make(pipe, record)
        except OSError as e:
            raise refusal(e, record["path"]) from None
        made.append(record)
    for record in reversed(made):  # a directory after what is in it
        try:
            if record["kind"] != "link":
                os.chmod(record["path"], record["mode"])
            os.utime(record["path"], ns=tuple(record["times"]), follow_symlinks=False)
        except OSError as e:
            raise refusal(e, record["path"]) from None
