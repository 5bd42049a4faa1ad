"""How the program starts and ends: streams that are closed or full, too little memory, signals at any moment."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from kafka_assign.samples import demo_group

PROGRAM = [sys.executable, "-m", "kafka_assign"]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are POSIX's")


def shell(script, *words, text=None):
    """A script of the shell with the program's words as `$@`, started with the usual signals."""
    done = subprocess.run(["sh", "-c", script, "sh", *PROGRAM, *words], input=text, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    return done


def one_line(text):
    return text.endswith("\n") and text[:-1].isprintable() and text.startswith("kafka-assign: ")


FULL = "/dev/full"
STREAMS = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", f">{FULL}", f"2>{FULL}", f">{FULL} 2>{FULL}"]


@pytest.mark.skipif(not os.path.exists(FULL), reason="needs /dev/full")
@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("words, otherwise", [("", 0), ("--fail-if moved>=0", 1)])
def test_a_stream_that_is_closed_or_full(streams, words, otherwise):
    """1 is the answer of a condition: not of a command that could not say it."""
    done = shell(f'"$@" {streams}', "compare", "-", "-s", "fair", *words.split(), text=demo_group().to_json())
    broken = "<" in streams or re.match(">|.* >", streams)
    assert done.returncode == (3 if broken else otherwise)
    if broken and "2>" not in streams:
        assert one_line(done.stderr.splitlines(True)[-1]) and done.stderr.endswith(
            ": No space left on device\n" if FULL in streams else ": Bad file descriptor\n")


@pytest.mark.skipif(not os.path.exists(FULL), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["--help", "--version", "rank --help", "strategies --format json"])
def test_what_needs_no_input_cannot_be_written_either(words):
    for streams in ">&-", f">{FULL}":
        done = shell(f'"$@" {streams}', *words.split())
        assert done.returncode == 3 and one_line(done.stderr)
    assert shell('PYTHONUNBUFFERED=1 "$@" | true', *words.split()).stderr == ""


@POSIX
def test_a_closed_stream_is_no_place_for_a_file(tmp_path):
    """The file would be number 2, into which libraries write what they have to say."""
    code = "import os, sys; sys.argv[1:] = ['--version']; from kafka_assign.cli.app import main\n" \
           "try:\n    main()\nfinally:\n    print(open('file', 'x').fileno())"
    done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", sys.executable, "-c", code], cwd=tmp_path,
                          capture_output=True, text=True)
    assert int(done.stdout.split()[-1]) > 2


@POSIX
@pytest.mark.parametrize("megabytes", [24, 32, 48, 64, 96, 112, 128, 144, 160, 256])
def test_too_little_memory(megabytes):
    limit = f"ulimit -v {megabytes * 1000}"
    bare = subprocess.run(["sh", "-c", f'{limit}; "$@"', "sh", sys.executable, "-c", "pass"], capture_output=True)
    if bare.returncode:
        pytest.skip("Python itself does not start")
    done = shell(f'{limit}; "$@"', "compare", "--demo")
    assert done.returncode == 0 or done.returncode == 3 and one_line(done.stderr), done.stderr


@POSIX
def test_memory_that_runs_out_later():
    text = json.dumps({"topics": {"t": 4_000_000}, "lag": {"t": [1] * 4_000_000}, "members": {"a": ["t"]}})
    done = shell('ulimit -v 300000; "$@"', "compare", "-", "-s", "range", text=text)
    assert done.returncode == 3 and one_line(done.stderr), done.stderr
    assert "MemoryError" in done.stderr and re.search(r"\(kafka_assign/[\w/]+\.py, line \d+\)$", done.stderr)


# The program, of which a copy gets a signal at every hundredth event that Python reports (`sys.addaudithook`):
# imports, files that are opened, and the like, also within C.
COPIES = """
import json, os, signal, sys
from kafka_assign.__main__ import main
folder, copies, seen = sys.argv.pop(1), [], 0
signal.signal(signal.SIGINT, signal.default_int_handler)

def look(*_):
    global seen
    seen += 1
    if seen % 100 or seen < 0:
        return
    copies.append(0)
    if copy := os.fork():
        copies[-1] = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    else:
        seen = -10 ** 9
        os.dup2(os.open(f"{folder}/{len(copies)}.txt", os.O_CREAT | os.O_WRONLY), 2)
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(look)
original = os.getpid()
try:
    main()
finally:
    if os.getpid() == original:
        seen = -10 ** 9
        with open(f"{folder}/codes.json", "w") as file:
            json.dump(copies, file)
"""


@POSIX
def test_interrupted_at_any_moment_of_its_start(tmp_path):
    subprocess.run([sys.executable, "-c", COPIES, str(tmp_path), "compare", "--demo"], check=True, capture_output=True)
    codes = json.loads((tmp_path / "codes.json").read_text())
    errors = {(tmp_path / f"{number}.txt").read_text() for number in range(1, len(codes) + 1)}
    assert len(codes) >= 50 and set(codes) == {130} and errors <= {"", "kafka-assign: interrupted\n"}


@POSIX
def test_an_ignored_signal_stays_ignored():
    code = ("import os, signal; from kafka_assign.__main__ import main; import kafka_assign.cli.output as output\n"
            "show = output.show_comparisons\n"
            "output.show_comparisons = lambda *all: (os.kill(os.getpid(), signal.SIGINT), show(*all))\nmain()")
    for trap, expected in ("''", 0), ("-", 130):
        words = ["sh", "-c", f'trap {trap} INT; "$@"', "sh", sys.executable, "-c", code, "compare", "--demo"]
        done = subprocess.run(words, capture_output=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        assert done.returncode == expected


@POSIX
@pytest.mark.parametrize("name, code", [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_leaves_the_output_as_it_was(tmp_path, name, code):
    half = ("import os, signal; from kafka_assign.__main__ import main; import kafka_assign.cli.output as output\n"
            f"signal.signal(signal.{name}, signal.SIG_DFL)\n"
            f"output.show_assignment = lambda *all: (print('half'), os.kill(os.getpid(), signal.{name}))\nmain()")
    (tmp_path / "group.json").write_text(demo_group().to_json())
    (tmp_path / "out.txt").write_text("before")
    done = subprocess.run([sys.executable, "-c", half, "assign", "group.json", "-s", "fair", "-o", "out.txt"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, "kafka-assign: interrupted\n")
    assert sorted(os.listdir(tmp_path)) == ["group.json", "out.txt"]
    assert (tmp_path / "out.txt").read_text() == "before"


@POSIX
def test_an_interrupt_that_a_library_swallows():
    """In a callback Python only reports it; in C it may become an `ImportError`, as NumPy's do."""
    start = ("import os, signal; import kafka_assign.cli.output as output; from kafka_assign.__main__ import main\n"
             "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
             "class Left:\n    def __del__(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
             "def wrong(*all):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
             "    except KeyboardInterrupt:\n        raise ImportError('numpy failed to import') from None\n"
             "output.show_comparisons = ")
    for function in "lambda *all: Left() and None", "wrong":
        done = subprocess.run([sys.executable, "-c", f"{start}{function}\nmain()", "compare", "--demo"],
                              capture_output=True, text=True)
        assert done.returncode == 130 and "Traceback" not in done.stderr


def test_the_start_loads_nothing_that_takes_time():
    """While it loads, nothing catches an interrupt yet."""
    code = "import sys; known = {*sys.modules}; import kafka_assign.__main__; print(*sorted({*sys.modules} - known))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["kafka_assign", "kafka_assign.__main__"]
