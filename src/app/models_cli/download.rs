//! One file over HTTP: what came before a break is kept and gone on with, and what came is checked before it gets its name.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response};
use sha2::{Digest, Sha256};

use super::human_bytes::human_bytes;
use super::source::is_safe;

/// A server that sends nothing for so long has gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const CONNECT_MAX: Duration = Duration::from_secs(20);

/// As often as that one address may send to another.
const REDIRECTS_MAX: usize = 10;

/// What a server answers: all of it comes, or the range that was asked for, or there is nothing left to send.
const WHOLE: u16 = 200;
const PARTIAL: u16 = 206;
const UNSATISFIABLE: u16 = 416;

/// The checksum of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sha256Sum(String);

impl FromStr for Sha256Sum {
    type Err = String;

    fn from_str(text: &str) -> Result<Sha256Sum, String> {
        let text = text.trim_start_matches("sha256:").to_lowercase();
        let is_sum = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_sum.then_some(Sha256Sum(text)).ok_or_else(|| "a SHA-256 has 64 hexadecimal digits".to_owned())
    }
}

impl fmt::Display for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Sha256Sum {
    /// The checksum of a file as it is.
    pub(super) fn of(path: &Path) -> io::Result<Sha256Sum> {
        Sha256Sum::of_open(&File::open(path)?)
    }

    /// The checksum of all that an open file has.
    fn of_open(mut file: &File) -> io::Result<Sha256Sum> {
        file.rewind()?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hash.update(&buffer[..length]),
            }
        }
        Ok(Sha256Sum(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

/// Why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("{0} cannot be reached: check the address and the network")]
    Unreachable(String, #[source] reqwest::Error),
    #[error("{0} answered {1}: check the address, and whether it wants a token (`HF_TOKEN`)")]
    Status(String, u16),
    #[error("{0} broke off after {done}: run the command again, it goes on from there", done = human_bytes(*.1))]
    BrokeOff(String, u64, #[source] Option<reqwest::Error>),
    #[error("{path} cannot be written")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} is being fetched by another process: wait for it, or name another folder with --to")]
    InUse(PathBuf),
    #[error("{0} sends more than {max}, which is more than was expected: check the address", max = human_bytes(*.1))]
    TooLong(String, u64),
    #[error("{url} lists more than {max} files: name another index with --index")]
    TooManyLinks { url: String, max: usize },
    #[error("{url} sent more than it told of, and all was thrown away: {found} bytes instead of {expected}")]
    Length { url: String, found: u64, expected: u64 },
    #[error(
        "{url} is not the file that was expected, and was thrown away: its SHA-256 is {found}, not {expected}"
    )]
    Checksum { url: String, found: Sha256Sum, expected: Sha256Sum },
}

/// What to fetch, and where it goes.
pub(super) struct Download<'a> {
    pub(super) url: &'a str,
    pub(super) target: &'a Path,
    /// What it must be.
    pub(super) checksum: Option<&'a Sha256Sum>,
    /// It has no more bytes, where that is known.
    pub(super) length_max: Option<u64>,
    /// Who is asking, where the server wants to know.
    pub(super) token: Option<&'a str>,
    /// Told how many bytes are there, and of how many, where that is known.
    pub(super) progress: &'a mut dyn FnMut(u64, Option<u64>),
}

/// A client for downloads, which may take as long as they like while something comes. What no checksum vouches for is
/// not followed to where others could put something else in its place.
pub(super) fn client(is_vouched: bool) -> reqwest::Result<Client> {
    let follow = move |attempt: Attempt<'_>| {
        if attempt.previous().len() > REDIRECTS_MAX {
            return attempt.error(format!("it redirects more than {REDIRECTS_MAX} times"));
        }
        if is_vouched || is_safe(attempt.url()) {
            return attempt.follow();
        }
        attempt.error("it redirects to plain http: say with --sha256 what the file must be")
    };
    let builder = Client::builder().connect_timeout(CONNECT_MAX).read_timeout(SILENCE_MAX);
    builder.redirect(Policy::custom(follow)).build()
}

