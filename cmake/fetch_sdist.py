"""Downloads one file of a package from the index that pip is configured for, and nothing more.

`pip download` of a source distribution first sets up the package's whole build system to learn its metadata, which takes
minutes; we only want the sources. Usage: fetch_sdist.py PACKAGE FILE FOLDER. The caller checks the hash.
"""
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request


def index_url():
    """PIP_INDEX_URL, else pip's configuration, else pip's own default."""
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    configured = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    if configured.returncode == 0 and configured.stdout.strip():
        return configured.stdout.strip()
    from pip._internal.models.index import PyPI
    return PyPI.simple_url


def main():
    package, file, folder = sys.argv[1:]
    page_url = index_url().rstrip("/") + "/" + package + "/"
    with urllib.request.urlopen(page_url, timeout=60) as page:
        text = page.read().decode()
    links = re.findall(r'href="([^"]*/%s[^"]*)"' % re.escape(file), text)
    if not links:
        sys.exit("the index has no file " + file)
    target = os.path.join(folder, file)
    with urllib.request.urlopen(urllib.parse.urljoin(page_url, links[0]), timeout=60) as source, open(target + ".part", "wb") as out:
        while block := source.read(1 << 20):
            out.write(block)
    os.replace(target + ".part", target)


main()
