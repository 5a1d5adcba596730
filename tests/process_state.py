"""What a test must leave in this process as it found it."""

import logging
import os
import signal
import sys
import threading
from typing import Any

_MOMENT = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SET_BY_PYTEST = {"PYTEST_CURRENT_TEST"}


def process_state() -> dict[str, Any]:
    """Environment, folder, loggers, signal handlers, streams and threads that keep a process alive."""
    return {
        "working directory": os.getcwd(),  # noqa: PTH109  (twice a test)
        **{f"variable {name}": text for name, text in os.environ.items() if name not in _SET_BY_PYTEST},
        **{f"logger {logger.name or 'root'}": _settings(logger) for logger in _loggers() if _is_set(logger)},
        **{f"handler of {number.name}": signal.getsignal(number) for number in _SIGNALS},
        "last resort of logging": logging.lastResort,
        "excepthook": sys.excepthook,
        **{f"thread {thread.name}": True for thread in threading.enumerate() if _stays(thread)},
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    if before == after:
        return []
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [f"{name}: {before.get(name)!r} became {after.get(name)!r}" for name in names]


def _stays(thread: threading.Thread) -> bool:
    """Whether a thread keeps the process alive; one that is about to end is given a moment."""
    if thread.daemon or thread is threading.main_thread():
        return False
    thread.join(_MOMENT)
    return thread.is_alive()


def _is_set(logger: logging.Logger) -> bool:
    """A logger that was only made is no difference."""
    has_handlers = bool(logger.handlers and _own_handlers(logger))
    return has_handlers or logger.level != logging.NOTSET or not logger.propagate or logger.disabled


def _settings(logger: logging.Logger) -> tuple[int, tuple[logging.Handler, ...], bool, bool]:
    return logger.level, tuple(_own_handlers(logger)), logger.propagate, logger.disabled


def _own_handlers(logger: logging.Logger) -> list[logging.Handler]:
    """Without those by which pytest itself reads along, and those that libraries add to be silent."""
    return [
        handler
        for handler in logger.handlers
        if not type(handler).__module__.startswith("_pytest.") and not isinstance(handler, logging.NullHandler)
    ]


def _loggers() -> list[logging.Logger]:
    """The root, our own, and those of libraries that log by name."""
    known = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    return [logging.root, *known]