impl Download<'_> {
    /// Fetches the file, and gives back its checksum.
    pub(super) async fn run(mut self, client: &Client) -> Result<Sha256Sum, DownloadError> {
        let part = beside(self.target, "part");
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|source| file_error(folder, source))?;
        let file = lock(&part)?;
        let fetched = self.fetch(client, &file, &part).await;
        // Where nothing came, nothing is left.
        if fetched.is_err() && file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            self.throw_away(&part);
        }
        fetched?;
        let found = Sha256Sum::of_open(&file).map_err(|source| file_error(&part, source))?;
        if let Some(expected) = self.checksum.filter(|expected| **expected != found) {
            self.throw_away(&part);
            let (url, expected) = (shown(self.url), expected.clone());
            return Err(DownloadError::Checksum { url, found, expected });
        }
        fs::rename(&part, self.target).map_err(|source| file_error(self.target, source))?;
        let _ = fs::remove_file(beside(self.target, "etag"));
        Ok(found)
    }

    async fn fetch(&mut self, client: &Client, file: &File, part: &Path) -> Result<(), DownloadError> {
        let there = file.metadata().map_err(|source| file_error(part, source))?.len();
        let response = self.request(client, there).await?;
        if response.status().as_u16() == UNSATISFIABLE {
            return Ok(());
        }
        self.receive(response, file, part).await
    }

    fn throw_away(&self, part: &Path) {
        let _ = fs::remove_file(part);
        let _ = fs::remove_file(beside(self.target, "etag"));
    }

    /// Asks for all of it, or for the rest where it can be known that it is the rest of the same file.
    async fn request(&self, client: &Client, there: u64) -> Result<Response, DownloadError> {
        let tag = fs::read_to_string(beside(self.target, "etag")).ok();
        // Without its tag it is the same file only where a checksum will say so.
        if there > 0 && (tag.is_some() || self.checksum.is_some()) {
            let response = self.send(client, Some((there, tag.as_deref()))).await?;
            match response.status().as_u16() {
                WHOLE => return Ok(response),
                // Where nothing can be sent, all of it is there already, unless the whole is of another length.
                UNSATISFIABLE if whole_length(response.headers()).is_none_or(|whole| whole == there) => {
                    return Ok(response);
                }
                PARTIAL if begins_at(response.headers(), there) => return Ok(response),
                // Another part than what is missing: all of it is asked for instead.
                PARTIAL | UNSATISFIABLE => {}
                status => return Err(DownloadError::Status(shown(self.url), status)),
            }
        }
        let response = self.send(client, None).await?;
        match response.status().as_u16() {
            WHOLE => Ok(response),
            status => Err(DownloadError::Status(shown(self.url), status)),
        }
    }

    /// Asks for all of it, or for what comes after so many bytes, if its tag is still this one.
    async fn send(
        &self,
        client: &Client,
        rest: Option<(u64, Option<&str>)>,
    ) -> Result<Response, DownloadError> {
        let mut request = client.get(self.url);
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        if let Some((there, tag)) = rest {
            request = request.header(RANGE, format!("bytes={there}-"));
            if let Some(tag) = tag {
                request = request.header(IF_RANGE, tag);
            }
        }
        let response = request.send().await;
        response.map_err(|error| DownloadError::Unreachable(shown(self.url), error.without_url()))
    }

    async fn receive(
        &mut self,
        response: Response,
        mut file: &File,
        part: &Path,
    ) -> Result<(), DownloadError> {
        let resumes = response.status().as_u16() == PARTIAL;
        let tag = response
            .headers()
            .get(ETAG)
            .and_then(|tag| tag.to_str().ok())
            .filter(|tag| !tag.starts_with("W/"));
        let noted = beside(self.target, "etag");
        // Without a tag the rest cannot be told from the rest of another file.
        let _ = tag.map_or_else(|| fs::remove_file(&noted), |tag| fs::write(&noted, tag));
        let failed = |source| file_error(part, source);
        if !resumes {
            file.set_len(0).map_err(failed)?;
        }
        let mut done = file.metadata().map_err(failed)?.len();
        let stated = whole_length(response.headers()).filter(|_| resumes);
        let whole = stated.or(response.content_length().map(|length| done.saturating_add(length)));
        self.check_length(whole.unwrap_or(done), part)?;
        let mut body = response.bytes_stream();
        while let Some(piece) = body.next().await {
            let piece = piece
                .map_err(|error| DownloadError::BrokeOff(shown(self.url), done, Some(error.without_url())))?;
            file.write_all(&piece).map_err(failed)?;
            done += piece.len() as u64;
            self.check_length(done, part)?;
            (self.progress)(done, whole);
        }
        file.sync_all().map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        match whole {
            Some(whole) if found < whole => Err(DownloadError::BrokeOff(shown(self.url), found, None)),
            Some(expected) if found > expected => {
                self.throw_away(part);
                Err(DownloadError::Length { url: shown(self.url), found, expected })
            }
            _ => Ok(()),
        }
    }

    /// Throws away what has more bytes than it may have.
    fn check_length(&self, length: u64, part: &Path) -> Result<(), DownloadError> {
        let Some(max) = self.length_max.filter(|max| length > *max) else { return Ok(()) };
        self.throw_away(part);
        Err(DownloadError::TooLong(shown(self.url), max))
    }
}

