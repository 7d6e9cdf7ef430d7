"""Train the vocabularies that lcc counts tokens with, on freely licensed text found on this machine.

    python scripts/train_vocabulary.py [--add FOLDER]... [--megabytes N]

Text comes from the standard library of the running Python and from each folder added: source code, type
stubs, Markdown, JSON and plain text. About a third of the files gets line numbers, as the Read tool prints
them. Two byte-pair vocabularies are trained and written as lists of merges to ``lcc/tokens/``: one shaped
like the older Claude vocabulary, one like the newer, which knows fewer words and spells most capitals inside
a word one by one. The choice of text is seeded, so the same folders give the same files.

The shipped files were trained on CPython 3.12's standard library (PSF licence) and these npm packages with
their dependencies: typescript (Apache-2.0), @types/node, eslint, react, next, express, prettier, lodash (MIT).
"""

from __future__ import annotations

import argparse
import os
import random
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from lcc.tokens.families import FAMILIES
from lcc.tokens.vocabulary import END_OF_WORD, MERGES_HEADER, runs_of

SUFFIXES = (".py", ".pyi", ".ts", ".tsx", ".js", ".mjs", ".cjs", ".md", ".rst", ".txt", ".json")
LARGEST_FILE = 200_000
SEED = 7


def text_files(folder: Path) -> list[Path]:
    """The text files under ``folder`` of a fitting kind and size, in a fixed order."""
    found = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            path = Path(place, name)
            if name.endswith(SUFFIXES) and ".min." not in name and 200 < path.stat().st_size < LARGEST_FILE:
                found.append(path)
    return sorted(found)


def numbered(text: str, choose: random.Random) -> str:
    """``text`` as the Read tool shows it: ``N<tab>line`` or the older, padded ``N→line``."""
    lines = enumerate(text.split("\n"), 1)
    if choose.random() < 0.5:
        return "\n".join(f"{number}\t{line}" for number, line in lines)
    return "\n".join(f"{number:6}→{line}" for number, line in lines)


def sample(folders: list[Path], characters: int) -> Iterator[str]:
    """Texts from ``folders``, an equal share from each, about ``characters`` in all."""
    choose = random.Random(SEED)
    for folder in folders:
        room = characters // len(folders)
        files = text_files(folder)
        choose.shuffle(files)
        for path in files:
            if room <= 0:
                break
            try:
                text = path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue
            room -= len(text)
            yield numbered(text, choose) if choose.random() < 0.3 else text


def train(runs: Counter[str], size: int) -> list[tuple[str, str]]:
    """The merges of a byte-pair vocabulary of ``size`` entries over runs with their frequencies."""
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix=END_OF_WORD))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        min_frequency=3,
        end_of_word_suffix=END_OF_WORD,
    )
    tokenizer.train_from_iterator((run for run, times in sorted(runs.items()) for _ in range(times)), trainer)
    import json

    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(first, second) for first, second in merges]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the vocabularies that lcc counts tokens with.")
    parser.add_argument("--add", action="append", default=[], type=Path, metavar="FOLDER")
    parser.add_argument("--megabytes", type=int, default=24)
    options = parser.parse_args()
    folders = [Path(sysconfig.get_path("stdlib")), *options.add]
    texts = list(sample(folders, options.megabytes * 1_000_000))
    print(f"{len(texts)} texts, {sum(map(len, texts)) / 1e6:.1f} million characters")
    target = Path(__file__).parents[1] / "lcc" / "tokens"
    for family in FAMILIES.values():
        runs: Counter[str] = Counter()
        for text in texts:
            runs.update(runs_of(text, family))
        merges = train(runs, family.size)
        lines = [MERGES_HEADER, *(f"{first} {second}" for first, second in merges)]
        path = target / family.file
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path.name}: {len(merges)} merges, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
