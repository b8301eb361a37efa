//! How often the gateway asks for memory, and for how much, in each request and each event: the same on every machine.
//!
//!     cargo test --test allocations -- --ignored
//!
//! The whole gateway runs in this process on a runtime of one thread, as its configuration file says: a ledger in `SQLite`, learning, the
//! decision log. Its upstream and its caller have threads that are not counted. What it comes to is written to the folder for tests in
//! target, and load-tests/ratchet compares it with what was agreed.

mod caller;
mod counting;

use std::error::Error;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use loader::scenario::UpstreamScript;
use loader::upstream;
use serde_json::{Value, json};
use stint::app::{self, ConfigSource};
use stint::config::{self, ConfigErrors, Settings};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use caller::Caller;
use counting::{Allocations, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type Failed = Box<dyn Error + Send + Sync>;

/// Requests before any is counted: buffers grow, prepared statements are made, the queue's places are found.
const WARM_UP: usize = 60;
/// Requests of one batch, and batches. What runs now and then beside the requests falls into few of them.
const BATCH: u64 = 40;
const BATCHES: usize = 9;
/// What is written behind an answer is so before the next request comes, and never together with what that one writes.
const BETWEEN: Duration = Duration::from_millis(3);
/// Events of the longer stream.
const LONG: usize = 253;
const SHORT: usize = 53;

#[test]
#[ignore = "a ratchet: make ratchet-allocations"]
fn each_request_and_each_event_takes_as_many_allocations_as_agreed() -> Result<(), Failed> {
    counting::leave_out_this_thread();
    let folder = tempfile::tempdir()?;
    let usual = UpstreamScript::default;
    let upstreams = [
        start_upstream(usual())?,
        start_upstream(UpstreamScript { events: LONG, ..usual() })?,
        start_upstream(UpstreamScript { calls_tool: true, ..usual() })?,
    ];
    let gateway = start_gateway(folder.path(), &settings(&upstreams))?;
    let mut caller = Caller::connect(gateway)?;
    let short = measure(&mut caller, &ask("m0", json!({"stream": true})))?;
    let long = measure(&mut caller, &ask("long", json!({"stream": true, "max_tokens": 1000})))?;
    let events = |of: fn(&Allocations) -> u64| 100 * (of(&long) - of(&short)) / (LONG - SHORT) as u64;
    let measured = json!({
        "plain": told(measure(&mut caller, &ask("m0", json!({})))?),
        "stream": told(short),
        "hundred_events": {"count": events(|taken| taken.count), "bytes": events(|taken| taken.bytes)},
        "auto": told(measure(&mut caller, &ask("auto", json!({})))?),
        "tool": told(measure(&mut caller, &ask("tool", json!({"tools": [tool()]})))?),
    });
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("allocations.json");
    fs::write(file, measured.to_string())?;
    Ok(())
}

fn told(taken: Allocations) -> Value {
    json!({"count": taken.count, "bytes": taken.bytes})
}

fn tool() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    json!({"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": parameters}})
}

fn ask(model: &str, more: Value) -> Value {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": ""}]});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

/// What a request takes: the median of the batches.
fn measure(caller: &mut Caller, body: &Value) -> Result<Allocations, Failed> {
    let mut number = 0;
    let mut ask = |times| {
        for _ in 0..times {
            number += 1;
            let mut body = body.clone();
            // The same again would be a word on the answer before.
            body["messages"][0]["content"] = format!("Question {number:05}: how many cars crossed?").into();
            let answer = caller.ask(&body.to_string())?;
            let is_right =
                answer.starts_with("HTTP/1.1 200") && answer.contains('#') && !answer.contains("\"error\"");
            assert!(is_right, "{answer}");
            thread::sleep(BETWEEN);
        }
        Ok::<_, Failed>(())
    };
    ask(WARM_UP)?;
    let mut taken = Vec::new();
    for _ in 0..BATCHES {
        let before = Allocations::so_far();
        ask(usize::try_from(BATCH)?)?;
        // What is written behind the answers belongs to them.
        thread::sleep(Duration::from_millis(30));
        taken.push(Allocations::so_far() - before);
    }
    let middle = |of: fn(&Allocations) -> u64| {
        let mut values: Vec<u64> = taken.iter().map(of).collect();
        values.sort_unstable();
        values[BATCHES / 2] / BATCH
    };
    Ok(Allocations { count: middle(|taken| taken.count), bytes: middle(|taken| taken.bytes) })
}

/// Five models among which `auto` chooses, one with long answers, and one that calls tools.
fn settings([usual, long, tool]: &[SocketAddr; 3]) -> String {
    let mut text = String::from(
        "[engine]\nembedded = false\n\n[[route]]\nname = \"auto\"\nmodels = [\"m0\", \"m1\", \"m2\", \"m3\", \"m4\"]\n",
    );
    for (name, address) in [("usual", usual), ("long", long), ("tool", tool)] {
        text += &format!("\n[[backend]]\nname = \"{name}\"\nbase_url = \"http://{address}/v1\"\n");
        let count = if name == "usual" { 5 } else { 1 };
        for at in 0..count {
            let model = if name == "usual" { format!("m{at}") } else { name.to_owned() };
            text += &format!(
                "\n[[backend.model]]\nname = \"{model}\"\nprice_input = \"0.1{at}\"\nprice_output = \"0.4{at}\"\ncontext = 100000\n\
                 thinking_max = 0\n"
            );
        }
    }
    text
}

fn start_upstream(script: UpstreamScript) -> Result<SocketAddr, Failed> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    thread::spawn(move || {
        counting::leave_out_this_thread();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok::<_, Failed>(LocalSet::new().block_on(&runtime, upstream::serve(script, address))?)
    });
    wait_for(address)
}

fn wait_for(address: SocketAddr) -> Result<SocketAddr, Failed> {
    while TcpStream::connect(address).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(address)
}

/// On a thread of its own, until the process ends.
fn start_gateway(folder: &Path, text: &str) -> Result<SocketAddr, Failed> {
    let file = folder.join("stint.toml");
    fs::write(&file, text)?;
    let ledger = folder.join("ledger.db");
    let (address, addresses) = sync_channel(1);
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let settings = load(&file, &ledger)?;
            let source =
                ConfigSource { load: Arc::new(move || load(&file, &ledger)), on_applied: Box::new(|_| ()) };
            let app = app::build(settings, source).await?;
            let first = app.addresses().first().copied().ok_or("it listens nowhere")?;
            let _running = app.start();
            address.send(first)?;
            std::future::pending::<Result<(), Failed>>().await
        })
    });
    Ok(addresses.recv_timeout(Duration::from_secs(30))?)
}

fn load(file: &Path, ledger: &Path) -> Result<Settings, ConfigErrors> {
    let variables = [("STINT_LEDGER", PathBuf::from(ledger)), ("STINT_LISTEN", "127.0.0.1:0".into())];
    config::load(Some(file), &|name| {
        let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
        Some(value.to_string_lossy().into_owned())
    })
}
