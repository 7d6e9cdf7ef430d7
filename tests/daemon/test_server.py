"""The server against many clients, slow ones and broken ones."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from daemon.daemon_world import (
    MARKER,
    World,
    frame,
    header,
    is_running,
    make_event,
    read_exactly,
    read_frame,
    wait_until,
)

GOOD, BAD = 180, 20


def bad_client(world: World, number: int, event: bytes, stop: threading.Event) -> None:
    """One of the ways in which a peer can be slow or broken; the number says which."""
    line = world.connect()
    try:
        match number % 10:
            case 0:  # slowloris: a byte now and then
                for byte in frame(header("compact")):
                    line.sendall(bytes([byte]))
                    if stop.wait(0.3):
                        return
            case 1:  # half a header
                line.sendall(frame(header("compact"))[:20])
                stop.wait()
            case 2:  # a header, and half a body
                line.sendall(frame(header("compact")) + (50_000_000).to_bytes(4, "big") + b"x" * 1000)
                stop.wait()
            case 3:  # a length over the limit
                line.sendall(b"\xff\xff\xff\xff" + b"x" * 100)
                stop.wait()
            case 4:  # garbage
                line.sendall(os.urandom(5000))
                stop.wait()
            case 5:  # leaves in the middle
                line.sendall(frame(header("compact")) + (5000).to_bytes(4, "big") + b"{")
            case 6:  # leaves while it is served
                line.sendall(frame(header("compact")) + frame(event))
            case 7:  # never says anything
                stop.wait()
            case 8:  # asks, and never reads the answer
                line.sendall(frame(header("compact")) + frame(event))
                stop.wait()
            case 9:  # a body that is no event
                line.sendall(frame(header("compact")) + frame(b"[1, 2"))
                stop.wait()
    except OSError:
        pass
    finally:
        line.close()


def test_two_hundred_clients_twenty_of_them_slow_or_broken(world: World) -> None:
    """All 180 good ones, each a process of its own, get exactly the right plan; status answers throughout."""
    event = make_event(world)
    world.start()
    expected = world.plan(event)
    assert expected["action"] == "replace"
    stop = threading.Event()
    bad = [threading.Thread(target=bad_client, args=(world, number, event, stop)) for number in range(BAD)]
    for thread in bad:
        thread.start()
    good = [world.start_client("compact", event, LCC_BUDGET_MS="60000") for _ in range(GOOD)]
    state = world.status()["state"]
    answers = [client.communicate(timeout=120)[0] for client in good]
    stop.set()
    for thread in bad:
        thread.join(60)
    assert state in ("running", "busy")
    plans = [json.loads(answer) for answer in answers]
    assert [plan["action"] for plan in plans] == ["replace"] * GOOD
    assert all(plan["results"] == expected["results"] for plan in plans)
    found = world.status()
    assert found["failed"] == 0
    assert int(str(found["refused"])) >= 6
    assert len(world.processes()) == 1


def test_status_answers_while_a_large_request_is_served(world: World) -> None:
    """Busy is a state, with what and for how long; it is not `unresponsive`."""
    world.start()
    event = make_event(world, files=200, lines=800)
    client = world.start_client("compact", event)
    seen: list[dict[str, object]] = []

    def is_busy() -> bool:
        seen.append(world.status())
        return seen[-1]["state"] == "busy"

    assert wait_until(is_busy, 60), seen
    busy = seen[-1]["busy"]
    assert isinstance(busy, list)
    assert busy[0]["command"] == "compact"
    assert {each["state"] for each in seen} <= {"running", "busy"}
    assert json.loads(client.communicate(timeout=60)[0])["action"] in ("replace", "parts")


def test_a_slow_client_does_not_delay_another(world: World) -> None:
    """While one client dawdles over its body, another one's whole call is served."""
    world.start()
    slow = world.connect()
    read_frame(slow)
    slow.sendall(frame(header("compact")) + (1_000_000).to_bytes(4, "big") + b"x")
    assert world.plan(make_event(world))["action"] == "replace"
    slow.close()


def test_a_slow_header_is_cut(world: World) -> None:
    """A request that is not there within the time is dropped, and the log says why."""
    world.start()
    line = world.connect()
    read_frame(line)
    line.sendall(frame(header("compact"))[:10])
    assert line.recv(1) == b""
    assert wait_until(lambda: "a client was too slow" in world.log())


