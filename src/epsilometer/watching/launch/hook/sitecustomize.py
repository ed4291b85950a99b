"""Python imports this at its start, in every process that a watched command starts (see `launch.environment`).

It takes itself off the path, lets the user's own sitecustomize run, and waits for some modules to be imported (see
`launch.table`). Nothing of Epsilometer is imported before that, and nothing here may fail loudly: the training is not
ours. The syntax is old on purpose: what the command starts may be any Python.
"""

import json
import os
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))


def _write(path, record):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (json.dumps(record) + "\n").encode("utf-8"))
    finally:
        os.close(descriptor)


def _package():
    """Epsilometer as the one who watches has it: its records must be understood there."""
    import importlib.util

    loaded = sys.modules.get("epsilometer")
    if loaded is not None:
        found = os.path.dirname(os.path.abspath(loaded.__file__ or ""))
        if found != _PACKAGE:
            raise ImportError("the script has imported another epsilometer, " + found)
        return
    init = os.path.join(_PACKAGE, "__init__.py")
    spec = importlib.util.spec_from_file_location("epsilometer", init, submodule_search_locations=[_PACKAGE])
    module = importlib.util.module_from_spec(spec)
    sys.modules["epsilometer"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["epsilometer"]
        raise


class _Recording:
    """Where this process writes, and what it waits for; a forked copy begins a file of its own."""

    def __init__(self, directory):
        self._directory, self._process = directory, 0
        with open(os.path.join(directory, "hooks.json"), "rb") as file:
            self.table = json.loads(file.read().decode("utf-8"))  # module: those who take hold of it

    def path(self):
        if os.getpid() != self._process:
            self._process = os.getpid()
            self._path = os.path.join(self._directory, "%d-%d.jsonl" % (self._process, int(time.time() * 1e9)))
            argv = [str(word) for word in getattr(sys, "orig_argv", [])]  # sys.argv is not there yet
            _write(
                self._path,
                {"kind": "started", "pid": self._process, "argv": argv, "python": sys.version.split()[0]},
            )
        return self._path


def _attach(recording, module):
    for entry in recording.table[module.__name__]:
        try:
            path = recording.path()
            _package()
            import importlib

            importlib.import_module("epsilometer.watching.launch.inside").take_hold(module, entry, path)
        except Exception as error:
            reason = "the hook failed (" + type(error).__name__ + ": " + str(error)[:300] + ")"
            try:
                _write(recording.path(), {"kind": "not-audited", "training": 0, "reason": reason})
            except Exception:  # the disk is full, say: the training goes on
                pass


class _Loader:
    """Loads the module as its own loader does, and attaches the hooks."""

    def __init__(self, own, recording):
        self._own, self._recording = own, recording

    def create_module(self, spec):
        return self._own.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._own
        self._own.exec_module(module)
        _attach(self._recording, module)


class _Finder:
    """Sees a few imports."""

    def __init__(self, recording):
        self._recording, self._busy = recording, False

    def find_spec(self, name, path=None, target=None):
        if name not in self._recording.table or self._busy:
            return None
        import importlib.util

        self._busy = True  # let the others find it
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._recording)
        return spec


def _wait():
    directory = os.environ.get("EPSILOMETER_WATCH")
    if not directory:
        return
    recording = _Recording(directory)
    recording.path()
    for entry in recording.table.pop("", ()):  # at once
        _package()
        import importlib

        name, _, function = entry["attach"].partition(":")
        getattr(importlib.import_module(name), function)(directory)
    for name in recording.table:
        if name in sys.modules:
            _attach(recording, sys.modules[name])
    sys.meta_path.insert(0, _Finder(recording))


def _run_the_users_own():
    """What would have been imported under this name; its errors are shown as Python shows them."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)  # Python looks for what it has just imported


def _take_off_the_path():
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]


if __name__ == "sitecustomize":
    _take_off_the_path()
    try:
        _wait()
    except Exception:  # no directory to write to: the training goes on unwatched, and the parent says so
        pass
    _run_the_users_own()
