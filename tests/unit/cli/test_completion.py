"""Shell completion, asked for as a shell does."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler import cli
from tests.support import Kfleet, kfleet_program

BASH = shutil.which("bash") or "bash"


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    def ask(*words: str) -> list[str]:
        """What bash offers for the last of the words."""
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_KFLEET_COMPLETE": "bash_complete"}
        for name, text in asked.items():
            monkeypatch.setenv(name, text)
        with pytest.raises(SystemExit, match=r"^0$"):
            cli.execute([])
        return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]

    return ask


def test_completion_knows_commands_options_and_choices(completed: Callable[..., list[str]]) -> None:
    assert completed("kfleet", "") == list(cli.COMMANDS)
    assert completed("kfleet", "va") == ["validate"]
    assert completed("kfleet", "run", "--web") == ["--webhook"]
    assert completed("kfleet", "plan", "-o", "j") == ["json"]
    assert completed("kfleet", "sandbox", "kub") == ["kubeconfig", "kubectl"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_each_shell_asks_kfleet(kfleet_in_process: Kfleet, shell: str) -> None:
    answer = kfleet_in_process("completion", shell)
    assert answer.returncode == 0
    assert f"_KFLEET_COMPLETE={shell}_complete" in answer.stdout


def test_kfleet_starts_with_a_click_whose_completion_items_are_not_generic(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are generic since click 8.5, and kfleet takes click 8.2."""
    monkeypatch.setattr("click.shell_completion.CompletionItem", type("CompletionItem", (), {}))
    spec = importlib.util.spec_from_file_location("old_click", cli.__file__)
    assert spec and spec.loader
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_bash_takes_the_completion() -> None:
    script = """
    source <(kfleet completion bash)
    COMP_WORDS=(kfleet exp) COMP_CWORD=1
    $(complete -p kfleet | sed 's/.*-F \\([^ ]*\\).*/\\1/') kfleet
    echo "${COMPREPLY[@]}"
    """
    path = f"{Path(kfleet_program()).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [BASH, "--norc", "-c", script], capture_output=True, text=True, check=True, env=os.environ | {"PATH": path}
    )
    assert done.stdout.strip() == "explain"
