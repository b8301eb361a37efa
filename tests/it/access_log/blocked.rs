//! A log that nobody takes.

use std::fs::OpenOptions;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::harness::patience::{PATIENCE, until, within};
use crate::harness::{Answer, Folder, free_port};

/// A server whose standard error is this, once it is ready.
struct Mute {
    child: Child,
    base: String,
    client: reqwest::Client,
    _folder: Folder,
}

impl Drop for Mute {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mute {
    async fn start(standard_error: Stdio) -> Mute {
        let folder = Folder::new("");
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let mut command = folder.stint("serve");
        command.env("STINT_LISTEN", &listen).env("STINT_LOG", "info").stderr(standard_error);
        let child = command.spawn().unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let mute = Mute { child, base: format!("http://{listen}"), client, _folder: folder };
        let ready = async || mute.client.get(format!("{}/readyz", mute.base)).send().await.is_ok();
        until("it starts", ready).await;
        mute
    }

    /// So many requests, each with a line in the log, and each answered.
    async fn ask(&self, count: usize) {
        for number in 0..count {
            let asked = self.client.get(format!("{}/v1/models/none", self.base)).send();
            let asked = within(Duration::from_secs(5), asked).await.expect("nothing holds it up");
            assert_eq!(
                asked.unwrap_or_else(|error| panic!("request {number}: {error}")).status().as_u16(),
                404
            );
        }
    }

    async fn dropped(&self) -> u64 {
        let page = Answer::of(self.client.get(format!("{}/metrics", self.base))).await.text;
        let line = page.lines().find_map(|line| line.strip_prefix("stint_log_lines_dropped_total "));
        line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
    }
}

/// OB-08: a pipe that nobody reads fills, and nobody waits for it. What is dropped is counted, and the end is none the later.
#[tokio::test]
async fn a_pipe_that_nobody_reads_holds_up_no_request() {
    let mut mute = Mute::start(Stdio::piped()).await;
    mute.ask(1_800).await;
    let dropped = mute.dropped().await;
    assert!(dropped > 100, "{dropped}");
    let pid = mute.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    let ended = until("it ends", async || mute.child.try_wait().unwrap().is_some());
    within(Duration::from_secs(10), ended).await.expect("nothing holds it up");
    let mut log = String::new();
    mute.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.lines().count() > 50, "what the pipe has is there: {log}");
}

/// OB-08: the same of a disk without room.
#[tokio::test]
async fn a_full_disk_under_the_log_holds_up_no_request() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mute = Mute::start(full.into()).await;
    mute.ask(50).await;
    // Lines are written, and dropped, behind the answers.
    until("each is counted", async || mute.dropped().await >= 50).await;
}
