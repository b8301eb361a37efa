//! What models that do not think reached at questions with free answers, as published.

/// Shares of MMLU-Pro, GSM8K and MATH, each with the reasoning written out: *The Llama 3 Herd of Models*, 2024, table 2.
pub(super) const MATHEMATICS: [(f64, f64, f64); 10] = [
    (0.483, 0.845, 0.519),
    (0.369, 0.532, 0.130),
    (0.664, 0.951, 0.680),
    (0.563, 0.882, 0.541),
    (0.492, 0.816, 0.431),
    (0.733, 0.968, 0.738),
    (0.627, 0.923, 0.411),
    (0.648, 0.942, 0.645),
    (0.740, 0.961, 0.766),
    (0.770, 0.964, 0.711),
];

/// Shares of MMLU-Pro as there, and of `CRUXEval` with the reasoning written out, the mean of its two halves: *`CRUXEval`: A
/// Benchmark for Code Reasoning, Understanding and Execution*, 2024.
pub(super) const RUN_IN_THE_HEAD: [(f64, f64); 2] = [(0.648, 0.763), (0.492, 0.547)];

/// Of GSM8K's answers in the data: the model there, and its published share of MMLU-Pro.
pub(super) const JUDGED_GSM8K: [(&str, f64); 2] = [("mixtral-8x7b", 0.419), ("gpt-4", 0.637)];

/// Of `LiveCodeBench`'s answers in the data, with a thought: the same.
pub(super) const JUDGED_PROGRAMS: [(&str, f64); 1] = [("o1-mini", 0.803)];
