"""Requests as a program sends them."""

import urllib.request
from dataclasses import dataclass
from email.message import Message
from urllib.error import HTTPError


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: str
    headers: Message


def get(url: str, **headers: str) -> Answer:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  (an address of this machine)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return Answer(answer.status, answer.read().decode(), answer.headers)
    except HTTPError as error:
        with error:
            return Answer(error.code, error.read().decode(), error.headers)


def get_with(token: str, url: str) -> Answer:
    return get(url, Authorization=f"Bearer {token}")
