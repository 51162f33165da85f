"""Configures and builds one folder, and says how far it is: step of steps, about how long it will still take.

    build.py --dir build/release --preset release --name "the program" [--beside COMMAND] [--window] [--jobs N] TARGET...

--beside: a command that brings LibTorch. It runs while CMake configures and the sources that know no torch are compiled, then is
waited for; it writes one line on how far it is into the file that the environment variable RANKLAB_STATE names.
--window: configure again unless that was done since the window's libraries are there.
On a terminal one line moves; elsewhere a line is printed every 15 s. All output goes to DIR.log, the seconds of each part to
DIR.times. Exit code: 0, that of --beside if it fails, otherwise 1 with the compiler's errors.
"""
import argparse
import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time

# Seconds a compile takes on one 3 GHz core: headers first, then the text. Only ratios matter once some steps are done.
TORCH_SOURCE = (3.0, 0.12)  # per source, per KB
PLAIN_SOURCE = (1.2, 0.08)
PRECOMPILED_TORCH, PRECOMPILED_PLAIN = 14.0, 4.0
OTHER_STEP = 0.3
LINE_EVERY_S = 15
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """Raised in place of what the build was doing. (To stop it inside the signal's handler could wait for a lock that the
    interrupted wait for a process holds.)"""

    def __init__(self, number):
        super().__init__()
        self.exit_code = 128 + number


def raise_once(number, _):
    for signal_number in SIGNALS:
        signal.signal(signal_number, signal.SIG_DFL)  # the next one ends us at once, whatever we wait for
    raise Interrupted(number)


def end_with_children(process):
    """`cmake --build` blocks SIGTERM while ninja runs, which would then build to the end. (Ctrl-C reaches both.)"""
    try:
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        children = []
    process.terminate()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)


class Screen:
    """One line that moves on a terminal; elsewhere whole lines, but not too many."""

    def __init__(self):
        self.moves = sys.stderr.isatty()
        self.last = time.monotonic() - LINE_EVERY_S + 3  # short builds say nothing

    def show(self, text):
        now = time.monotonic()
        if self.moves and now - self.last > 0.1:
            width = os.get_terminal_size(2).columns
            sys.stderr.write("\r\033[K" + text[: max(width - 1, 20)])
        elif not self.moves and now - self.last >= LINE_EVERY_S:
            sys.stderr.write("ranklab: " + text + "\n")
        else:
            return
        sys.stderr.flush()
        self.last = now

    def clear(self):
        if self.moves:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def say(self, text):
        self.clear()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def source_kb(path):
    """Size of a source; of a unity source, that of the sources in it."""
    try:
        with open(path) as file:
            text = file.read()
        parts = re.findall(r'^#include "(/[^"]+)"', text, re.M) if "/Unity/" in path else []
        return (sum(os.path.getsize(part) for part in parts) if parts else len(text)) / 1024
    except OSError:
        return 0


def step_weight(command):
    """(output, seconds) that a command of the build is expected to take."""
    output = re.search(r" -o (\S+)", command)
    source = re.search(r" -c (\S+)", command)
    if not output or not source:
        return None
    if output[1].endswith(".gch"):
        return output[1], PRECOMPILED_TORCH if knows_torch(command) else PRECOMPILED_PLAIN
    base, per_kb = TORCH_SOURCE if knows_torch(command) else PLAIN_SOURCE
    return output[1], base + per_kb * source_kb(source[1])


def knows_torch(command):
    return "/include/torch/csrc/api/include" in command


