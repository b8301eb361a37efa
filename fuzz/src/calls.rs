#![no_main]

mod run;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run::run(&oracle::calls::SUBJECT, bytes));
