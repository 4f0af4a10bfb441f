"""Files that commands write: whole or not at all, with the permissions that they had."""

import ast
import errno
import os
from pathlib import Path

import pytest

import weftline
from weftline import outputs
from weftline.errors import InputError

PACKAGE = Path(weftline.__file__).parent


def test_a_file_is_as_before_until_all_is_written_and_keeps_its_permissions(tmp_path):
    file = tmp_path / "out.csv"
    outputs.write_whole(file, "first")
    file.chmod(0o640)
    with pytest.raises(RuntimeError), outputs.whole_file(file) as part:
        part.write_text("half")
        raise RuntimeError
    assert file.read_text() == "first" and os.listdir(tmp_path) == ["out.csv"]
    outputs.write_whole(file, "second")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("second", 0o640)


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    file = tmp_path / "kept.csv"
    file.write_text("kept")
    opened = os.open

    def refuse(path, flags, *mode, **options):
        if path == file and flags & os.O_WRONLY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, flags, *mode, **options)

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(InputError, match=r"kept\.csv: Permission denied"), outputs.whole_file(file):
        pass
    assert file.read_text() == "kept"


def test_a_result_of_a_run_or_a_store_is_not_replaced(tmp_path):
    for name in ("scenario.toml", "flows.parquet", "notes.txt"):
        (tmp_path / name).write_text(name)
    store = tmp_path / "store"
    (store / "points").mkdir(parents=True)
    (store / "index.jsonl").write_text("")
    for file in (tmp_path / "flows.parquet", store / "index.jsonl"):
        before = file.read_text()
        with pytest.raises(InputError, match="is one of the results in its folder"), outputs.whole_file(file):
            pass
        assert file.read_text() == before
    for file in (tmp_path / "notes.txt", tmp_path / "ports.csv", store / "new.csv"):
        with outputs.whole_file(file) as part:
            part.write_text("new")
        assert file.read_text() == "new"


def test_an_error_of_a_write_has_the_name_of_the_file(tmp_path):
    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"out\.csv: No space left"), outputs.whole_file(file):
        full()
    with pytest.raises(OSError) as found, outputs.replaced(file):
        full()
    assert found.value.filename == str(file)
    with pytest.raises(FileNotFoundError, match="read"), outputs.whole_file(file):
        (tmp_path / "read").read_text()
    assert not os.listdir(tmp_path)


def test_files_take_the_place_of_others_in_one_way():
    """`os.replace` and `Path.replace` with one argument stand in `outputs` alone."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of_os = isinstance(node.func.value, ast.Name) and node.func.value.id == "os"
                if node.func.attr == "replace" and (of_os or (len(node.args) == 1 and not node.keywords)):
                    found.append(str(path.relative_to(PACKAGE)))
    assert found == ["outputs.py"]
