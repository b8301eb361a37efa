//! The certificates of the listeners: loaded with the configuration, and again when their files change.
//!
//! Only what connections begin with changes; the rest of the configuration stays as it is, since nobody asked for another.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::config::Settings;
use crate::http::SwappableRouter;
use crate::http::tls::{CertificateFacts, TlsError, TlsIdentity, TlsSettings};
use stint_types::metrics::Metrics;
use stint_types::units::Timestamp;

use super::config_snapshot::{ConfigSnapshot, SwappableRouterSet};
use super::error::error_chain;

/// How often the files are looked at. What changed between two looks may still be written, and waits for the next.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// From when on the log speaks of a certificate that ends, and how often.
const WARNING_TIME: Duration = Duration::from_secs(14 * 24 * 3600);
const WARNING_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The certificate of each listener that speaks TLS.
#[derive(Debug, Default)]
pub(super) struct ListenerIdentities {
    api: Option<Arc<TlsIdentity>>,
    admin: Option<Arc<TlsIdentity>>,
}

/// Reads the certificates that the settings name; blocks.
pub(super) fn load(settings: &Settings) -> Result<ListenerIdentities, TlsError> {
    let identity = |tls: &TlsSettings| TlsIdentity::load(tls).map(Arc::new);
    let admin = settings.admin.as_ref().and_then(|admin| admin.tls.as_ref());
    Ok(ListenerIdentities {
        api: settings.http.tls.as_ref().map(identity).transpose()?,
        admin: admin.map(identity).transpose()?,
    })
}

impl ListenerIdentities {
    /// Connections that begin from now on get these.
    pub(super) fn apply(self, routers: &SwappableRouterSet, metrics: &Metrics) {
        put_in_force("api", &routers.api, self.api, metrics);
        if let Some(admin) = &routers.admin {
            put_in_force("admin", admin, self.admin, metrics);
        }
    }
}

/// What the certificates are for and until when, a line for each.
pub(super) fn describe(settings: &Settings) -> Vec<String> {
    let Ok(ListenerIdentities { api, admin }) = load(settings) else { return Vec::new() };
    let now = Timestamp::now();
    let line = |(section, identity): (&str, Arc<TlsIdentity>)| {
        let CertificateFacts { ends, names, .. } = &identity.facts;
        let days = (ends.0 - now.0) / (24 * 3600 * 1000);
        let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
        format!("the certificate of [{section}.tls] is for {names} and ends at {ends}, in {days} days")
    };
    let listeners = [("server", api), ("admin", admin)];
    listeners.into_iter().filter_map(|(section, identity)| Some(line((section, identity?)))).collect()
}

fn put_in_force(
    listener: &'static str,
    router: &SwappableRouter,
    identity: Option<Arc<TlsIdentity>>,
    metrics: &Metrics,
) {
    match &identity {
        Some(identity) => {
            let ends = Duration::from_millis(u64::try_from(identity.facts.ends.0).unwrap_or_default());
            metrics.config.certificate_expiry.with_label_values(&[listener]).set(ends.as_secs_f64());
        }
        // A listener that spoke TLS and does so no more has no series; there is nothing to do where it never had one.
        None => drop(metrics.config.certificate_expiry.remove_label_values(&[listener])),
    }
    router.set_identity(identity);
}

/// Looks after the files of the certificates in force.
pub(super) struct CertificateWatcher {
    pub(super) current: Arc<ArcSwap<ConfigSnapshot>>,
    pub(super) routers: SwappableRouterSet,
    pub(super) metrics: Arc<Metrics>,
}

impl CertificateWatcher {
    /// Takes changed certificates until shutdown begins.
    pub(super) async fn run(self, stopping: impl Future<Output = ()>) {
        tokio::pin!(stopping);
        let routers = self.routers.clone();
        let mut watched = vec![WatchedListener::new("api", routers.api)];
        watched.extend(routers.admin.map(|admin| WatchedListener::new("admin", admin)));
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            let current = self.current.load_full();
            for listener in &mut watched {
                listener.look(&current.settings, &self.metrics).await;
            }
        }
    }
}

