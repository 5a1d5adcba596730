"""Logs of a process that goes on: one line per event, for people or for machines."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_OWN = set(logging.makeLogRecord({}).__dict__) | {"message", "taskName"}


def set_up_logs(style: str, *, is_verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if style == "json" else _Text())
    logger = logging.getLogger("reconciler")
    logger.setLevel(logging.DEBUG if is_verbose else logging.INFO)
    logger.handlers = [handler]
    logger.propagate = False


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _OWN}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            content["trace"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        facts = "  ".join(f"{name}={value}" for name, value in _facts(record).items())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{clock} {record.levelname.lower():7} {record.getMessage()}  {facts}{trace}".rstrip()