@pytest.mark.parametrize(
    ("request_bytes", "reason"),
    [
        (frame(b"no fields at all") + frame(b""), "bad-request"),
        (frame(header("compact", protocol="99")) + frame(b""), "other-version"),
        (frame(header("compact", build="0.0.0")) + frame(b""), "other-version"),
        (frame(header("no-such-command")) + frame(b""), "unknown-command"),
        (frame(header("no-such-command")) + frame(b"{}"), "unknown-command"),
        (frame(header("compact")) + (2**32 - 1).to_bytes(4, "big"), "too-large"),
    ],
)
def test_a_request_that_cannot_be_served_is_told_why(world: World, request_bytes: bytes, reason: str) -> None:
    """The peer gets a machine word and a line, and the daemon goes on."""
    world.start()
    line = world.connect()
    read_frame(line)
    line.sendall(request_bytes)
    answer = read_frame(line).decode()
    assert answer.startswith(f"error 0\n{reason}\n")
    assert len(answer.split("\n")) == 3
    line.close()
    assert world.status()["state"] == "running"


def test_a_header_over_its_limit_is_dropped_before_it_is_read(world: World) -> None:
    """A length field alone makes nothing grow: the connection ends at once."""
    pid = world.start()
    before = memory_of(pid)
    lines = [world.connect() for _ in range(20)]
    for line in lines:
        read_frame(line)
        line.sendall((2**31).to_bytes(4, "big"))
        assert line.recv(1) == b""
    assert memory_of(pid) - before < 50_000_000


def test_announced_bodies_take_no_memory_until_they_come(world: World) -> None:
    """Twenty clients that announce 100 MB and send nothing cost next to nothing."""
    pid = world.start()
    before = memory_of(pid)
    lines = [world.connect() for _ in range(20)]
    for line in lines:
        read_frame(line)
        line.sendall(frame(header("compact")) + (100_000_000).to_bytes(4, "big"))
    assert world.plan(make_event(world))["action"] == "replace"
    assert memory_of(pid) - before < 200_000_000


def memory_of(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_work_nobody_waits_for_does_not_hold_the_daemon(world: World) -> None:
    """Clients that leave while they are served: more than there are workers, and the next one is still served."""
    world.start()
    event = make_event(world, files=60, lines=800)
    for _ in range(12):
        line = world.connect()
        read_frame(line)
        line.sendall(frame(header("compact")) + frame(event))
        line.close()
    assert world.plan(make_event(world))["action"] == "replace"
    assert wait_until(lambda: "went away" in world.log())


def test_a_session_of_forty_megabytes(world: World) -> None:
    """The event of a 40 MB session, each output twice in it, is served whole."""
    event = make_event(world, files=520, lines=1300)
    assert len(event) > 80_000_000
    plan = world.plan(event)
    assert plan["action"] == "replace"
    results = plan["results"]
    assert isinstance(results, dict)
    assert len(results) > 500


def test_the_client_refuses_more_than_the_limit(world: World) -> None:
    """Over the frame limit nothing is sent: the call is handed over, and says so."""
    plan = world.plan(b"x" * (128 * 1024 * 1024 + 1))
    assert (plan["action"], plan["reason"]) == ("hand-over", "too-large")
    assert world.processes() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_even_behind_an_open_door(world: World) -> None:
    """Should the folder's rights be lost, the peer's uid is still checked: no greeting, no answer."""
    world.start()
    world.root.chmod(0o755)
    world.runtime.chmod(0o755)
    world.socket_file.chmod(0o666)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setuid(65534)
            line = world.connect()
            os.write(write, b"got:" + line.recv(100))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 200) == b"got:"
    assert wait_until(lambda: "a client of another user (65534)" in world.log())
    os.close(read)
    world.runtime.chmod(0o700)
    assert world.status()["state"] == "running"


def test_whoever_asks_it_to_stop_need_not_wait_for_the_answer(world: World) -> None:
    """The request counts, not whether its answer can still be delivered; nor does a peer that has it all and left."""
    for _ in range(3):
        pid = world.start()
        line = world.connect()
        read_frame(line)
        line.sendall(frame(header("stop")) + frame(b""))
        line.close()
        assert wait_until(lambda pid=pid: not is_running(pid))
    assert "stopped: asked to" in world.log()


