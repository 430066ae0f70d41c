from __future__ import annotations

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mnmt_repro import repository
from mnmt_repro.__main__ import main
from mnmt_repro.corpora import fetch, registry
from mnmt_repro.corpora.registry import CorpusFile
from mnmt_repro.errors import InputError
from mnmt_repro.papers.effects import public_losses

CONTENT = gzip.compress(b"eins\nzwei\n" * 300)


class Server(ThreadingHTTPServer):
    """A file server on this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.asked = 0  # requests

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/raw/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        body = self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A running server, an empty cache, no data folder, and no pauses between attempts."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("MNMT_REPRO_DATA", raising=False)
    monkeypatch.setattr(registry, "ROOT", tmp_path / "checkout")
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    running = Server()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def card(content: bytes = CONTENT, name: str = "val.de.gz") -> CorpusFile:
    return CorpusFile(
        path=f"multi30k/{name}",
        sha256=hashlib.sha256(content).hexdigest(),
        hash_of="file",
        columns=("deu",),
        sentences={"valid": 3000},
    )


def listing(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "multi30k").iterdir())


def test_a_file_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    path = fetch.obtain(card(), base_url=server.url)
    assert path == tmp_path / "cache" / "multi30k" / "val.de.gz"
    assert path.read_bytes() == CONTENT
    assert fetch.obtain(card(), base_url=server.url) == path
    assert server.asked == 1
    assert listing(tmp_path) == ["val.de.gz"]


def test_another_content_is_refused(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(InputError, match="cannot be downloaded .*SHA256 hash"):
        fetch.obtain(card(), base_url=server.url)
    assert server.asked == 4
    assert listing(tmp_path) == []


def test_the_data_folder_comes_first(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "multi30k").mkdir(parents=True)
    own = tmp_path / "data" / "multi30k" / "val.de.gz"
    own.write_bytes(CONTENT)
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path / "data"))
    assert fetch.obtain(card(), base_url=server.url) == own
    assert server.asked == 0


def test_offline_says_what_to_do(server: Server, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(InputError) as caught:
            fetch.obtain(card(), base_url=closed)
    message = str(caught.value)
    assert "multi30k/val.de.gz: cannot be downloaded from " + closed in message
    assert "connect to the network" in message
    assert "set MNMT_REPRO_DATA" in message
    assert str(tmp_path / "cache" / "multi30k") in message
    assert "\n" not in message


def test_a_cache_that_cannot_be_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MNMT_REPRO_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set MNMT_REPRO_CACHE"):
        fetch.obtain(card(), base_url=server.url)


def test_an_original_of_the_public_losses_is_fetched_by_commit(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    table = tmp_path / "data" / "external" / "originals.csv"
    table.parent.mkdir(parents=True)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    row = f"someone/losses,{'0' * 40},data/table.csv,{sha256}"
    table.write_text(f"repository,commit,path,sha256\n{row}\n")
    monkeypatch.setattr(repository, "ROOT", tmp_path)
    asked: list[str] = []
    answer = Handler.do_GET
    monkeypatch.setattr(Handler, "do_GET", lambda self: (asked.append(self.path), answer(self))[1])
    url = server.url
    monkeypatch.setattr(public_losses.fetch_originals, "__kwdefaults__", {"base_url": url})
    assert main(["data", "originals", "--out", str(tmp_path / "originals")]) == 0
    path = tmp_path / "originals" / "data" / "table.csv"
    assert path.read_bytes() == CONTENT and str(path) in capsys.readouterr().out
    assert asked == [f"/raw/someone/losses/{'0' * 40}/data/table.csv"]
    server.content = b"another table"
    path.unlink()
    assert main(["data", "originals", "--out", str(tmp_path / "originals")]) == 2
    assert "SHA256 hash" in capsys.readouterr().err and not path.exists()
