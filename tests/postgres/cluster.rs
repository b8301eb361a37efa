//! A throwaway PostgreSQL cluster for one test process, shared by the library's tests and the integration tests.
//!
//! It lives in a temporary folder, listens on loopback only, and ends with the process, however that ends: a shell
//! waits for the end of a pipe that only the process holds open.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

// One hands out all ports of a test process.
#[path = "ports.rs"]
pub(crate) mod ports;

/// The server runs as `postgres` where we are root, which it refuses to be.
const SCRIPT: &str = r#"
port=$1 fsync=$2
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || bin=$(dirname "$(command -v initdb)")
folder=$(mktemp -d)
if [ "$(id -u)" -eq 0 ]; then chown postgres "$folder"; as='runuser -u postgres --'; else as=; fi
cd "$folder"
$as "$bin/initdb" -D "$folder/data" -A trust -U postgres -E UTF8 --locale=C --no-sync >"$folder/log" 2>&1 \
    || { cat "$folder/log" >&2; exit 1; }
$as "$bin/postgres" -D "$folder/data" -p "$port" -h 127.0.0.1 -k "$folder" -c fsync="$fsync" \
    -c max_connections=300 -c shared_buffers=64MB >>"$folder/log" 2>&1 </dev/null &
until $as "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
    kill -0 $! || { cat "$folder/log" >&2; exit 1; }
    sleep 0.05
done
echo "ready $folder"
read -r _
$as "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1
rm -rf "$folder"
"#;

/// A running server.
#[derive(Debug)]
pub(crate) struct Cluster {
    port: u16,
    /// Where its data and its log are.
    folder: String,
    databases: AtomicU32,
    /// Its standard input is what the server lives on.
    _child: Child,
}

/// The cluster of this process, started by the first caller.
pub(crate) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(false))
}

impl Cluster {
    /// Starts one; with `fsync`, it waits for the disk as in real life.
    pub(crate) fn start(fsync: bool) -> Cluster {
        let port = ports::free_port();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "cluster", &port.to_string(), if fsync { "on" } else { "off" }]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let folder = line.trim().strip_prefix("ready ");
        let folder = folder.expect("PostgreSQL did not start: run `make test-tools`").to_owned();
        Cluster { port, folder, databases: AtomicU32::new(0), _child: child }
    }

    /// The address of a new, empty database.
    pub(crate) fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.admin(&format!("CREATE DATABASE {name}"));
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }

    /// Cuts everybody's connections to a database, and lets nobody in again.
    pub(crate) fn cut(&self, url: &str) {
        self.admin(&format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", name(url)));
        self.kill(url);
    }

    /// Lets everybody in again.
    pub(crate) fn mend(&self, url: &str) {
        self.admin(&format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", name(url)));
    }

    /// Ends all connections to a database.
    pub(crate) fn kill(&self, url: &str) {
        let name = name(url);
        self.admin(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        ));
    }

    /// Stops the server in the middle of everything, as a machine that loses its power does.
    #[allow(dead_code, reason = "only one of the test binaries does")]
    pub(crate) fn crash(&self) {
        self.control("-m immediate stop");
    }

    /// Starts it again; it recovers first.
    #[allow(dead_code, reason = "only one of the test binaries does")]
    pub(crate) fn recover(&self) {
        let Cluster { port, folder, .. } = self;
        self.control(&format!(
            "-w -l {folder}/recovery -o '-p {port} -h 127.0.0.1 -k {folder} -c max_connections=300' start"
        ));
    }

    fn control(&self, what: &str) {
        let folder = &self.folder;
        let script = format!(
            "bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1); \
             [ -x \"$bin/pg_ctl\" ] || bin=$(dirname \"$(command -v pg_ctl)\"); cd {folder}; \
             if [ \"$(id -u)\" -eq 0 ]; then as='runuser -u postgres --'; else as=; fi; \
             $as \"$bin/pg_ctl\" -D {folder}/data {what} >/dev/null 2>&1 </dev/null"
        );
        let done = Command::new("sh").args(["-c", &script]).status().expect("a shell");
        assert!(done.success(), "pg_ctl {what}");
    }

    /// What a statement says, a row a line.
    #[allow(dead_code, reason = "only one of the test binaries does")]
    pub(crate) fn ask(&self, url: &str, statement: &str) -> String {
        let output = Command::new("psql").args([url, "-qAtX", "-c", statement]).output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The end of the server's log: why it does not answer.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(format!("{}/log", self.folder)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn admin(&self, statement: &str) {
        let began = Instant::now();
        loop {
            let port = self.port.to_string();
            let mut command = Command::new("psql");
            command.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-qAtX", "-c", statement]);
            let output = command.output().expect("psql runs");
            if output.status.success() {
                return;
            }
            // Somebody else copies the template at this moment.
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(began.elapsed() < Duration::from_secs(60), "{statement}: {said}\n{}", self.last_words());
            let _ = std::io::stderr().write_all(said.as_bytes());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}