class Estimate:
    """What is left, in seconds: weights of the steps that are left, by the speed of those that are done."""

    def __init__(self, jobs):
        self.jobs, self.weights, self.done, self.steps_done = jobs, {}, 0.0, 0
        self.began = self.last_step = time.monotonic()
        self.shown_end, self.counted = None, None

    def plan(self, commands):
        self.weights = dict(step_weight(line) for line in commands)

    def finished(self, line, number, total):
        self.counted = (number, total)
        name = re.search(r"(\S+\.(?:o|gch))$", line)
        self.steps_done += 1 if name else 0
        self.done += self.weights.pop(name[1], OTHER_STEP) if name else OTHER_STEP
        self.last_step = time.monotonic()

    def left_s(self):
        now = time.monotonic()
        trust = 30.0  # seconds of work after which the machine's own speed counts as much as our guess of it
        speed = (self.done + trust) / (now - self.began + trust / self.jobs)
        left = sum(self.weights.values())
        running = min(speed * (now - self.last_step), left, 0.8 * self.jobs * left / max(len(self.weights), 1))
        end = now + (left - running) / speed
        if self.shown_end is None or abs(end - self.shown_end) > 0.15 * (self.shown_end - now) + 3:
            self.shown_end = end  # small corrections would only make the figure jump
        return max(self.shown_end - now, 0)

    def text(self):
        if self.weights:
            return "step %d of %d, %s" % (self.steps_done, self.steps_done + len(self.weights), in_words(self.left_s()))
        return "step %d of %d" % self.counted if self.counted else "checks what changed"  # objects are there, and some are too old


def in_words(seconds):
    if seconds >= 90:
        return "about %d min more" % round(seconds / 60)
    return "about %d s more" % (10 * max(1, round(seconds / 10)))


class Beside:
    """The command that runs beside the first part of the build."""

    def __init__(self, command, folder):
        self.state = folder + ".beside"
        for file in (self.state, self.state + ".err"):
            if os.path.exists(file):
                os.remove(file)
        self.errors = open(self.state + ".err", "w+")
        environment = {**os.environ, "RANKLAB_STATE": self.state}
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL, stderr=self.errors, env=environment,
                                        start_new_session=True)  # a group of its own, to be stopped with all that it started

    def text(self):
        try:
            with open(self.state) as file:
                return file.read().strip() if self.process.poll() is None else ""
        except OSError:
            return ""

    def failed(self):
        return self.process.poll() not in (None, 0)

    def messages(self):
        self.errors.seek(0)
        return self.errors.read()


