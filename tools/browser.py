"""What a folder of pages looks like in headless Chromium: blocks that are cut, pages that scroll sideways."""
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

NAMES = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"
LONGEST_WAIT = 600  # seconds; a page takes a fraction of one
HARNESS = "/__measure__"

# Each page is shown in a frame of each width. A block is cut if it has more to show than it is wide, and does not wrap.
SCRIPT = """<!doctype html><body><script>
const cuts = element => element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1
    && getComputedStyle(element).overflowX !== "visible";
async function measure(page, width) {
    const frame = document.createElement("iframe");
    frame.style = `width: ${width}px; height: 800px; border: 0`;
    const shown = new Promise(done => frame.onload = done);
    frame.src = page;
    document.body.append(frame);
    await shown;
    const inside = frame.contentDocument;
    inside.querySelectorAll("details").forEach(one => one.open = true);
    const root = inside.documentElement;
    const blocks = [...inside.querySelectorAll("main *")].filter(cuts).map(one => one.textContent.trim().slice(0, 100));
    const answer = {page, width, blocks, sideways: Math.max(0, root.scrollWidth - root.clientWidth)};
    frame.remove();
    return answer;
}
(async () => {
    const answers = [];
    for (const page of PAGES) for (const width of WIDTHS) answers.push(await measure(page, width));
    await fetch(location, {method: "POST", body: JSON.stringify(answers)});
})();
</script>"""


def find_chromium() -> str | None:
    """The command that starts Chromium, or a browser of its family."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Handler(SimpleHTTPRequestHandler):
    """Serves the pages and the script that looks at them, and takes its answer."""

    def do_GET(self) -> None:
        if self.path != HARNESS:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.server.script.encode())

    def do_POST(self) -> None:
        self.server.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: the measurement is what counts."""


def measure(browser: str, folder: Path, pages: Iterable[str], widths: Iterable[int]) -> list[dict]:
    """For each page at each width (px): the texts of the blocks that are cut, and how far it scrolls sideways (px)."""
    addresses = json.dumps([f"/{page}" for page in pages])
    script = SCRIPT.replace("PAGES", addresses).replace("WIDTHS", json.dumps([*widths]))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        server.script, server.answers = script, Queue()
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            return ask(browser, f"http://127.0.0.1:{server.server_port}{HARNESS}", server.answers)
        finally:
            server.shutdown()


def ask(browser: str, address: str, answers: Queue) -> list[dict]:
    """Open an address until its script has answered."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has none for root
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [browser, "--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}", *sandbox,
                 "--remote-debugging-port=0", "--window-size=1400,900", address]  # a port: it stays until it is stopped
        running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return answers.get(timeout=LONGEST_WAIT)
        except Empty:
            raise SystemExit(f"{browser} did not measure the pages within {LONGEST_WAIT} seconds") from None
        finally:
            running.terminate()
            running.wait()
