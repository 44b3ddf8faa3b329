#!/usr/bin/env python3
"""Renders pages in headless Chromium and finds what a reader would stumble over.

Usage: scripts/page_check.py PAGE... [--pictures DIR]

Each page is opened 400 and 1,200 pixels wide, in light and in dark, and as printed. A page fails on a message
in the console, a request that leaves the file, content wider than the page, text cut off or drawn over other text in a
picture, contrast below 4.5 (3 for large text), a table without scopes, a picture without a text, or headings that
skip a level. With --pictures each rendering is written to DIR as PNG.

Needs chromium (or the program that CHROMIUM names) and tidy. Exit code 0: nothing was found.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (400, 1200)

# Returns a list of texts: what is wrong with the page as it is rendered now.
FIND = r"""
(() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width)
    found.push(`the page is ${document.documentElement.scrollWidth} pixels wide, the window ${width}`);
  const shown = (e) => (e.textContent || "").trim().slice(0, 40);
  const numbers = (colour) => {
    const n = colour.match(/[\d.]+/g).map(Number);
    return n.length === 4 ? n : [...n, 1];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(numbers(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, above) => over(above, below), [255, 255, 255, 1]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((x) => {
      const s = x / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || e.closest("style")) continue;
    const style = getComputedStyle(e);
    if (style.display === "none" || e.getClientRects().length === 0) continue;
    const ground = behind(e);
    const ink = over(numbers(e.closest("svg") ? style.fill : style.color), ground);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const c = contrast(ink, ground);
    if (c < (large ? 3 : 4.5)) found.push(`contrast ${c.toFixed(2)}: ${shown(e)}`);
    const scrolls = e.closest("pre, .scroll");
    if (e.closest("table"))
      for (const run of node.textContent.matchAll(/[^\s-]+/g)) {
        // Long names, and names with signs that words do not have, may be broken in a narrow window.
        if (run[0].length >= 18 || /[^\p{L}\p{N}.,;:()%'"_|]/u.test(run[0])) continue;
        const part = document.createRange();
        part.setStart(node, run.index);
        part.setEnd(node, run.index + run[0].length);
        const lines = new Set([...part.getClientRects()].map((r) => Math.round(r.top)));
        if (lines.size > 1) found.push(`a word broken in a table: ${run[0]}`);
      }
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!scrolls && (box.right > width + 0.5 || box.left < -0.5)) found.push(`cut off: ${shown(e)}`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.getAttribute("aria-label")) found.push("a picture without a text");
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()]);
    for (const [t, box] of texts) {
      if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.top < frame.top - 0.5 ||
          box.bottom > frame.bottom + 0.5)
        found.push(`outside its picture: ${shown(t)}`);
      for (const [u, other] of texts)
        if (t !== u && box.left < other.right - 1 && other.left < box.right - 1 && box.top < other.bottom - 2 &&
            other.top < box.bottom - 2 && texts.findIndex((x) => x[0] === t) < texts.findIndex((x) => x[0] === u))
          found.push(`one text over another in a picture: ${shown(t)} / ${shown(u)}`);
    }
    for (const line of svg.querySelectorAll("path.line")) {
      const c = contrast(over(numbers(getComputedStyle(line).stroke), behind(svg)), behind(svg));
      if (c < 3) found.push(`contrast ${c.toFixed(2)} of a curve`);
    }
  }
  for (const th of document.querySelectorAll("th"))
    if (!th.scope) found.push(`a heading of a table without scope: ${shown(th)}`);
  for (const table of document.querySelectorAll("table"))
    if (!table.caption) found.push("a table without a caption");
  let level = 0;
  for (const h of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const now = Number(h.tagName[1]);
    if (now > level + 1) found.push(`a heading skips a level: ${shown(h)}`);
    level = now;
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids.filter((x, i) => ids.indexOf(x) !== i))) found.push(`two elements with id ${id}`);
  for (const a of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(a.getAttribute("href").slice(1))) found.push(`a link to nowhere: ${shown(a)}`);
  return found;
})()
"""


class Chromium:
    """A headless Chromium that is spoken to over a pipe, in the protocol of its developer tools."""

    def __init__(self, program, profile):
        to_them, self._write = os.pipe()
        self._read, from_them = os.pipe()

        def with_pipes():
            os.dup2(to_them, 3)
            os.dup2(from_them, 4)

        # The pipes may have the numbers 3 and 4 already, so they are moved out of the way first.
        to_them, from_them = os.dup(to_them), os.dup(from_them)
        while to_them < 10:
            to_them = os.dup(to_them)
        while from_them < 10:
            from_them = os.dup(from_them)
        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=with_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_them)
        os.close(from_them)
        self._bytes = b""
        self._number = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    _session = None

    def _next(self):
        while b"\0" not in self._bytes:
            more = os.read(self._read, 1 << 16)
            if not more:
                sys.exit("page_check: chromium ended")
            self._bytes += more
        text, self._bytes = self._bytes.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **arguments):
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    sys.exit(f"page_check: {method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self._next())

    def open(self, address):
        self.events = []
        self.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, code):
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit("page_check: " + json.dumps(answer["exceptionDetails"]))
        return answer["result"]["value"]

    def close(self):
        os.write(self._write, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self._process.wait(timeout=30)


def seen_events(events, address):
    found = []
    for e in events:
        p = e.get("params", {})
        if e.get("method") == "Log.entryAdded":
            found.append("console: " + p["entry"]["text"])
        elif e.get("method") == "Runtime.consoleAPICalled":
            found.append("console: " + json.dumps(p["args"]))
        elif e.get("method") == "Runtime.exceptionThrown":
            found.append("exception: " + p["exceptionDetails"]["text"])
        elif e.get("method") == "Page.javascriptDialogOpening":
            found.append("a script asks the reader: " + p["message"])
        elif e.get("method") == "Network.requestWillBeSent" and p["request"]["url"] != address:
            found.append("request: " + p["request"]["url"])
    return found


def check(browser, page, pictures):
    address = page.resolve().as_uri()
    found = []
    looks = [(w, "screen", scheme) for w in WIDTHS for scheme in ("light", "dark")] + [(794, "print", "light")]
    for width, media, scheme in looks:
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        browser.call("Emulation.setEmulatedMedia", media=media,
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(address)
        name = f"{width} pixels, {scheme}" if media == "screen" else "printed"
        found += [f"{name}: {what}" for what in browser.evaluate(FIND) + seen_events(browser.events, address)]
        if pictures:
            where = pathlib.Path(pictures) / (f"{page.parent.parent.name}-{page.parent.name}-{media}-{width}-{scheme}.png")
            shot = browser.call("Page.captureScreenshot")
            where.write_bytes(base64.b64decode(shot["data"]))
            if media == "screen" and scheme == "light":
                size = browser.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
                shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
                where.with_name(where.stem + "-whole.png").write_bytes(base64.b64decode(shot["data"]))
    printed = browser.call("Page.printToPDF", preferCSSPageSize=True)
    if pictures:
        (pathlib.Path(pictures) / f"{page.parent.parent.name}-{page.parent.name}.pdf").write_bytes(
            base64.b64decode(printed["data"]))
    return found


def tidy(page):
    run = subprocess.run(["tidy", "-q", "-e", "--gnu-emacs", "no", str(page)], capture_output=True, text=True)
    return ["tidy: " + line for line in run.stderr.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--pictures")
    asked = parser.parse_args()
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    for name, path in (("chromium", program), ("tidy", shutil.which("tidy"))):
        if path is None:
            sys.exit(f"page_check: {name} is missing: apt-get install {name}")
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(program, profile)
        for page in asked.pages:
            found = tidy(page) + check(browser, page, asked.pictures)
            for what in dict.fromkeys(found):
                print(f"{page}: {what}", file=sys.stderr)
            wrong += len(found)
            print(f"{page}: {'nothing found' if not found else str(len(found)) + ' findings'}")
        browser.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
