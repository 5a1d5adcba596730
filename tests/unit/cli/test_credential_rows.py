"""How `kfleet credentials list` prints the tokens of workers, on a terminal and in a pipe."""

from reconciler.cli.credentials import credentials_table

ROW = {
    "worker": "cnaf-gpu",
    "secret": "multikueue-cnaf-gpu",
    "account": "kueue-system/multikueue-science",
    "issued": "2026-05-01T03:02:01Z",
    "expires": "2026-05-31T03:02:01Z",
    "renewal": "2026-05-11T03:02:01Z",
    "accepted": "yes",
}


def test_pipe_gets_every_column() -> None:
    head, row = credentials_table([ROW])
    assert head.split() == ["WORKER", "SECRET", "ACCOUNT", "ISSUED", "EXPIRES", "RENEWAL", "ACCEPTED"]
    assert row.split() == [*ROW.values()]


def test_narrow_terminal_gets_what_matters_in_full() -> None:
    head, row = credentials_table([ROW], 80)
    assert head.split() == ["WORKER", "EXPIRES", "RENEWAL", "ACCEPTED"]
    assert row.split() == ["cnaf-gpu", ROW["expires"], ROW["renewal"], "yes"]
    assert max(map(len, (head, row))) <= 80
