//! TLS on our own listeners: the real binary with real certificates, as operators and callers meet it.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::harness::authority::{Authority, Signed};
use crate::harness::patience::{until, within};
use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, Deployment, Folder, Process, Says, free_port};

pub(crate) const TOKEN: &str = "the-token-of-the-admin-api";

/// A server whose listeners speak TLS, over an upstream of ten tokens.
pub(crate) struct Secured {
    authority: Authority,
    folder: Folder,
    pub(crate) admin: String,
    _upstream: Deployment,
}

impl Secured {
    pub(crate) async fn new(server: &str, tls: &str) -> Secured {
        let upstream = Deployment::always(Says::tokens(10)).await;
        let port = free_port();
        let hash = stint_types::tenant::hash_key("sk-test");
        let files = "certificate = \"tls.crt\"\nkey = \"tls.key\"\n";
        let folder = Folder::new(&format!(
            "[server]\n{server}[server.tls]\n{files}{tls}\
             [admin]\nlisten = \"127.0.0.1:{port}\"\ntoken_file = \"admin.token\"\n[admin.tls]\n{files}\
             [engine]\nembedded = false\n[[backend]]\nbase_url = \"{}\"\n[[backend.model]]\nname = \"m\"\n\
             price_input = \"1\"\nprice_output = \"1\"\n[[key]]\nname = \"test\"\nadmin = true\nhash = \"{hash}\"\n",
            upstream.base
        ));
        let authority = Authority::new();
        std::fs::write(folder.path().join("admin.token"), TOKEN).unwrap();
        std::fs::write(folder.path().join("ca.crt"), &authority.pem).unwrap();
        let secured =
            Secured { authority, folder, admin: format!("https://127.0.0.1:{port}"), _upstream: upstream };
        secured.sign(2040).write(secured.path());
        secured
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn sign(&self, year: i32) -> Signed {
        self.authority.sign(&["127.0.0.1", "localhost"], year)
    }

    /// Starts it; its caller trusts the authority alone.
    pub(crate) fn serve(&self) -> Process {
        let mut process = self.folder.serve();
        process.client = self.authority.client();
        process
    }

    /// What a verb prints, and whether it ended well.
    fn stint(&self, words: &[&str]) -> (bool, String) {
        self.stint_at("127.0.0.1:0", words)
    }

    /// The same where the API listens there.
    fn stint_at(&self, listen: &str, words: &[&str]) -> (bool, String) {
        let mut command = self.folder.stint(words[0]);
        command.env("STINT_LISTEN", listen);
        let output = command.args(&words[1..]).env("STINT_KEY", "sk-test").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// A connection that speaks TLS to a running server.
    async fn connect(&self, process: &Process) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = TcpStream::connect(address(process)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(std::sync::Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

fn address(process: &Process) -> String {
    process.base.strip_prefix("https://").expect("it says how it is called").to_owned()
}

pub(crate) fn question() -> serde_json::Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "stream": true })
}

// The upstream answers while a verb of the command line is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn callers_admins_and_the_verbs_of_the_command_line_come_by_tls() {
    let secured = Secured::new("", "").await;
    let process = secured.serve();
    let answer = process.ask("sk-test", &question()).await;
    assert!(answer.status == 200 && answer.text.contains("[DONE]"), "{}", answer.text);
    let keys = process.client.get(format!("{}/admin/keys", secured.admin)).bearer_auth(TOKEN);
    assert_eq!(Answer::of(keys).await.good()["data"][0]["name"], "test");
    for words in [&["health"][..], &["keys", "list"], &["plan", "hi", "--model", "m"]] {
        let (is_good, text) = secured.stint_at(&address(&process), words);
        assert!(is_good, "{words:?}: {text}");
    }
    let mut script = tool("python");
    script.args(["-c", PYTHON, &process.base]).env("SSL_CERT_FILE", secured.path().join("ca.crt"));
    assert_eq!(printed(&mut script, "").trim(), "xxxxxxxxxx");
    assert_eq!(process.logged_times("listening on https://", 2).await.len(), 2, "both listeners say so");
}

const PYTHON: &str = "
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + '/v1', api_key='sk-test')
asked = [{'role': 'user', 'content': 'hi'}]
chunks = client.chat.completions.create(model='m', messages=asked, stream=True)
print(''.join(chunk.choices[0].delta.content or '' for chunk in chunks if chunk.choices))
";

