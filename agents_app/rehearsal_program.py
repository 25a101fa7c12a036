"""The program behind the rehearsal provider: no model, no network, always the same answer.

Stdlib only, so that it starts in milliseconds. It reads the prompt from standard input, follows the
script in its first argument, and writes JSON lines.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

DEFAULT = (
    "This is a rehearsal: no AI program is connected to @{agent} yet, so nobody thought about this. "
    "You wrote: “{text}”"
)


def main() -> None:
    """Play the script once."""
    script = json.loads(sys.argv[1])
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    text = prompt.partition("\n")[2] if script.get("headed") else prompt
    words = {"text": text.strip(), "agent": script["agent"], "attempt": script["attempt"]}
    leave_survivors(int(script.get("survivors", 0)))
    write_raw(script)
    for step in script.get("steps", []):
        say(type="progress", text=fill(step, words))
        time.sleep(script.get("pause", 0))
    time.sleep(script.get("delay", 0))
    if script.get("only_on", "") in text:
        misbehave(script)
    answer = fill(script.get("answer", DEFAULT), words)
    say(type="result", text=answer, input_tokens=len(prompt) // 4, output_tokens=len(answer) // 4)
    time.sleep(script.get("linger", 0))


def fill(template: str, words: dict[str, object]) -> str:
    """Put the words into a template; braces that name nothing stay as they are."""
    for name, value in words.items():
        template = template.replace("{" + name + "}", str(value))
    return template


def say(**line: object) -> None:
    """Write one JSON line at once."""
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def misbehave(script: dict[str, object]) -> None:
    """Fail as the script says, on all attempts or on the first ones only."""
    if int(str(script["attempt"])) > int(str(script.get("until_attempt", 1_000_000))):
        return
    if "tool" in script:
        say(type="tool", name=script["tool"])
    if "fail" in script:
        message = script.get("message", f"The script says: {script['fail']}.")
        reset_in = script.get("reset_in")
        say(type="error", error_class=script["fail"], message=message, reset_in=reset_in)
        sys.exit(1)
    if script.get("crash"):
        os.kill(os.getpid(), signal.SIGKILL)
    if script.get("exit") is not None:
        sys.exit(int(str(script["exit"])))
    while script.get("silence"):
        time.sleep(3600)


def write_raw(script: dict[str, object]) -> None:
    """Write what no well-behaved program writes: much, in one line, or not in UTF-8."""
    if script.get("bad_bytes"):
        sys.stdout.buffer.write(b"\xff\xfe\x00 not text \xc3\x28\n")
    line = b"x" * int(str(script.get("line_bytes", 100))) + b"\n"
    for _ in range(int(str(script.get("lines", 0)))):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def leave_survivors(count: int) -> None:
    """Start processes that leave the session, drop their environment and ignore SIGTERM."""
    for _ in range(count):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execve("/bin/sleep", ["sleep", "3600"], {})  # noqa: S606
        os.wait()


if __name__ == "__main__":
    main()
