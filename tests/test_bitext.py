from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from corpus_cards import small_card

from mnmt_repro.corpora import registry, textfile
from mnmt_repro.corpora.bitext import (
    load_split,
    load_test_set,
    parse_spec,
    read_bitext,
    skipping_bad,
)
from mnmt_repro.corpora.formats import (
    Bitext,
    Columns,
    content_hash,
    parse_tsv,
    read_jsonl,
)
from mnmt_repro.corpora.textfile import read_lines
from mnmt_repro.errors import InputError

TSV = (
    "split\tdomain\teng\tdeu\n"
    'train\ttalk\tHe said "yes.\tEr sagte „ja.\n'
    "train\tmanual\tPress\u2028a key\tTaste\x0cdrücken\n"
    "test\ttalk\tGood night.\tGute Nacht.\n"
)
PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tsv_of(path: Path, source: str, target: str, **columns: str) -> Bitext:
    names = Columns(source=source, target=target, **columns)
    return parse_tsv(read_lines(path), str(path), f"{source}-{target}", names)


# --- files as lines -----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", PACKERS)
def test_lines_of_a_file_however_it_is_packed(tmp_path: Path, ending: str) -> None:
    for name in (f"a.txt{ending}", "a.txt"):
        path = put(tmp_path / name, PACKERS[ending](b"eins\nzwei\n"))
        assert read_lines(path) == ["eins", "zwei"]


def test_packed_files_of_several_parts_are_read_to_the_end(tmp_path: Path) -> None:
    one, two = b"eins\n", b"zwei\n"
    padded = lzma.compress(one) + b"\0" * 8 + lzma.compress(two)
    assert read_lines(put(tmp_path / "a.xz", padded)) == ["eins", "zwei"]
    both = gzip.compress(one) + gzip.compress(two)
    assert read_lines(put(tmp_path / "a.gz", both)) == ["eins", "zwei"]


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / f"a{ending}", PACKERS[ending](bytes(100_000)))
    assert len(read_lines(put(tmp_path / f"b{ending}", PACKERS[ending](100_000 * b"\n")))) == 10**5
    monkeypatch.setattr(textfile, "SMALL", 1000)
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        read_lines(path)


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_a_packed_file_that_is_cut_short_anywhere(tmp_path: Path, ending: str) -> None:
    packed = PACKERS[ending](TSV.encode())
    for length in range(len(packed)):
        path = put(tmp_path / f"a.tsv{ending}", packed[:length])
        with pytest.raises(InputError, match="cut short|damaged|its name ends"):
            read_lines(path)


def test_a_second_part_that_is_cut_short_is_no_trailing_dirt(tmp_path: Path) -> None:
    packed = lzma.compress(b"eins\n") + lzma.compress(b"zwei\n")[:-9]
    with pytest.raises(InputError, match="cut short"):
        read_lines(put(tmp_path / "a.xz", packed))
    with pytest.raises(InputError, match="damaged"):
        read_lines(put(tmp_path / "b.xz", lzma.compress(b"eins\n") + b"not xz at all"))


def test_line_ends(tmp_path: Path) -> None:
    assert read_lines(put(tmp_path / "a", "a\r\nb\u2028c\x85d\x0ce\r\nf")) == [
        "a",
        "b\u2028c\x85d\x0ce",
        "f",
    ]
    assert read_lines(put(tmp_path / "b", "a\n\n")) == ["a", ""]
    assert read_lines(put(tmp_path / "c", b"\xef\xbb\xbfa\n")) == ["a"]
    assert read_lines(put(tmp_path / "d", b"")) == []


def test_not_utf8_names_line_and_offset(tmp_path: Path) -> None:
    # "é" takes two bytes: line 2 begins at offset 6, its bad byte is the third
    content = "café\n".encode() + b"ab\xfcc\n"
    with pytest.raises(InputError, match=r"a\.gz: line 2: not UTF-8 .*0xfc at byte offset 8\)"):
        read_lines(put(tmp_path / "a.gz", gzip.compress(content)))


