"""How far lcc's token counts are from the truth, over real session files.

    python scripts/bench_tokens.py [SESSIONS_FOLDER] [--rates]

The truth is each session's own ``usage``: how much the context grew from one request to the next. For every
counter the table gives the error of the predicted growth (median and 90th percentile over steps of at least
100 tokens), per model family, before and after calibration. "Before" is the family's figures; "after" is
``calibrate`` on the earlier half of a session's steps. Both are tested on the later half alone. The middle column
scales a counter by one factor taken from the other sessions only. Counters from other packages (ctok, bpe_openai,
anthropic_tokenizer) join where they are installed.

What the table does not show: the sizes of the vocabularies, the factors for kinds of runs, the wrapping's constants
and the rules of calibration were all chosen while looking at these same sessions, later halves included. ``--held-out``
measures the factors for kinds of runs on the other sessions of the family, and tests on the one left out.

``--rates`` prints what the constants of lcc/tokens come from: characters for each token by tool, the families'
factors and the factors for budgets, measured against ctok's counts.

``--languages`` prints a budget's count over the exact one for texts in many languages, code and logs
(tests/tokens/languages.json, whose exact counts are ctok's).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles

from lcc.tokens.calibration import Calibration, StepCount, calibrate, checkable, predicted
from lcc.tokens.counters import VOCABULARY_BUDGET_FACTOR, HeuristicCounter, RunCounter
from lcc.tokens.counting import TokenCounter
from lcc.tokens.exact import run_counter
from lcc.tokens.families import FAMILIES, Family, family_of
from lcc.tokens.usage import UsageStep, usage_steps
from lcc.tokens.vocabulary import RUN
from lcc.tokens.vocabulary import run_counter as vocabulary_run_counter
from lcc.transcript.lines import split

SMALLEST = 100
LANGUAGES = Path(__file__).parents[1] / "tests" / "tokens" / "languages.json"


@dataclass(frozen=True)
class PlainCounter:
    """Any function that counts the tokens of a text."""

    method: str
    count: Callable[[str], int]


def load_sessions(folder: Path) -> dict[str, list[UsageStep]]:
    """The steps of each Claude Code session file in ``folder``, by file name."""
    sessions = {}
    for path in sorted(folder.glob("*.jsonl")):
        steps = list(usage_steps(document.value for document in split(path.read_bytes())))
        if steps:
            sessions[path.name] = steps
    return sessions


def family_name(steps: list[UsageStep]) -> str:
    return family_of(steps[-1].model).name


def shipped(family: Family) -> TokenCounter:
    return RunCounter(vocabulary_run_counter(family), method="lcc vocabulary")


def candidates() -> dict[str, Callable[[Family], TokenCounter]]:
    """Every counter that can be had here, by name; each makes the counter for a family."""
    found: dict[str, Callable[[Family], TokenCounter]] = {
        "characters (heuristic)": HeuristicCounter,
        "lcc vocabulary": shipped,
    }
    if run_counter("4.8") is not None:
        whole = import_module("ctok").token_count
        frame = {"3.0": 7, "4.8": 6}
        found["ctok, run by run"] = lambda family: RunCounter(run_counter(family.exact_version) or len, method="ctok")
        found["ctok, whole text"] = lambda family: PlainCounter(
            "ctok",
            lambda text: whole(text, family.exact_version) - frame[family.exact_version] if text else 0,
        )
    for package, names in (("bpe_openai", ("cl100k_base", "o200k_base")), ("anthropic_tokenizer", ("legacy",))):
        try:
            module = import_module(package)
        except ImportError:
            continue
        for name in names:
            encode = module.get_encoding(name).encode if package == "bpe_openai" else module.encode
            found[f"{package} {name}"] = lambda family, encode=encode: PlainCounter("", lambda text: len(encode(text)))
    return found


def errors(rows: Iterable[StepCount], calibration: Calibration) -> list[float]:
    return [abs(predicted(row, calibration) - row.true) / row.true for row in rows if row.true >= SMALLEST]


def summary(values: list[float]) -> str:
    if len(values) < 2:
        return f"{'-':>14}"
    return f"{100 * median(values):6.1f} {100 * quantiles(values, n=10)[8]:7.1f}"


def others_factor(name: str, family: str, own: dict[str, list[StepCount]], families: dict[str, str]) -> float:
    """The factor that the other sessions of the family give, for a counter's figures without this session."""
    values = sorted(
        ((row.true - predicted(row, Calibration(0.0))) / row.tokens, row.tokens)
        for other, rows in own.items()
        if other != name and families[other] == family
        for row in rows
        if row.tokens >= SMALLEST
    )
    if not values:
        return 1.0
    half = sum(weight for _, weight in values) / 2
    for value, weight in values:
        half -= weight
        if half <= 0:
            return value
    return 1.0


