"""Downloads one file, or a piece of one, from the package index that pip is configured for; resumes an interrupted one.

    download.py --package NAME --file FILE --sha256 HASH --to PATH [--piece OFFSET LENGTH] [--say TEXT] [--state FILE]

Why not `pip download`: it cannot resume after an interruption, it sets up a source distribution's whole build system to learn
its metadata, and it knows whole files alone, while three quarters of LibTorch's wheel are CUDA kernels that a CPU build never
opens. A wheel is a zip: its entries lie one after the other, so that a piece of it is what we need, and has a hash of its own.

What has come so far is in PATH.part. PATH itself appears by a rename when the bytes have the hash HASH, so it is whole or not
there. Where FILE lies in the folder RANKLAB_PACKAGES (or one of PIP_FIND_LINKS), it is taken from there and no network is touched.
Exit code 0, or 1 with one line on stderr that says what was got.
"""
import argparse
import base64
import configparser
import hashlib
import html.parser
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

BLOCK = 1 << 18
TRIES = 5  # of a connection that breaks; each resumes where the last one stopped


class PipSettings:
    """What pip would use: its configuration files, the later ones above the earlier, and PIP_... above them all."""

    def __init__(self):
        files = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf"]
        if os.environ.get("VIRTUAL_ENV"):
            files.append(os.path.join(os.environ["VIRTUAL_ENV"], "pip.conf"))
        if os.environ.get("PIP_CONFIG_FILE"):
            files = files + [os.environ["PIP_CONFIG_FILE"]] if os.environ["PIP_CONFIG_FILE"] != os.devnull else []
        self.values = {}
        for file in files:
            parser = configparser.RawConfigParser()
            try:
                parser.read(os.path.expanduser(file))
            except (configparser.Error, UnicodeDecodeError):
                continue  # pip will complain of it; we only look for an index
            for section in ("global", "download"):
                if parser.has_section(section):
                    self.values.update(parser.items(section))

    def get(self, key, default=""):
        return os.environ.get("PIP_" + key.upper().replace("-", "_")) or self.values.get(key, default)

    def indexes(self):
        return [self.get("index-url", "https://pypi.org/simple")] + self.get("extra-index-url").split()

    def opener(self):
        handlers = []
        if self.get("proxy"):
            handlers.append(urllib.request.ProxyHandler({"http": self.get("proxy"), "https": self.get("proxy")}))
        certificates = self.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or None
        context = ssl.create_default_context(cafile=certificates)
        handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found += [value for key, value in attributes if key == "href" and value]


