//! `stint health`: asks the configured server whether it is ready, as a container's health check does.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::{config, http};

use super::command::{fail, say};

/// How long connecting and answering may take, each.
const PATIENCE: Duration = Duration::from_secs(3);
/// A status line is shorter than this.
const ANSWER_MAX: u64 = 4096;

pub(super) fn health(file: Option<&Path>) -> ExitCode {
    let settings = match config::load_locally(file, &config::environment) {
        Ok(settings) => settings,
        Err(mistakes) => return fail(&mistakes),
    };
    let address = http::reachable(settings.http.metrics_listen.unwrap_or(settings.http.listen));
    match ask(address) {
        Ok(status) if status.contains(" 200 ") => {
            say("ready");
            ExitCode::SUCCESS
        }
        Ok(status) => fail(&io::Error::other(format!("not ready: {status}"))),
        Err(error) => fail(&error),
    }
}

fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut answer)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