def measure(name: str, make: Callable[[Family], TokenCounter], sessions: dict[str, list[UsageStep]]) -> None:
    families = {session: family_name(steps) for session, steps in sessions.items()}
    counters = {family: make(FAMILIES[family]) for family in set(families.values())}  # type: ignore[index]
    texts = {
        (family, text)
        for session, steps in sessions.items()
        for step in steps
        for text in (*step.written, *step.added)
        for family in (families[session],)
    }
    start = time.process_time()
    for family, text in texts:
        counters[family].count(text)
    seconds = time.process_time() - start
    size = sum(len(text.encode("utf-8", "replace")) for _, text in texts) / 1e6
    halves: dict[str, tuple[list[UsageStep], list[StepCount]]] = {}
    everything: dict[str, list[StepCount]] = {}
    for session, steps in sessions.items():
        middle = len(steps) // 2
        counter = counters[families[session]]
        halves[session] = (steps[:middle], checkable(steps[middle:], counter))
        everything[session] = checkable(steps, counter)
    columns: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for session, (earlier, later) in halves.items():
        family = families[session]
        other = Calibration(others_factor(session, family, everything, families))
        for column, calibration in (
            ("own figures", Calibration()),
            ("others' factor", other),
            ("calibrated", calibrate(earlier, counters[family])),
        ):
            columns[family][column] += errors(later, calibration)
    for family in sorted(columns):
        cells = "  ".join(summary(columns[family][c]) for c in ("own figures", "others' factor", "calibrated"))
        steps_tested = len(columns[family]["calibrated"])
        print(f"{name:28} {family:6} {steps_tested:5} {cells} {size / seconds:8.1f}")


def rates(sessions: dict[str, list[UsageStep]], folder: Path) -> None:
    """Print the measured constants, against ctok's counts as the truth."""
    whole = import_module("ctok").token_count
    frames = {"3.0": 7, "4.8": 6}
    by_tool: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        tools: dict[str, str] = {}
        for document in split(path.read_bytes()):
            message = document.value.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else []:
                if not isinstance(block, dict):
                    continue
                if block.get("type") == "tool_use":
                    tools[str(block.get("id"))] = str(block.get("name"))
                text = block.get("content")
                if block.get("type") == "tool_result" and isinstance(text, str) and len(text) > 200:
                    by_tool[tools.get(str(block.get("tool_use_id")), "?")].append((len(text), whole(text, "4.8") - 6))
    print("characters for each token of the newer vocabulary, by tool (total, tenth and ninetieth percentile)")
    for tool, pairs in sorted(by_tool.items(), key=lambda item: -len(item[1])):
        ratios = [characters / tokens for characters, tokens in pairs]
        total = sum(c for c, _ in pairs) / sum(t for _, t in pairs)
        spread = quantiles(ratios, n=10) if len(ratios) > 1 else ratios * 9
        print(f"  {tool:24} {len(pairs):5} {total:5.2f} {spread[0]:5.2f} {spread[8]:5.2f}")
    words = {t for steps in sessions.values() for step in steps for t in step.written if len(t) > 200}
    total = sum(map(len, words)) / sum(whole(text, "4.8") - 6 for text in words)
    print(f"  words and inputs of the model: {total:.2f}")
    texts = {text for steps in sessions.values() for step in steps for text in (*step.written, *step.added)}
    texts = {text for text in texts if len(text) >= 200}
    for family in FAMILIES.values():
        ours = RunCounter(vocabulary_run_counter(family), method="")
        heuristic = HeuristicCounter(family)
        exact = RunCounter(run_counter(family.exact_version) or len, method="")
        true = {text: whole(text, family.exact_version) - frames[family.exact_version] for text in texts}
        factor = sum(true.values()) / sum(map(ours.count, texts))
        print(f"{family.name}: factor {factor:.3f}", end="")
        for name, counter, scale in (("vocabulary", ours, factor), ("heuristic", heuristic, 1), ("ctok", exact, 1)):
            ratios = [true[text] / (counter.count(text) * scale) for text in texts]
            print(f"; {name} 99th percentile of true/counted {quantiles(ratios, n=100)[98]:.2f}", end="")
        print()
        plain = [text for text in texts if text.isascii()]
        other = [text for text in texts if not text.isascii()]
        for kind, chosen in (("ASCII", plain), ("other", other)):
            print(f"  {kind}: {sum(map(len, chosen)) / sum(true[text] for text in chosen):.2f} characters a token")