def test_nul_bytes_name_the_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a: line 3: a NUL byte at byte offset 5"):
        read_lines(put(tmp_path / "a", b"a\nb\nc\0\n"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent: no such file"):
        read_lines(tmp_path / "absent")
    with pytest.raises(InputError, match="Is a directory"):
        read_lines(tmp_path)


# --- formats ------------------------------------------------------------------------------------


def test_tsv(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", TSV)
    text = tsv_of(path, "eng", "deu", split="train", domain="domain")
    assert text.pair == "eng-deu"
    assert text.source == ['He said "yes.', "Press\u2028a key"]
    assert text.target == ["Er sagte „ja.", "Taste\x0cdrücken"]
    assert text.domain == ["talk", "manual"]
    assert text.origin == f"{path} (train)"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "a.tsv: is empty"),
        ("eng\tdeu\n", "a.tsv: holds no sentence"),
        ("eng\tfra\nYes\tOui\n", r"line 1: no column 'deu'; the columns are \['eng', 'fra'\]"),
        ("eng\tdeu\nYes\tJa\nNo\n", r"line 3: 1 fields, but the header has 2"),
        ("eng\tdeu\nYes\tJa\nNo\t\n", r"a.tsv: line 3: no text in 'deu'; mend or .*[?]skip_bad"),
        (
            "eng\tdeu\n\nA\tB\neng\tdeu\n\tJa\nNo\n",
            (
                "a.tsv: line 2: is blank; line 4: repeats the header; line 5: no text in 'eng'; "
                "line 6: 1 fields, but the header has 2; mend"
            ),
        ),
    ],
)
def test_bad_tsv(tmp_path: Path, content: str | bytes, error: str) -> None:
    with pytest.raises(InputError, match=error):
        tsv_of(put(tmp_path / "a.tsv", content), "eng", "deu")


def test_tsv_without_the_split(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv", TSV)
    with pytest.raises(
        InputError, match=r"no sentence in split 'dev'; the splits are .*test.*train"
    ):
        tsv_of(path, "eng", "deu", split="dev")
    with pytest.raises(InputError, match="no column 'part'"):
        tsv_of(path, "eng", "deu", split="dev", split_column="part")
    with pytest.raises(InputError, match="same column"):
        read_bitext(f"eng-deu={path}?source=eng&target=eng")


def test_moses(tmp_path: Path) -> None:
    english = put(tmp_path / "t.en.gz", gzip.compress(b"Yes\nNo\n"))
    german = put(tmp_path / "t.de", "Ja\nNein\n")
    text = read_bitext(f"eng-deu={english},{german}")
    assert (text.source, text.target) == (["Yes", "No"], ["Ja", "Nein"])


@pytest.mark.parametrize(
    ("english", "german", "error"),
    [
        ("Yes\nNo\n", "Ja\n", r"t\.en has 2 lines, .*t\.de has 1"),
        ("Yes\nNo\n", "Ja\n\n", r"t\.en, .*t\.de: line 2: no text in '.*t\.de'; mend"),
        ("\n" * 13, "Ja\n" * 13, r"line 10: no text in '.*t\.en'; and 3 more bad lines; mend"),
    ],
)
def test_bad_moses(tmp_path: Path, english: str, german: str, error: str) -> None:
    paths = put(tmp_path / "t.en", english), put(tmp_path / "t.de", german)
    with pytest.raises(InputError, match=error):
        read_bitext(f"eng-deu={paths[0]},{paths[1]}")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('["Yes", "Ja"]', "line 2: is not a JSON object but list"),
        ('{"source": "Yes"}', r"line 2: no key 'target'; the keys are \['source'\]"),
        ('{"source": "Yes", "target": 5}', "line 2: 'target' is int, not a string"),
        ('{"source": "a\\nb", "target": "Ja"}', "line 2: a line break inside 'source'"),
        ('{"source": "a\\u0000", "target": "Ja"}', "line 2: a NUL character inside 'source'"),
        ('{"source": "\\ud800", "target": "Ja"}', "line 2: 'source' is no valid Unicode"),
    ],
)
def test_bad_jsonl(tmp_path: Path, line: str, error: str) -> None:
    path = put(tmp_path / "a.jsonl", '{"source": "A", "target": "B"}\n' + line + "\n")
    with pytest.raises(InputError, match=error):
        read_jsonl(path, "eng-deu")