/// The files of one listener as they were seen.
struct WatchedListener {
    name: &'static str,
    router: SwappableRouter,
    /// Those in force, and those of the last look.
    taken: Option<FileStamps>,
    seen: Option<FileStamps>,
    /// What was put in force last. A reload may have put another in its place, even one that it read before.
    put: Option<Arc<TlsIdentity>>,
    is_failing: bool,
    warned: Option<Timestamp>,
}

impl WatchedListener {
    fn new(name: &'static str, router: SwappableRouter) -> WatchedListener {
        WatchedListener { name, router, taken: None, seen: None, put: None, is_failing: false, warned: None }
    }

    async fn look(&mut self, settings: &Settings, metrics: &Metrics) {
        let tls = match self.name {
            "api" => settings.http.tls.clone(),
            _ => settings.admin.as_ref().and_then(|admin| admin.tls.clone()),
        };
        let Some(tls) = tls else {
            // A reload clears what it put itself.
            if self.is_in_force() {
                put_in_force(self.name, &self.router, None, metrics);
            }
            (self.taken, self.seen, self.put) = (None, None, None);
            return;
        };
        self.warn_of_end();
        let seen = Some(FileStamps::of(&tls));
        let stands_still = self.seen == seen;
        self.seen = seen;
        let is_same = self.taken == self.seen;
        if !stands_still || (is_same && self.is_in_force()) {
            return;
        }
        let loaded = tokio::task::spawn_blocking(move || TlsIdentity::load(&tls)).await;
        match loaded {
            Ok(Ok(identity)) => {
                if self.taken.is_some() && !is_same {
                    tracing::info!(listener = self.name, ends = %identity.facts.ends, "took a changed certificate");
                }
                let identity = Arc::new(identity);
                put_in_force(self.name, &self.router, Some(identity.clone()), metrics);
                self.put = Some(identity);
                self.taken.clone_from(&self.seen);
                (self.is_failing, self.warned) = (false, None);
            }
            Ok(Err(error)) if !self.is_failing => {
                let why = error_chain(&error);
                tracing::error!(
                    listener = self.name,
                    why,
                    "a changed certificate cannot be used; the one before stays"
                );
                self.is_failing = true;
            }
            // A failure that was reported, or a panic, which reports itself.
            Ok(Err(_)) | Err(_) => {}
        }
    }

    /// True while connections get what was put in force here.
    fn is_in_force(&self) -> bool {
        let current = self.router.identity();
        current.zip(self.put.as_ref()).is_some_and(|(current, put)| Arc::ptr_eq(&current, put))
    }

    /// Once a day in the last two weeks.
    fn warn_of_end(&mut self) {
        let Some(identity) = self.router.identity() else { return };
        let (now, ends) = (Timestamp::now(), identity.facts.ends);
        let is_told = self.warned.is_some_and(|warned| now < warned + WARNING_INTERVAL);
        if ends <= now + WARNING_TIME && !is_told {
            tracing::warn!(listener = self.name, %ends, "the certificate ends soon, or has ended; put another into its file");
            self.warned = Some(now);
        }
    }
}

/// What a file system tells of a listener's files: other ones, or other contents, have other stamps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamps(Vec<Option<[i64; 5]>>);

impl FileStamps {
    fn of(tls: &TlsSettings) -> FileStamps {
        FileStamps(tls.files().map(|path| fs::metadata(path).ok().map(|file| stamp(&file))).collect())
    }
}

#[cfg(unix)]
fn stamp(file: &fs::Metadata) -> [i64; 5] {
    use std::os::unix::fs::MetadataExt;
    let (inode, size) = (file.ino().cast_signed(), file.size().cast_signed());
    [inode, size, file.mtime(), file.mtime_nsec(), file.ctime_nsec()]
}

/// Without an inode, size and time tell.
#[cfg(not(unix))]
fn stamp(file: &fs::Metadata) -> [i64; 5] {
    let modified = file.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default();
    let seconds = i64::try_from(modified.as_secs()).unwrap_or(i64::MAX);
    [0, file.len().cast_signed(), seconds, i64::from(modified.subsec_nanos()), 0]
}