/// An address without a name and a password, which those of indexes may have.
pub(super) fn shown(url: &str) -> String {
    let Ok(mut address) = reqwest::Url::parse(url) else { return url.to_owned() };
    let _ = address.set_username("");
    let _ = address.set_password(None);
    address.to_string()
}

/// True if a part is said to begin after so many bytes.
fn begins_at(headers: &HeaderMap, there: u64) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.trim().starts_with(&format!("bytes {there}-")))
}

/// How long the whole is, where a server says it beside a part.
fn whole_length(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    range.rsplit_once('/')?.1.trim().parse().ok()
}

/// Opens what is there of a file, or begins it. Nobody else writes into it meanwhile.
fn lock(part: &Path) -> Result<File, DownloadError> {
    let failed = |source| file_error(part, source);
    let file = OpenOptions::new().read(true).append(true).create(true).open(part).map_err(failed)?;
    match file.try_lock() {
        Ok(()) if part.exists() => Ok(file),
        // It got its name between the two.
        Ok(()) | Err(TryLockError::WouldBlock) => Err(DownloadError::InUse(part.to_owned())),
        // Some file systems have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// A file beside another, with one more ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn file_error(path: &Path, source: io::Error) -> DownloadError {
    DownloadError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_has_of_secrets_is_not_shown() {
        assert_eq!(shown("https://me:secret@a.example/simple/"), "https://a.example/simple/");
        assert_eq!(shown("no address"), "no address");
    }

    #[test]
    fn a_part_says_where_it_begins() {
        let check = |range: &'static str, expected| {
            let headers = HeaderMap::from_iter([(CONTENT_RANGE, range.parse().unwrap())]);
            assert_eq!(begins_at(&headers, 10), expected, "{range}");
        };
        check("bytes 10-19/20", true);
        check("bytes 10-19/*", true);
        check("bytes 100-119/120", false);
        check("bytes 0-19/20", false);
        assert!(!begins_at(&HeaderMap::new(), 10));
    }

    #[test]
    fn a_part_says_how_long_the_whole_is() {
        let check = |range: &'static str, expected| {
            let headers = HeaderMap::from_iter([(CONTENT_RANGE, range.parse().unwrap())]);
            assert_eq!(whole_length(&headers), expected, "{range}");
        };
        check("bytes 10-19/20", Some(20));
        check("bytes */20", Some(20));
        check("bytes 10-19/*", None);
        assert_eq!(whole_length(&HeaderMap::new()), None);
    }

    #[test]
    fn a_checksum_has_64_digits() {
        let digits = "Ab".repeat(32);
        assert_eq!(digits.parse::<Sha256Sum>().unwrap().to_string(), digits.to_lowercase());
        assert!("abc".parse::<Sha256Sum>().is_err());
    }
}
