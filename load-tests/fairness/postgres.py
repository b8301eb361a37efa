"""A throwaway PostgreSQL on loopback, which waits for the disk as in real life."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gateway import free_port


class Postgres:
    def __init__(self):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path(shutil.which("initdb")).parent]
        self.folder, self.port, self.databases = tempfile.mkdtemp(), free_port(), 0
        # It refuses to be root.
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.user:
            shutil.chown(self.folder, "postgres")
        self.control, data = found[-1] / "pg_ctl", f"{self.folder}/data"
        self.run(found[-1] / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c max_connections=100"
        self.run(self.control, "-D", data, "-w", "-l", f"{self.folder}/log", "-o", options, "start")
        self.psql = found[-1] / "psql"

    def run(self, *command):
        subprocess.run([*self.user, *map(str, command)], check=True, cwd=self.folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)

    def database(self):
        """The address of a new, empty database."""
        self.databases += 1
        name = f"fairness{self.databases}"
        self.run(self.psql, "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-c", f"CREATE DATABASE {name}")
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def stop(self):
        self.run(self.control, "-D", f"{self.folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)