def kind_factors(texts: set[str], family: Family) -> Family:
    """The family with the factors that ``texts`` give: true tokens over ours, for each kind of run."""
    plain = replace(family, words=1.0, capitals=1.0, punctuation=1.0)
    ours, exact = vocabulary_run_counter(plain), run_counter(family.exact_version)
    sums: dict[str, list[float]] = {"words": [0, 0], "capitals": [0, 0], "punctuation": [0, 0]}
    for run, times in Counter(run for text in texts for run in RUN.findall(text)).items():
        word = run.rstrip(" ")
        if not word or word[0].isspace() or word[0].isdigit() or exact is None:
            continue
        if word[0].isalpha():
            kind = "capitals" if len(word) > 1 and word.isupper() else "words"
        elif len(word) > 1:
            kind = "punctuation"
        else:
            continue
        sums[kind][0] += times * exact(run)
        sums[kind][1] += times * ours(run)
    return replace(plain, **{kind: true / max(counted, 1) for kind, (true, counted) in sums.items()})


def held_out(sessions: dict[str, list[UsageStep]]) -> None:
    """Print the shipped vocabulary's errors, its factors measured on the other sessions of the family alone."""
    texts = {
        name: {text for step in steps for text in (*step.written, *step.added)} for name, steps in sessions.items()
    }
    print(
        "session left out: family, words/capitals/punctuation; later half's steps; error in percent: as is, calibrated"
    )
    pooled: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for name, steps in sessions.items():
        family = family_name(steps)
        others = [other for other in sessions if other != name and family_name(sessions[other]) == family]
        found = kind_factors(set().union(*(texts[other] for other in others)), family_of(steps[-1].model))
        counter = RunCounter(vocabulary_run_counter(found), method="")
        middle = len(steps) // 2
        later = checkable(steps[middle:], counter)
        plain = errors(later, Calibration())
        calibrated = errors(later, calibrate(steps[:middle], counter))
        pooled[family][0].extend(plain)
        pooled[family][1].extend(calibrated)
        factors = f"{found.words:.2f}/{found.capitals:.2f}/{found.punctuation:.2f}"
        counts = f"{len(plain)} of {len(steps) - middle}"
        print(f"{name:24} {family:6} {factors} {counts:>10} {summary(plain)}  {summary(calibrated)}")
    for family, (plain, calibrated) in sorted(pooled.items()):
        print(f"{'all':24} {family:6} {'':14} {len(plain):>10} {summary(plain)}  {summary(calibrated)}")


def language_factors(file: Path = LANGUAGES) -> dict[str, dict[str, float]]:
    """For each text of ``file``: a budget's count over the exact one, by family, with the shipped vocabulary."""
    counters = {
        name: RunCounter(vocabulary_run_counter(family), method="", factor=VOCABULARY_BUDGET_FACTOR)
        for name, family in FAMILIES.items()
    }
    texts = json.loads(file.read_text(encoding="utf-8"))
    return {
        language: {name: counter.count(known["text"]) / known[name] for name, counter in counters.items()}
        for language, known in texts.items()
    }


def main() -> None:
    shared = Path(__file__).parents[2] / "shared" / "sessions"
    parser = argparse.ArgumentParser(description="Token counts against the truth of real sessions.")
    parser.add_argument("folder", nargs="?", type=Path, default=shared)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--languages", action="store_true")
    options = parser.parse_args()
    if options.languages:
        print(f"{'a budget over the exact count':30} older newer")
        for language, factors in language_factors().items():
            print(f"{language:30} {factors['older']:5.2f} {factors['newer']:5.2f}")
        return
    sessions = load_sessions(options.folder)
    if not sessions:
        parser.exit(2, f"{options.folder}: no session file with usage records\n")
    if options.rates:
        rates(sessions, options.folder)
        return
    if options.held_out:
        held_out(sessions)
        return
    print(f"{len(sessions)} sessions, {sum(map(len, sessions.values()))} steps; error in percent: median, 90th")
    print(
        f"{'counter':28} {'family':6} {'steps':>5} {'own figures':>14}  {'others factor':>14}  {'calibrated':>14}  MB/s"
    )
    for name, make in candidates().items():
        measure(name, make, sessions)


if __name__ == "__main__":
    main()
