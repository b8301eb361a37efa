//! A verifier that is a program: the question on its standard input, the score on its standard output.

use std::io;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::error::{REPLY_MAX, VerifierError};

/// All that a program has of an environment: ours may have secrets in it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the program once. It is killed where this is dropped.
pub(super) async fn call(words: &[String], asked: String) -> Result<Vec<u8>, VerifierError> {
    let mut child = start(words).map_err(VerifierError::Program)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (Some(mut input), Some(output)) = (input, output) else { return Err(VerifierError::Ended) };
    let write = async move {
        // A program that does not read all of it may close its input.
        drop(input.write_all(asked.as_bytes()).await);
    };
    let mut reply = Vec::new();
    let mut output = output.take(u64::try_from(REPLY_MAX).unwrap_or(u64::MAX) + 1);
    let ((), read) = tokio::join!(write, output.read_to_end(&mut reply));
    read.map_err(VerifierError::Program)?;
    if reply.len() > REPLY_MAX {
        return Err(VerifierError::TooLong);
    }
    let status = child.wait().await.map_err(VerifierError::Program)?;
    if status.success() { Ok(reply) } else { Err(VerifierError::Ended) }
}

fn start(words: &[String]) -> io::Result<Child> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}
