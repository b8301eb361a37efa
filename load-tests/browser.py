"""A Chromium without a window that takes pictures of pages, driven by its pipe for developers. Standard library only."""

import base64
import json
import shutil
import subprocess
import tempfile

# How long a page may take until something is so, in milliseconds.
PATIENCE = 30_000

# Root has no sandbox, and a container has little shared memory.
SETTINGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]

WAIT = """\
new Promise((done) => {
  const end = Date.now() + %d;
  const look = () => {
    let holds = false;
    try { holds = Boolean(%s); } catch { holds = false; }
    if (holds || Date.now() > end) done(holds); else setTimeout(look, 50);
  };
  look();
})"""


class Browser:
    """One page, of 1,200 × 800 points."""

    def __init__(self):
        self.calls, self.session, self.profile = 0, None, tempfile.mkdtemp()
        # It reads calls from descriptor 3 and writes to 4.
        command = ["sh", "-c", 'exec chromium "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null', "sh", *SETTINGS,
                   f"--user-data-dir={self.profile}"]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        page = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False)

    def call(self, method, **params):
        """Calls a method of the protocol."""
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.child.stdin.write(json.dumps(message).encode() + b"\0")
        self.child.stdin.flush()
        while (said := self.next())["id"] != self.calls:
            pass
        if "error" in said:
            raise SystemExit(f"{method}: {said['error']}")
        return said["result"]

    def next(self):
        """The next message; one that answers no call has the id 0."""
        text = bytearray()
        while (byte := self.child.stdout.read(1)) not in (b"\0", b""):
            text += byte
        if not text:
            raise SystemExit("no chromium: run `make test-tools`")
        return {"id": 0, **json.loads(text)}

    def evaluate(self, expression):
        said = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            raise SystemExit(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def until(self, condition):
        """Waits until it holds in the page."""
        if not self.evaluate(WAIT % (PATIENCE, condition)):
            raise SystemExit(f"the page never had {condition}: {self.evaluate('document.body.innerText')[:500]}")

    def until_shown(self, words):
        self.until(f"document.body.innerText.includes({json.dumps(words)})")

    def type(self, selector, text):
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, selector):
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, file):
        """What is seen, as a PNG file."""
        shot = self.call("Page.captureScreenshot", format="png")
        with open(file, "wb") as out:
            out.write(base64.b64decode(shot["data"]))

    def close(self):
        self.child.kill()
        self.child.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
