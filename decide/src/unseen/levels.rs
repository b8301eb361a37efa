//! How hard problems are, before and after some were labelled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use crate::lengths::LeftOut;
use crate::measure::{mean, spearman};
use stint_decide::learn::{BeliefStore, OutcomeSample, Settings};
use stint_types::catalog::{Calibration, Demand, SolutionStopReason, ThinkingStopReason};
use stint_types::units::{Chance, SeededRng, Tokens};

use super::{ANY, foretell};

/// After how many labels it is measured.
const LABELS: [usize; 3] = [0, 200, 1_000];
/// So many others are measured, where there are as many.
const MEASURED: usize = 2_000;

/// A problem and how hard it is, from 0 to 1 within its set.
type Problem = (Arc<Demand>, f64);

/// The ranks that are reached in each set of problems: left out whole with what is like it, and by thirds of all texts.
pub(super) fn tables(sets: &[LeftOut], thirds: &[LeftOut], shipped: &Calibration) -> String {
    let mut text = "\n\n## Difficulty\n\nA label is a judgement of one model that thinks: right as far as the problem is easy within its \
         set. What is ranked is the difficulty that is shown before, and the chance of a wrong answer after labels of the same set, on its \
         other problems.\n"
        .to_owned();
    let names: BTreeSet<&str> = sets.iter().flat_map(names).collect();
    for (how, out) in [
        ("Sets left out whole, with what is like them", sets),
        ("A third of all texts left out, mean of three", thirds),
    ] {
        let _ = write!(
            text,
            "\n{how}:\n\n| set | measured | before | after 200 labels | after 1,000 |\n|---|---|---|---|---|"
        );
        for (set, ranks) in ranks(out, &names, shipped) {
            let _ =
                write!(text, "\n| {set} | {} |", ranks.iter().map(|(measured, _)| measured).sum::<usize>());
            for at in 0..LABELS.len() {
                let each: Vec<f64> = ranks.iter().map(|(_, ranks)| ranks[at]).collect();
                let _ = write!(text, " {:.2} |", mean(&each));
            }
        }
        text.push('\n');
    }
    text
}

/// How many were measured, and the ranks after so many labels, of each part that a set is in.
type SetRanks<'a> = BTreeMap<&'a str, Vec<(usize, [f64; LABELS.len()])>>;

fn ranks<'a>(out: &[LeftOut], names: &BTreeSet<&'a str>, shipped: &Calibration) -> SetRanks<'a> {
    let mut all = SetRanks::new();
    for part in out {
        let texts = part.texts.iter().filter(|(_, (set, _))| names.contains(set.as_str()));
        let demands = foretell(texts.map(|(text, _)| text.as_str()), std::slice::from_ref(part), shipped);
        for &set in names {
            let mut problems = problems(part, set, &demands);
            if problems.is_empty() {
                continue;
            }
            SeededRng::new(601).shuffle(&mut problems);
            let measured = problems.split_off(LABELS[2].min(problems.len() * 3 / 5));
            let measured = &measured[..measured.len().min(MEASURED)];
            let ranks = LABELS.map(|labels| rank(&problems[..labels.min(problems.len())], measured));
            all.entry(set).or_default().push((measured.len(), ranks));
        }
    }
    all
}

fn names(part: &LeftOut) -> impl Iterator<Item = &str> {
    part.texts.values().map(|(set, _)| set.as_str())
}

/// The problems of a set.
fn problems(part: &LeftOut, set: &str, demands: &BTreeMap<&str, Arc<Demand>>) -> Vec<Problem> {
    let labels =
        || part.texts.iter().filter(|(_, (of, _))| of == set).map(|(text, (_, label))| (text, *label));
    let most = labels().map(|(_, label)| label).fold(f64::MIN, f64::max);
    let least = labels().map(|(_, label)| label).fold(f64::MAX, f64::min);
    let one = |(text, label): (&String, f64)| {
        Some((demands.get(text.as_str())?.clone(), (label - least) / (most - least).max(1e-9)))
    };
    labels().filter_map(one).collect()
}

fn rank(labelled: &[Problem], measured: &[Problem]) -> f64 {
    let mut store = BeliefStore::new(Settings::default());
    labelled.iter().for_each(|problem| store.observe(&judged(problem)));
    let hardness = |(demand, _): &Problem| {
        let mut demand = (**demand).clone();
        store.adjust(&mut demand);
        if labelled.is_empty() { demand.difficulty.get() } else { 1.0 - demand.models[ANY].done.get() }
    };
    let told: Vec<f64> = measured.iter().map(hardness).collect();
    spearman(&told, &measured.iter().map(|problem| problem.1).collect::<Vec<_>>())
}

fn judged((demand, hardness): &Problem) -> OutcomeSample {
    OutcomeSample {
        model: ANY.into(),
        class: demand.class,
        predicted: demand.models[ANY].clone(),
        request: demand.request.clone(),
        budget: Tokens::MAX,
        effort: 1.0,
        thinking: Tokens::ZERO,
        ended: ThinkingStopReason::Closed,
        solution: Tokens::ZERO,
        solution_ended: SolutionStopReason::Stop,
        success: Some(Chance::new(1.0 - hardness)),
        weight: 1.0,
        alarm: 1.0,
    }
}