#[tokio::test]
async fn whoever_does_not_trust_the_certificate_or_speaks_plainly_gets_nothing() {
    let secured = Secured::new("head_timeout = \"300ms\"\n", "").await;
    let process = secured.serve();
    let stranger = reqwest::Client::builder().no_proxy().build().unwrap();
    assert!(stranger.get(format!("{}/healthz", process.base)).send().await.is_err());
    for sent in [&b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"[..], b""] {
        let mut plain = TcpStream::connect(address(&process)).await.unwrap();
        plain.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        // The server ends it: at once where it is no TLS, after its time where nothing comes.
        let read = within(Duration::from_secs(8), plain.read_to_end(&mut answer)).await;
        assert!(read.is_ok() && !answer.starts_with(b"HTTP"), "{answer:?}");
    }
    let turned = "stint_connections_turned_away_total{why=\"handshake\"} 3\n";
    let is_counted = async || process.get("sk-test", "/metrics").await.text.contains(turned);
    until("each is counted", is_counted).await;
}

#[tokio::test]
async fn what_framing_refuses_it_refuses_under_tls_too() {
    let secured = Secured::new("", "").await;
    let process = secured.serve();
    let mut connection = secured.connect(&process).await;
    assert_eq!(connection.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let hidden = "GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n";
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n\
         0\r\n\r\n{hidden}"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("send one of them"), "{answer}");
}

#[tokio::test]
async fn where_an_authority_for_callers_is_named_each_must_show_a_certificate_of_it() {
    let secured = Secured::new("", "client_ca = \"ca.crt\"\n").await;
    let process = secured.serve();
    let url = format!("{}/healthz", process.base);
    assert!(process.client.get(&url).send().await.is_err(), "nobody without one");
    let shows = |signed: &Signed| {
        let both = format!("{}{}", signed.certificate, signed.key);
        let identity = reqwest::Identity::from_pem(both.as_bytes()).unwrap();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([secured.authority.root()]);
        client.identity(identity).build().unwrap()
    };
    let other = Authority::new().sign(&["caller"], 2040);
    assert!(shows(&other).get(&url).send().await.is_err(), "nobody with another's");
    let own = secured.authority.sign(&["caller"], 2040);
    assert_eq!(shows(&own).get(&url).send().await.unwrap().status(), 200);
    let (is_good, text) = secured.stint_at(&address(&process), &["health"]);
    assert!(is_good, "{text}");
}

/// CF-12: a pair is changed without a restart.
#[tokio::test]
async fn a_changed_certificate_is_taken_while_it_serves_and_half_of_a_pair_is_not() {
    let secured = Secured::new("", "").await;
    let process = secured.serve();
    let ends = async |year: i64| {
        let metrics = process.get("sk-test", "/metrics").await.text;
        let line = metrics
            .lines()
            .find(|line| line.starts_with("stint_certificate_expiry_seconds{listener=\"api\"}"));
        let seconds: f64 = line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
        let (earliest, latest) = ((year - 1970) * 365 * 86400, (year + 1 - 1970) * 366 * 86400);
        (earliest as f64..latest as f64).contains(&seconds)
    };
    assert!(ends(2040).await);
    let next = secured.sign(2045);
    std::fs::write(secured.path().join("tls.crt"), &next.certificate).unwrap();
    process.logged("is not the key of the certificate").await;
    assert!(ends(2040).await, "the one before stays");
    assert_eq!(process.get("sk-test", "/healthz").await.status, 200);
    std::fs::write(secured.path().join("tls.key"), &next.key).unwrap();
    until("the new one is served", async || ends(2045).await).await;
    // A new client, whose connection begins now.
    let client = secured.authority.client();
    assert_eq!(client.get(format!("{}/healthz", process.base)).send().await.unwrap().status(), 200);
}

/// CF-12: what does not belong together is refused at the start.
#[tokio::test]
async fn the_check_says_what_is_wrong_with_a_certificate_and_when_one_ends() {
    let secured = Secured::new("", "").await;
    let (is_good, text) = secured.stint(&["check"]);
    assert!(
        is_good && text.contains("[server.tls] is for 127.0.0.1, localhost and ends at 2040-12-31"),
        "{text}"
    );
    secured.sign(2020).write(secured.path());
    let (is_good, text) = secured.stint(&["check"]);
    assert!(is_good && text.contains("server.tls.certificate: expired at 2020-12-31"), "{text}");
    let other = secured.sign(2040);
    std::fs::write(secured.path().join("tls.key"), &other.key).unwrap();
    let (is_good, text) = secured.stint(&["check"]);
    assert!(!is_good && text.contains("server.tls.key: ") && text.contains("made together"), "{text}");
    std::fs::write(secured.path().join("tls.crt"), "nothing").unwrap();
    let (is_good, text) = secured.stint(&["check"]);
    assert!(!is_good && text.contains("tls.crt has no certificate in PEM; put"), "{text}");
    std::fs::remove_file(secured.path().join("tls.crt")).unwrap();
    let (is_good, text) = secured.stint(&["check"]);
    assert!(!is_good && text.contains("cannot be read"), "{text}");
}
