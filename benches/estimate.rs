//! What an estimate takes for a prompt of 2 KB: for one model and for twenty.
//!
//!     cargo bench --bench estimate

#![expect(clippy::print_stdout, reason = "it tells what it measured")]

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use stint_decide::estimate;
use stint_types::catalog::Calibration;
use stint_types::chat::{Message, Request, Role};
use stint_types::units::Tokens;

/// Estimates in one measurement; the best of several is told, for the machine has other work.
const TIMES: u32 = 5_000;
const MEASUREMENTS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let calibration = estimate::shipped()?;
    println!("reading and checking the shipped data: {:.2?}", start.elapsed());
    let sentence =
        "A firm borrows $12,500 at 4.5% a year, compounded quarterly; which of the following holds? ";
    let prompt: String = sentence.chars().cycle().take(2048).collect();
    let request = Request::new("auto", vec![Message::text(Role::User, &prompt)]);
    measure("the embedded model", &request, &["reasoner".to_owned()], &calibration);
    measure("one model without coefficients", &request, &["stranger".to_owned()], &calibration);
    let twenty: Vec<String> = (0..20).map(|number| format!("model-{number}")).collect();
    measure("twenty models", &request, &twenty, &calibration);
    Ok(())
}

fn measure(name: &str, request: &Request, models: &[String], calibration: &Calibration) {
    let prompts: BTreeMap<Arc<str>, Tokens> =
        models.iter().map(|model| (Arc::from(model.as_str()), Tokens(600))).collect();
    let one = || {
        let start = Instant::now();
        for _ in 0..TIMES {
            black_box(estimate::estimate(black_box(request), &prompts, calibration));
        }
        start.elapsed() / TIMES
    };
    let best = (0..MEASUREMENTS).map(|_| one()).min().unwrap_or_default();
    println!("{name}, 2 KB: {best:.2?}");
}
