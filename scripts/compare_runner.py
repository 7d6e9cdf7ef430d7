"""One pass of whichever lcc this Python has, timed; started by bench_compare.py, once in each environment.

    PYTHON compare_runner.py PAYLOAD.json MODE ROOT REPEATS OUT.json
    PYTHON compare_runner.py recall IDS.json OUT.json

The first writes the compacted messages to OUT.json and prints figures as one line of JSON; the second fetches
texts from the stash. Needs nothing but the package.
"""

import json
import resource
import sys
import time


def recall(source: str, target: str) -> None:
    """Write the texts behind the ids in ``source`` to ``target``, null for what the stash does not give back."""
    try:
        from lcc.relevance.transcript_stash import recall as fetch
    except ImportError:
        from lcc.stash import Stash, stash_folder

        stash = Stash(stash_folder(), "compare")

        def fetch(name: str) -> str:
            return stash.get(name).decode("utf-8", "surrogatepass")

    texts = {}
    with open(source, encoding="utf-8") as opened:
        for name in json.load(opened):
            try:
                texts[name] = fetch(name)
            except (ValueError, OSError):
                texts[name] = None
    with open(target, "w", encoding="utf-8") as opened:
        json.dump(texts, opened)


def main() -> None:
    if sys.argv[1] == "recall":
        recall(*sys.argv[2:])
        return
    source, mode, root, repeats, target = sys.argv[1:]
    from lcc.relevance import TranscriptCompactionRequest, compact_transcript, messages_to_payload

    with open(source, encoding="utf-8") as opened:
        payload = json.load(opened)
    times = []
    for _ in range(int(repeats)):
        request = TranscriptCompactionRequest(
            payload=payload,
            question="go on",
            provider="rules",
            rules_mode=mode,
            workspace_root=root or None,
        )
        started = time.process_time()
        result = compact_transcript(request)
        times.append(time.process_time() - started)
    messages = messages_to_payload(result.messages)
    with open(target, "w", encoding="utf-8") as opened:
        json.dump(messages, opened, ensure_ascii=True)
    report = result.report
    figures = {
        "pass_s": min(times),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "guarantee": report["semantic_guarantee"],
        "stash_dir": report.get("stash_dir"),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
