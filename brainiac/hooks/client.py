"""What a host's hook runs: it asks the running daemon, and prints what memory says in the host's own form, or nothing.

    python -I -S client.py STATE_FOLDER [SECONDS]

It imports the standard library alone, and nothing of the program: it is started at each prompt that a person types.
It never starts a daemon. Without one, and whatever goes wrong or takes longer than 400 ms (or what is named), it ends
with nothing printed.
"""

import json
import os
import signal
import socket
import sys
import time

SECONDS, LEAST = 0.38, 0.02  # from the start of the process, with what its end takes within 400 ms; at least so much
MOST_INPUT, MOST_READ, MOST_TURNS = 1_000_000, 32_768, 40
# of each host's events what they mean to the daemon; a start after a compaction is `again`
EVENTS = {
    "UserPromptSubmit": "related",
    "SessionStart": "waiting",
    "Stop": "end",
    "beforeSubmitPrompt": "related",
    "sessionStart": "waiting",
    "afterAgentResponse": "answer",
    "stop": "end",
}


def main(until: float) -> None:
    """Answer one event of a host, which comes as JSON on standard input, until a moment in seconds since 1970."""
    event = json.loads(sys.stdin.buffer.read(MOST_INPUT))
    name = event.get("hook_event_name", "")
    if name not in EVENTS:
        return
    kind, host = EVENTS[name], host_of(event)
    is_prompt, source = kind == "related", event.get("source") or ""
    if host == "cursor" and event.get("is_background_agent"):
        return
    if event.get("agent_id") and not is_prompt:  # a helper of the assistant's
        return
    asked = {
        "text": event.get("prompt" if is_prompt else "last_assistant_message" if name == "Stop" else "text") or "",
        "session": event.get("session_id") or event.get("conversation_id") or "",
        "key": event.get("prompt_id") or event.get("turn_id") or event.get("generation_id") or "",
        "project": event.get("cwd") or (event.get("workspace_roots") or [""])[0],
        "transcript": event.get("transcript_path") or "",
        "turns": last_turns(event.get("transcript_path") or "") if is_prompt else [],
        "source": source if is_prompt else "",
        "kind": "again" if kind == "waiting" and source == "compact" else kind,
        "until": until - LEAST,  # what comes later would count as said, and is not
    }
    if text := ask(sys.argv[1], host, asked):
        sys.stdout.write(json.dumps(form(name, text)))  # in ASCII, whatever the locale
        sys.stdout.flush()


def age() -> float:
    """Return for how many seconds this process runs, the starts of shell and interpreter among them."""
    seconds = usual = 0.03
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, AttributeError, ValueError):  # no Linux
        pass
    return seconds if 0 <= seconds < 5 else usual  # some sandboxes tell nonsense


def host_of(event: dict) -> str:  # type: ignore[type-arg]
    """Return which host runs this, whose settings file it may not be: Cursor runs Claude Code's hooks too."""
    if os.environ.get("CURSOR_VERSION") or event["hook_event_name"][0].islower():
        return "cursor"
    return "codex" if "turn_id" in event or "model" in event else "claude-code"


def form(event: str, text: str) -> dict:  # type: ignore[type-arg]
    """Return a text for a model as the host that named an event so reads it."""
    if event == "beforeSubmitPrompt":
        return {"continue": True, "additional_context": text}
    if event == "sessionStart":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def last_turns(path: str) -> list:  # type: ignore[type-arg]
    """Return the texts at the end of a session's transcript, lines of JSON; none where it cannot be read."""
    texts: list = []  # type: ignore[type-arg]

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, str) and key in ("text", "content", "message", "additionalContext"):
                    texts.append(inner)
                else:
                    collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_READ))
            lines = file.read(MOST_READ).split(b"\n")
    except OSError:
        return []
    for line in lines:
        try:
            collect(json.loads(line))
        except ValueError:  # the first and the last may be torn
            continue
    return texts[-MOST_TURNS:]


def ask(state: str, host: str, asked: dict) -> str:  # type: ignore[type-arg]
    """Return what the daemon whose state folder this is says; "" where it is silent or refuses."""
    with open(os.path.join(state, "server.json"), encoding="utf-8") as file:
        path = json.load(file)["socket"]
    # where the system was started anew, somebody else could have made a folder of that name
    if os.stat(os.path.dirname(path)).st_uid != os.getuid():
        return ""
    with open(os.path.join(state, "token"), encoding="ascii") as file:
        lines = [line.split() for line in file if line.strip()]
    # that of the person's own tools: it is they who type
    token = next((words[1] for words in lines if words[0] == "mine"), lines[0][-1])
    body = json.dumps(asked).encode()
    head = (
        "POST /api/push HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nX-Brainiac-Client: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    connection.sendall(head.encode() + body)
    answer = b""
    while part := connection.recv(65_536):
        answer += part
    status, _, rest = answer.partition(b"\r\n")
    # a daemon that ends in the middle leaves half of the JSON, which is none
    return json.loads(rest.partition(b"\r\n\r\n")[2])["text"] if status.split()[1] == b"200" else ""


if __name__ == "__main__":
    try:
        seconds = max(LEAST, (float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS) - age())
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
            signal.setitimer(signal.ITIMER_REAL, seconds)
        main(time.time() + seconds)
    except BaseException:  # noqa: BLE001  # whatever it is: a hook that fails is in the person's way
        pass
    os._exit(0)
