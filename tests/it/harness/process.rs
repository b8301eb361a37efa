//! The real binary, as an operator starts it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use reqwest::RequestBuilder;
use serde_json::Value;
use tempfile::TempDir;

use super::Answer;
use super::patience::{PATIENCE, QuietInstant, STOP_MAX};

/// How long a server may take to be ready: a software driver compiles shaders at first.
const READY_MAX: Duration = Duration::from_secs(120);

/// A running `stint serve` and its folder.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) base: String,
    pub(crate) client: reqwest::Client,
    log: Log,
    /// Ends with the log.
    reader: JoinHandle<()>,
    /// Its ledger is in there, and a server whose ledger is gone serves nothing.
    _folder: Arc<TempDir>,
}

/// The lines that it has logged.
type Log = Arc<Mutex<Vec<String>>>;

/// A folder with a configuration in it.
#[derive(Debug)]
pub(crate) struct Folder(Arc<TempDir>);

impl Folder {
    /// A new folder whose configuration is `toml` on a free port, with a ledger of its own.
    pub(crate) fn new(toml: &str) -> Folder {
        let folder = Folder(Arc::new(TempDir::new().unwrap()));
        folder.write(toml);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts another configuration in place of this one, at once, so that nobody reads half of it.
    pub(crate) fn write(&self, toml: &str) {
        // One with nothing in it is refused; this one has all defaults too.
        let toml = if toml.trim().is_empty() { "[server]\n" } else { toml };
        let next = self.path().join("stint.toml.next");
        std::fs::write(&next, toml).unwrap();
        std::fs::rename(next, self.config()).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.path().join("stint.toml")
    }

    /// The command line with this folder's configuration and nothing of the environment that would change it.
    pub(crate) fn stint(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
        command.arg(verb).arg("--config").arg(self.config());
        command.env("STINT_LEDGER", self.path().join("ledger.db"));
        // Many small dispatches are quicker on a software driver without threads of its own.
        command.env("LP_NUM_THREADS", "0").env_remove("STINT_CONFIG");
        command
    }

    /// Starts a server on a free port and waits until it is ready.
    pub(crate) fn serve(&self) -> Process {
        self.serve_by(self.stint("serve"))
    }

    /// The same, where the disk's errors are told to the server instead of ending it: writing beyond a limit on the size
    /// of files is a signal first.
    pub(crate) fn serve_through_errors(&self) -> Process {
        self.serve_after("trap '' XFSZ")
    }

    /// The same after a shell has done this.
    pub(crate) fn serve_after(&self, shell: &str) -> Process {
        let stint = self.stint("serve");
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{shell}; exec \"$0\" \"$@\"")])
            .arg(stint.get_program())
            .args(stint.get_args());
        for (name, value) in stint.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.serve_by(command)
    }

    /// The same, as this command says, and where it says.
    pub(crate) fn serve_by(&self, mut command: Command) -> Process {
        if command.get_envs().all(|(name, _)| name != "STINT_LISTEN") {
            command.env("STINT_LISTEN", "127.0.0.1:0");
        }
        command.env("STINT_LOG", "info").stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let log = Log::default();
        let (base, reader) = address(&mut child, log.clone());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Process { log, reader, child, base, client, _folder: self.0.clone() }
    }
}

/// Reads the log until it says where the server listens, and keeps the rest of it.
fn address(child: &mut Child, kept: Log) -> (String, JoinHandle<()>) {
    let log = BufReader::new(child.stderr.take().expect("a piped log"));
    let (tell, told) = sync_channel(1);
    let reader = std::thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            if std::env::var_os("STINT_TEST_LOG").is_some() {
                eprintln!("{line}");
            }
            kept.lock().unwrap().push(line.clone());
            if let Some((_, rest)) = line.split_once("listening on ") {
                // In JSON the line goes on behind a quotation mark.
                let base = rest.split('"').next().unwrap_or_default();
                let _ = tell.try_send(base.trim().to_owned());
            }
        }
    });
    match told.recv_timeout(READY_MAX) {
        Ok(base) => (base, reader),
        Err(_) => panic!("the server did not start: {:?}", child.try_wait()),
    }
}

impl Process {
    /// The first line of the log with these words, once it is there.
    pub(crate) async fn logged(&self, words: &str) -> String {
        self.logged_times(words, 1).await.swap_remove(0)
    }

    /// The lines of the log with these words, once there are so many.
    pub(crate) async fn logged_times(&self, words: &str, count: usize) -> Vec<String> {
        let all = async {
            while self.lines(words).len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, all).await;
        assert!(in_time.is_ok(), "{count} lines with {words:?} in {:#?}", self.lines(""));
        self.lines(words)
    }

    /// The lines of the log so far with these words. The log is written behind the answers: what must be there is waited for,
    /// and what must not be there is looked for in the log of a server that has ended.
    pub(crate) fn lines(&self, words: &str) -> Vec<String> {
        self.log.lock().unwrap().iter().filter(|line| line.contains(words)).cloned().collect()
    }

    /// Posts a chat completion.
    pub(crate) async fn ask(&self, key: &str, body: &Value) -> Answer {
        Answer::of(self.request(key, body, &[])).await
    }

    /// A chat completion with more headers, to be sent.
    pub(crate) fn request(&self, key: &str, body: &Value, headers: &[(&str, &str)]) -> RequestBuilder {
        let request = self.client.post(format!("{}/v1/chat/completions", self.base)).bearer_auth(key);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.header("content-type", "application/json").body(body.to_string())
    }

    /// Gets a page.
    pub(crate) async fn get(&self, key: &str, path: &str) -> Answer {
        Answer::of(self.client.get(format!("{}{path}", self.base)).bearer_auth(key)).await
    }

    /// Lets no file of the server grow beyond so many bytes, or any size.
    pub(crate) fn limit_files(&self, bytes: &str) {
        let pid = self.child.id().to_string();
        let set =
            Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status();
        assert!(set.unwrap().success(), "prlimit");
    }

    /// The processor time that it has taken until now, in seconds.
    pub(crate) fn processor_time(&self) -> f64 {
        let told = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let after_name = told.rsplit(')').next().unwrap();
        let ticks = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap());
        ticks.sum::<f64>() / 100.0
    }

    /// The memory that it has now, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let told = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = told.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(sent.success(), "kill -s {name} {pid}");
    }

    /// Waits for the end, which comes in time once no answer runs. The whole log has been read then.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let (began, last) = (QuietInstant::now(), Instant::now() + STOP_MAX + PATIENCE);
        loop {
            let status = self.child.try_wait().unwrap();
            if let Some(status) = status.filter(|_| self.reader.is_finished()) {
                let took = began.elapsed();
                assert!(took <= STOP_MAX, "{status} after {took:?} of a quiet machine");
                return status;
            }
            assert!(Instant::now() < last, "{status:?} after {:?}", STOP_MAX + PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