def test_one_request_a_connection(world: World) -> None:
    """After its answer the daemon closes: nothing that follows a request is taken for another one."""
    world.start()
    line = world.connect()
    read_frame(line)
    line.sendall((frame(header("ping")) + frame(b"")) * 2)
    assert read_frame(line) == b"ok 0\n"
    assert read_exactly(line, 8) == frame(b"pong")
    with contextlib.suppress(ConnectionResetError):
        assert line.recv(1) == b""


def test_twenty_parallel_large_and_small_requests_keep_their_answers_apart(world: World) -> None:
    """Each client gets the plan of its own session, whatever runs beside it."""
    world.start()
    events = {files: make_event(world, files=files) for files in (3, 6, 9, 12)}
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            (files, pool.submit(world.plan, event, LCC_RULES_MODE="recoverable"))
            for files, event in events.items()
            for _ in range(5)
        ]
        for files, job in jobs:
            results = job.result(90)["results"]
            assert isinstance(results, dict)
            assert len(results) == files


def test_figures_count_what_was_done(world: World) -> None:
    """Requests, latency, saved bytes today and ever, the last error: each shows in `status --json`."""
    world.start()
    event = make_event(world)
    plan = world.plan(event)
    world.plan(b"{}")
    assert wait_until(lambda: world.status()["bytes_saved"]["ever"] > 0)  # type: ignore[index]
    found = world.status()
    assert found["requests"] == 2
    latency, saved = found["latency_ms"], found["bytes_saved"]
    assert isinstance(latency, dict)
    assert isinstance(saved, dict)
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"]
    results = plan["results"]
    assert isinstance(results, dict)
    originals = {
        result["tool_use_id"]: result["text"]
        for message in json.loads(event)["messages"]
        for result in message.get("toolResults", [])
    }
    assert saved["ever"] == sum(len(originals[key].encode()) - len(note.encode()) for key, note in results.items())
    world.cli("restart")
    again = world.status()
    assert again["requests"] == 0
    assert again["bytes_saved"] == saved


def test_the_log_holds_counts_and_never_content(world: World) -> None:
    """Sessions with a secret in every text, good, broken and refused: it is in no log file, only in what is private."""
    world.start()
    world.plan(make_event(world))
    world.plan(make_event(world, trigger="auto " + MARKER))
    world.plan(b'{"messages": "' + MARKER.encode())
    world.plan(make_event(world, messages=[{"role": MARKER, "text": MARKER, "toolUses": []}]))
    world.plan(make_event(world, cwd=f"/{MARKER}/\x00"))
    world.client("pre-compact", json.dumps({"transcript_path": f"/nowhere/{MARKER}.jsonl", "cwd": "/"}))
    line = world.connect()
    read_frame(line)
    line.sendall(frame(header(MARKER)) + frame(MARKER.encode()))
    read_frame(line)
    line.close()
    world.cli("stop")
    log = world.log()
    assert "compact replace" in log or "compact: replace" in log
    assert MARKER not in log
    assert MARKER not in (world.state / "daemon-fault.log").read_text()
    started = world.runtime.glob("*.output")
    assert all(MARKER not in file.read_text() for file in started)


def test_a_socket_that_is_only_looked_at_is_no_refusal(world: World) -> None:
    """Clients that probe whether somebody is there are not counted as broken."""
    world.start()
    for _ in range(5):
        line = world.connect()
        read_frame(line)
        line.close()
    time.sleep(0.2)
    assert world.status()["refused"] == 0


def test_a_client_may_be_a_plain_socket(world: World) -> None:
    """The protocol is what protocol.py says: greeting, header, body, answer; nothing else is needed."""
    from lcc_daemon.protocol import BUILD, PROTOCOL

    pid = world.start()
    line: socket.socket = world.connect()
    assert read_frame(line) == f"lcc {PROTOCOL} {BUILD} {pid}".encode()
    line.sendall(frame(header("ping")) + frame(b""))
    assert (read_frame(line), read_frame(line)) == (b"ok 0\n", b"pong")
