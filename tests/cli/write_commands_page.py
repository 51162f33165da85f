"""Writes the table of docs/commands.md anew, after a command or a flag was added or its words were changed:

    python3 tests/cli/write_commands_page.py build/release/bin/ranklab
"""
import pathlib
import subprocess
import sys

HEAD = "## Every command"
page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "commands.md"
table = subprocess.run([sys.argv[1], "list", "commands"], capture_output=True, text=True, check=True).stdout
before, rest = page.read_text().split(HEAD, 1)
intro = rest.split("\n|", 1)[0]
page.write_text(before + HEAD + intro + "\n" + table)