def test_bad_lines_are_skipped_and_counted(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "a.tsv", "eng\tdeu\n\nYes\tJa\neng\tdeu\n\tJa\n")
    put(tmp_path / "a.jsonl", '{\n{"eng": "Yes", "deu": "Ja"}\n\n{"eng": 5, "deu": "Ja"}\n')
    put(tmp_path / "a.en", "\nYes\n")
    put(tmp_path / "a.de", "Nein\nJa\n")
    for files, bad in (("~/a.tsv", 3), ("~/a.jsonl", 3), ("~/a.en,~/a.de", 1)):
        (spec,) = skipping_bad([f"eng-deu={files}"], True)
        assert parse_spec(spec) == parse_spec(f"eng-deu={files}?skip_bad=yes")
        text = read_bitext(spec)
        assert (text.source, text.target) == (["Yes"], ["Ja"])
        assert f"skipped {bad} bad lines: line " in capsys.readouterr().err
        with pytest.raises(InputError, match="mend or remove each on both sides"):
            read_bitext(f"eng-deu={files}")


# --- bitext -------------------------------------------------------------------------------------


def test_sides_must_be_equally_long() -> None:
    with pytest.raises(InputError, match="2 source and 1 target"):
        Bitext(pair="eng-deu", source=["a", "b"], target=["a"])


def test_content_hash_is_of_the_sentences_only(tmp_path: Path) -> None:
    tsv = tsv_of(put(tmp_path / "a.tsv", "eng\tdeu\nYes\tJa\nNo\tNein\n"), "eng", "deu")
    paths = put(tmp_path / "t.en", "Yes\nNo\n"), put(tmp_path / "t.de", "Ja\nNein\n")
    moses = read_bitext(f"eng-deu={paths[0]},{paths[1]}")
    assert content_hash(tsv) == content_hash(moses)
    others = [tsv.select([1, 0]), tsv.select([0])]
    others += [Bitext(pair="eng-nld", source=tsv.source, target=tsv.target)]
    assert len({content_hash(tsv), *map(content_hash, others)}) == 4


# --- a user's own text --------------------------------------------------------------------------


def test_own_tsv_by_languages_or_names(tmp_path: Path) -> None:
    path = put(tmp_path / "a.tsv.gz", gzip.compress(TSV.encode()))
    assert read_bitext(f"eng-deu={path}").source[2] == "Good night."
    back = read_bitext(f"deu-eng={path}?split=test&domain=domain")
    assert (back.source, back.domain) == (["Gute Nacht."], ["talk"])
    path = put(tmp_path / "b.tsv", "source\ttarget\nYes\tJa\n")
    assert read_bitext(f"eng-deu={path}").target == ["Ja"]
    swapped = read_bitext(f"deu-eng={path}?source=target&target=source")
    assert (swapped.source, swapped.pair) == (["Ja"], "deu-eng")
    path = put(tmp_path / "c.txt", "english\tgerman\nYes\tJa\n")
    for old in ("", "format=tsv&"):  # a `run.json` of an earlier version names the format
        named = read_bitext(f"eng-deu={path}?{old}source=english&target=german")
        assert named.source == ["Yes"]
    with pytest.raises(InputError, match=r"line 1: neither 'eng' and 'deu' nor .*\['english', "):
        read_bitext(f"eng-deu={path}")


def test_own_jsonl(tmp_path: Path) -> None:
    nested = put(tmp_path / "hf.jsonl", '{"translation": {"de": "Ja", "en": "Yes"}}\n')
    text = read_bitext(f"eng-deu={nested}?source=en&target=de")
    assert (text.source, text.target) == (["Yes"], ["Ja"])
    parts = put(tmp_path / "p.jsonl", '{"source": "Yes", "target": "Ja", "split": "dev"}\n')
    assert read_bitext(f"eng-deu={parts}?split=dev&domain=split").domain == ["dev"]
    with pytest.raises(InputError, match=r"no sentence in split 'test'; the splits are \['dev'\]"):
        read_bitext(f"eng-deu={parts}?split=test")
    path = put(tmp_path / "a.jsonl", '{"deu": "Ja", "eng": "Yes"}\n')
    assert read_bitext(f"eng-deu={path}").source == ["Yes"]
    assert read_bitext(f"eng-nld={path}?source=eng&target=deu").target == ["Ja"]
    with pytest.raises(InputError, match="neither 'eng' and 'fra' nor 'source' and 'target'"):
        read_bitext(f"eng-fra={path}")
    with pytest.raises(InputError, match="holds no sentence"):
        read_bitext(f"eng-fra={put(tmp_path / 'b.jsonl', '')}")


