"""A package index on this machine, for the tests of downloading: serves the files of FOLDER and writes its port into FOLDER/port.

    index.py FOLDER [--rate BYTES_PER_SECOND] [--break-after BYTES] [--no-ranges]

--break-after: the first connection for each file ends after so many bytes. Every request is a line in FOLDER/requests.
"""
import argparse
import http.server
import os
import time


class Handler(http.server.BaseHTTPRequestHandler):
    options = None
    broken = set()

    def log_message(self, *_):
        pass

    def do_GET(self):
        with open(os.path.join(self.options.folder, "requests"), "a") as log:
            log.write("%s %s\n" % (self.path, self.headers.get("Range", "-")))
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple":
            files = sorted(name for name in os.listdir(self.options.folder) if name.endswith((".whl", ".gz")))
            page = "".join('<a href="../../files/%s#sha256=0">%s</a>\n' % (name, name) for name in files).encode()
            self.answer(200, page, {})
        elif parts[0] == "files":
            self.send_file(os.path.join(self.options.folder, parts[1]))
        else:
            self.send_error(404)

    def answer(self, status, data, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        for at in range(0, len(data), 8192):
            self.wfile.write(data[at:at + 8192])
            if self.options.rate:
                time.sleep(8192 / self.options.rate)
            if self.options.break_after and at >= self.options.break_after and self.path.startswith("/files") and self.path not in self.broken:
                self.broken.add(self.path)
                self.wfile.flush()
                self.connection.close()
                return

    def send_file(self, path):
        with open(path, "rb") as file:
            data = file.read()
        asked = self.headers.get("Range")
        if not asked or self.options.no_ranges:
            self.answer(200, data, {})
            return
        first, last = asked[len("bytes="):].split("-")
        first, last = int(first), min(int(last or len(data) - 1), len(data) - 1)
        if first >= len(data):
            self.send_error(416)
            return
        self.answer(206, data[first:last + 1], {"Content-Range": "bytes %d-%d/%d" % (first, last, len(data))})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--break-after", type=int, default=0)
    parser.add_argument("--no-ranges", action="store_true")
    Handler.options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = os.path.join(Handler.options.folder, "port")
    with open(port + ".new", "w") as out:
        out.write(str(server.server_address[1]))
    os.replace(port + ".new", port)
    server.serve_forever()


main()