class Build:
    def __init__(self, options):
        self.options, self.screen = options, Screen()
        self.folder = options.dir.rstrip("/")
        self.log = open(self.folder + ".log", "w")
        self.beside = Beside(options.beside, self.folder) if options.beside else None
        self.estimate = Estimate(options.jobs)
        self.running = None

    def stop(self, code, text=""):
        if self.beside and self.beside.process.poll() is None:
            os.killpg(self.beside.process.pid, signal.SIGTERM)
        if self.running and self.running.poll() is None:
            end_with_children(self.running)
            self.running.wait()
        self.screen.clear()
        if text:
            self.screen.say(text.rstrip())
        sys.exit(code)

    def note_time(self, part, began):
        with open(self.folder + ".times", "a") as file:
            file.write("%s\t%.1f\n" % (part, time.monotonic() - began))

    def check_beside(self):
        if self.beside and self.beside.failed():
            self.stop(self.beside.process.returncode, self.beside.messages())

    def start(self, command):
        environment = dict(os.environ)
        if self.beside and self.beside.process.poll() is None:
            environment["RANKLAB_TORCH_PENDING"] = "1"
        lock = (self.options.lock,) if self.options.lock else ()  # held until the last compiler is gone, should we be killed
        self.running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, pass_fds=lock)
        return self.running

    def follow(self, process, handle):
        """Calls HANDLE for each line of the process, and keeps the screen moving while it says nothing."""
        left_over = b""
        while True:
            self.check_beside()
            if select.select([process.stdout], [], [], 0.5)[0]:
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    break
                *lines, left_over = (left_over + data).split(b"\n")
                for line in lines:
                    text = line.decode("utf-8", "replace")
                    self.log.write(text + "\n")
                    handle(text)
                self.log.flush()
            handle(None)
        return process.wait()

    def with_beside(self, text):
        beside = self.beside.text() if self.beside else ""
        return text + (" | " + beside if beside else "")

    def configure(self):
        done = os.path.join(self.folder, ".configured")
        wants_window = self.options.window and not os.path.exists(os.path.join(self.folder, ".window"))
        if os.path.exists(done) and os.path.exists(os.path.join(self.folder, "build.ninja")) and not wants_window:
            return
        began = time.monotonic()
        if not os.path.exists(done) and not os.path.exists(os.path.join(self.folder, "build.ninja")):
            subprocess.run(["rm", "-rf", self.folder + "/CMakeFiles", self.folder + "/CMakeCache.txt"], check=True)  # half a configuration
        output = []
        command = ["cmake", "-S", self.options.source, "--preset", self.options.preset]
        if self.follow(self.start(command), lambda line: output.append(line) if line else self.screen.show(self.with_beside("configures " + self.options.name))):
            self.stop(1, "\n".join(output[-30:]) + "\nranklab: error: cmake failed; the whole output is in %s.log" % self.folder)
        open(done, "w").close()
        if self.options.window:
            open(os.path.join(self.folder, ".window"), "w").close()
        self.note_time("configure " + self.options.preset, began)

    def plan(self, targets):
        """The steps that have left no object yet. (A dry run would know more, but stops at the check whether CMake must run again.)"""
        self.estimate.plan([line for line in self.commands(targets) if not os.path.exists(os.path.join(self.folder, step_weight(line)[0]))])

    def commands(self, targets):
        """All commands that compile something for TARGETS, whether or not they are to be run again."""
        every = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", *targets], capture_output=True, text=True)
        return [line for line in every.stdout.splitlines() if step_weight(line)]

    def without_torch(self, objects):
        """Those of them that wait for nothing that links LibTorch: sources of tests, say, wait for the program that they run."""
        waits = {}

        def waits_for_torch(output):
            target = output.partition(".dir/")[0]  # all objects of a target wait for the same
            if target not in waits:
                inputs = subprocess.run(["ninja", "-C", self.folder, "-t", "inputs", output], capture_output=True, text=True)
                waits[target] = "libtorch" in inputs.stdout
            return waits[target]

        return [output for output in objects if not waits_for_torch(output)]

    def compile(self, part, targets):
        began = time.monotonic()
        errors = []

        def handle(line):
            step = re.match(r"\[(\d+)/(\d+)\] (.*)", line or "")
            if step:
                self.estimate.finished(step[3], int(step[1]), int(step[2]))
            elif line:
                errors.append(line)
            self.screen.show(self.with_beside("compiles %s: %s" % (self.options.name, self.estimate.text())))

        command = ["cmake", "--build", self.folder, "--parallel", str(self.options.jobs), "--target", *targets]
        if self.follow(self.start(command), handle):
            lines = "\n".join(line for line in errors if not line.startswith("ninja: "))
            self.stop(1, "\n".join(lines.splitlines()[:60]) + "\nranklab: error: the build failed; the whole output is in %s.log" % self.folder)
        self.note_time(part, began)

    def wait_beside(self):
        began = time.monotonic()
        while self.beside.process.poll() is None:
            self.screen.show(self.beside.text() or "waits for the rest of the download")
            time.sleep(0.2)
        self.check_beside()
        self.note_time("waiting for the download", began)

    def run(self):
        self.configure()
        targets = self.options.targets
        self.plan(targets)
        if self.beside:
            objects = self.without_torch([step_weight(line)[0] for line in self.commands(targets) if not knows_torch(line)])
            if objects:
                self.compile("compile without LibTorch", objects)
            self.wait_beside()
        self.compile("compile " + " ".join(targets), targets)
        self.screen.clear()
        if self.beside:
            os.remove(self.beside.state + ".err")


def main():
    parser = argparse.ArgumentParser()
    for name in ("dir", "source", "preset", "name"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--beside", default="")
    parser.add_argument("--lock", type=int, default=0, help="file descriptor of the build folder's lock")
    parser.add_argument("--window", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("targets", nargs="+")
    build = Build(parser.parse_args())
    for number in SIGNALS:
        signal.signal(number, raise_once)
    try:
        build.run()
    except Interrupted as interrupted:
        build.stop(interrupted.exit_code)


main()
