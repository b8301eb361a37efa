//! A real Prometheus, and its tool.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::free_port;

fn program(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".cache").join(name);
    assert!(path.exists(), "{} is missing: run `make test-tools`", path.display());
    path
}

/// Runs promtool, which must find nothing wrong.
pub(super) fn promtool(arguments: &[&str]) {
    let output = Command::new(program("promtool")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}

/// A Prometheus that scrapes one server each second. It ends when this is dropped.
pub(super) struct Prometheus {
    child: Child,
    base: String,
    client: reqwest::Client,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes this address.
    pub(super) async fn start(target: &str) -> Prometheus {
        let folder = TempDir::new().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n  - job_name: stint\n    \
             authorization: {{ credentials: sk-test }}\n    static_configs: [{{ targets: [\"{target}\"] }}]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let free = format!("127.0.0.1:{}", free_port());
        let child = Command::new(program("prometheus"))
            .current_dir(folder.path())
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={free}"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .expect("Prometheus starts");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let prometheus = Prometheus { child, base: format!("http://{free}"), client, _folder: folder };
        prometheus.until("up == 1").await;
        prometheus
    }

    /// How many series a query finds now.
    pub(super) async fn found(&self, query: &str) -> usize {
        let form = form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
        let sent = self.client.get(format!("{}/api/v1/query?{form}", self.base)).send().await;
        let Ok(response) = sent else { return 0 };
        let text = response.text().await.unwrap();
        let Ok(answer) = serde_json::from_str::<Value>(&text) else { return 0 };
        assert_ne!(answer["status"], "error", "{query}: {text}");
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    }

    /// Waits until a query finds something.
    pub(super) async fn until(&self, query: &str) {
        let wait = async {
            while self.found(query).await == 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .unwrap_or_else(|_| panic!("nothing for {query}"));
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
