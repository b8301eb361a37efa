//! How verbs call a listener of their configuration on this machine, with TLS where it speaks it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::config::Settings;
use crate::http;
use crate::http::tls::{self, TlsError, TlsSettings};

/// Why a listener of this configuration cannot be called.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocalListenerError {
    #[error("the listener's certificate cannot be used, by which it is known")]
    Tls(#[from] TlsError),
    #[error("no HTTP client can be made")]
    Client(#[from] reqwest::Error),
}

/// A listener as it is called from its own machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalListener<'s> {
    address: SocketAddr,
    tls: Option<&'s TlsSettings>,
}

impl<'s> LocalListener<'s> {
    pub(super) fn new(listen: SocketAddr, tls: Option<&'s TlsSettings>) -> LocalListener<'s> {
        LocalListener { address: http::local_address(listen), tls }
    }

    /// The API's.
    pub(super) fn api(settings: &'s Settings) -> LocalListener<'s> {
        LocalListener::new(settings.http.listen, settings.http.tls.as_ref())
    }

    /// The one with the monitoring pages.
    pub(super) fn monitoring(settings: &'s Settings) -> LocalListener<'s> {
        match settings.http.metrics_listen {
            Some(listen) => LocalListener::new(listen, None),
            None => LocalListener::api(settings),
        }
    }

    pub(super) fn address(self) -> SocketAddr {
        self.address
    }

    /// Where it is called.
    pub(super) fn url(self) -> String {
        url(self.address, self.tls)
    }

    /// A client that takes the listener for what it is.
    pub(super) fn client(self, timeout: Duration) -> Result<reqwest::Client, LocalListenerError> {
        Ok(tls::client_builder(self.tls)?.timeout(timeout).build()?)
    }

    /// Sends a request without secrets, since anybody may be listening there, and reads the answer's beginning; blocks.
    pub(super) fn ask(self, request: &[u8], timeout: Duration, most: u64) -> io::Result<String> {
        let stream = TcpStream::connect_timeout(&self.address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        let mut stream = tls::connect_unpinned(stream, self.address, self.tls).map_err(io::Error::other)?;
        // In one piece: a server that is in a hurry may answer half a request and close.
        stream.write_all(request)?;
        stream.flush()?;
        let mut answer = String::new();
        stream.take(most).read_to_string(&mut answer)?;
        Ok(answer)
    }
}

/// A client and the base of the API's address: that which was stated, else where this configuration has it.
pub(super) fn server_client(
    settings: &Settings,
    stated: Option<&str>,
    timeout: Duration,
) -> Result<(reqwest::Client, String), LocalListenerError> {
    match stated {
        Some(stated) => {
            let client = reqwest::Client::builder().no_proxy().timeout(timeout).build()?;
            Ok((client, stated.trim_end_matches('/').to_owned()))
        }
        None => {
            let listener = LocalListener::api(settings);
            Ok((listener.client(timeout)?, listener.url()))
        }
    }
}

/// The address of a listener.
pub(super) fn url(address: SocketAddr, tls: Option<&TlsSettings>) -> String {
    let scheme = if tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}