def request(url, headers):
    """A request for URL; a user and a password in it become a header, which urllib does not do by itself."""
    parts = urllib.parse.urlsplit(url)
    if parts.username:
        pair = urllib.parse.unquote(parts.username) + ":" + urllib.parse.unquote(parts.password or "")
        headers = {**headers, "Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        url = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return urllib.request.Request(url, headers=headers)


def find_url(opener, settings, package, file):
    pages = [index.rstrip("/") + "/" + package + "/" for index in settings.indexes()]
    for page in pages:
        with opener.open(request(page, {"Accept": "text/html"}), timeout=30) as answer:
            links = Links()
            links.feed(answer.read().decode("utf-8", "replace"))
        for link in links.found:
            if urllib.parse.unquote(urllib.parse.urlsplit(link).path).rpartition("/")[2] == file:
                return urllib.parse.urldefrag(urllib.parse.urljoin(page, link)).url
    raise LookupError("the package index has no file " + file)


class Progress:
    """Writes how far a download is into the state file, which the driver shows; at most twice a second."""

    def __init__(self, text, state, total):
        self.text, self.state, self.total = text, state, total
        self.began, self.began_at, self.last = time.monotonic(), None, 0.0

    def show(self, got):
        now = time.monotonic()
        if self.began_at is None:
            self.began_at = got
        if not self.state or (now - self.last < 0.5 and got < self.total):
            return
        self.last = now
        rate = (got - self.began_at) / max(now - self.began, 1e-3)
        of_total = " of %.0f" % (self.total / 1e6) if self.total else ""
        line = "%s: %.0f%s MB" % (self.text, got / 1e6, of_total)
        if now - self.began > 1:
            line += ", %.1f MB/s" % (rate / 1e6)
        with open(self.state + ".new", "w") as out:
            out.write(line + "\n")
        os.replace(self.state + ".new", self.state)


def copy(source, out, skip, length, progress):
    """Appends what SOURCE has behind its first SKIP bytes to OUT, until OUT holds LENGTH bytes (None: to the end)."""
    while skip > 0:
        block = source.read(min(BLOCK, skip))
        if not block:
            raise OSError("the file is shorter than it should be")
        skip -= len(block)
    got = out.tell()
    while length is None or got < length:
        block = source.read(BLOCK if length is None else min(BLOCK, length - got))
        if not block:
            break
        out.write(block)
        got += len(block)
        progress.show(got)
    if length is not None and got < length:
        raise OSError("the connection ended after %d of %d bytes" % (got, length))


def fetch_once(opener, url, part, offset, length, progress):
    """One connection: asks for the bytes that are still missing. A server that does not know ranges sends all; we skip then."""
    with open(part, "ab") as out:
        have = out.tell()
        if length is not None and have >= length:
            return
        wanted = "bytes=%d-" % (offset + have) + (str(offset + length - 1) if length is not None else "")
        try:
            answer = opener.open(request(url, {"Range": wanted, "Accept-Encoding": "identity"}), timeout=60)
        except urllib.error.HTTPError as error:
            if error.code == 416 and length is None and have:
                return  # all of it is here; the hash will say
            raise
        with answer:
            left = answer.headers.get("Content-Length")
            if length is None and left and left.isdigit():
                progress.total = int(left) + (have if answer.status == 206 else 0)
                expected = progress.total
            else:
                expected = length
            copy(answer, out, 0 if answer.status == 206 else offset + have, expected, progress)


def fetch(options, progress):
    settings = PipSettings()
    opener = settings.opener()
    offset, length = options.piece or (0, None)
    url = None
    for tries_left in reversed(range(TRIES)):
        had = size_of(options.to + ".part")
        try:
            url = url or find_url(opener, settings, options.package, options.file)
            return fetch_once(opener, url, options.to + ".part", offset, length, progress)
        except urllib.error.HTTPError as error:
            if error.code < 500 or tries_left == 0:
                raise
        except OSError:
            if tries_left == 0 or (url is None and size_of(options.to + ".part") == had and tries_left < TRIES - 2):
                raise  # no network at all is known after two tries
        time.sleep(TRIES - tries_left)


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def take_from_folder(options, progress):
    """Copies the file, or its piece, out of a folder of packages; False when no folder has it."""
    folders = [os.environ.get("RANKLAB_PACKAGES", "")] + PipSettings().get("find-links").split()
    for folder in folders:
        source = os.path.join(folder, options.file)
        if folder and os.path.isfile(source):
            offset, length = options.piece or (0, os.path.getsize(source))
            with open(source, "rb") as file, open(options.to + ".part", "wb") as out:
                file.seek(offset)
                copy(file, out, 0, length, progress)
            return True
    return False


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def describe(error):
    if isinstance(error, urllib.error.HTTPError):
        return "the package index answered %d %s" % (error.code, error.reason)
    if isinstance(error, urllib.error.URLError):
        return "no connection to the package index (%s)" % error.reason
    return str(error) or type(error).__name__


def main():
    parser = argparse.ArgumentParser()
    for name in ("package", "file", "sha256", "to"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--piece", nargs=2, type=int, metavar=("OFFSET", "LENGTH"))
    parser.add_argument("--say", default="")
    parser.add_argument("--state", default="")
    options = parser.parse_args()
    progress = Progress(options.say or options.file, options.state, options.piece[1] if options.piece else 0)
    got = ""
    for _ in range(2):  # an old part may be broken: then once more from the start
        part_is_old = os.path.exists(options.to + ".part")
        try:
            if not take_from_folder(options, progress):
                fetch(options, progress)
        except (OSError, LookupError, ValueError) as error:
            sys.exit(describe(error))
        got = sha256(options.to + ".part")
        if got == options.sha256:
            os.replace(options.to + ".part", options.to)
            return
        os.remove(options.to + ".part")
        if not part_is_old:
            break
    sys.exit("the hash of the bytes differs from the pinned one: sha256 " + got)


main()