def test_own_moses_and_odd_names(tmp_path: Path) -> None:
    german = put(tmp_path / "t.de", "Ja\n")
    assert read_bitext(f"deu-eng={german},{german}").source == ["Ja"]
    odd = put(tmp_path / "x,y?z=1.tsv", "eng\tdeu\nYes\tJa\n")
    assert read_bitext(f"eng-deu={odd}").target == ["Ja"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("talks.tsv", "write it PAIR=FILE.tsv"),
        ("english=talks.tsv", "language pair 'english'"),
        ("eng-deu=a.en,", "name one file or two; write it"),
        ("eng-deu=a.en,a.de?split=dev", "two files have no columns"),
        ("eng-deu=a.tsv?colour=red", "option colour: unknown key; there are source, target"),
        ("eng-deu=a.tsv?skip_bad=1", "option skip_bad: must be one of no, yes, got '1'"),
        ("eng-deu=a.tsv?split", "option 'split': write it name=value"),
        ("eng-deu=a.tsv?source=english", "name both source and target"),
    ],
)
def test_bad_specs(spec: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        parse_spec(spec)


# --- registered corpora -------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file of a corpus called `tiny`, the only one registered."""
    card = small_card(tmp_path, {"eng-deu": TSV})
    monkeypatch.setattr(registry, "list_cards", lambda: (card,))
    monkeypatch.setenv("MNMT_REPRO_DATA", str(tmp_path))
    return tmp_path / "eng-deu.tsv.xz"


def test_splits_of_a_registered_corpus(tiny: Path) -> None:
    train = load_split("tiny", "deu-eng", "train")
    assert train.pair == "deu-eng"
    assert train.target[0] == 'He said "yes.'
    assert train.domain == ["talk", "manual"]
    assert load_split("tiny", "eng-deu", "test").source == ["Good night."]
    with pytest.raises(InputError, match="split 'dev': must be one of train, valid, test"):
        load_split("tiny", "eng-deu", "dev")
    with pytest.raises(InputError, match="no pair 'eng-fra', either .*; there are eng-deu"):
        load_split("tiny", "eng-fra", "train")


def test_text_that_is_not_the_card_s_is_refused(tiny: Path) -> None:
    put(tiny, lzma.compress(TSV.replace("night", "day").encode()))
    with pytest.raises(InputError, match=r"eng-deu\.tsv\.xz: SHA-256 is .* the card"):
        load_split("tiny", "eng-deu", "train")


def test_test_sets_that_are_not_there() -> None:
    with pytest.raises(InputError, match="newstest21: no pair 'eng-fra', either way"):
        load_test_set("newstest21", "eng-fra")
    with pytest.raises(InputError, match="no language 'ces'; there are deu, eng, fra"):
        load_test_set("multi30k-2017", "eng-ces")
    with pytest.raises(
        InputError, match="outofdomain: no pair 'eng-deu', either .*there are newst"
    ):
        load_split("outofdomain", "eng-deu", "test")


@pytest.fixture
def real(corpora_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real corpora, found through the environment."""
    monkeypatch.setenv("MNMT_REPRO_DATA", str(corpora_dir))


def test_out_of_domain_sets(real: None) -> None:
    assert len(load_test_set("newstest21", "eng-deu")) == 1_002
    assert len(load_test_set("newstest21", "deu-eng")) == 1_000
    assert len(load_test_set("newstest22-pivot", "eng-fra")) == 1_984
    german = load_test_set("multi30k-2016", "eng-deu")
    french = load_test_set("multi30k-2016", "eng-fra")
    assert len(german) == 1_000
    assert german.source == french.source
    assert len(load_test_set("multi30k-mscoco", "fra-deu")) == 461
    assert len(load_split("multi30k", "deu-fra", "train")) == 29_000
