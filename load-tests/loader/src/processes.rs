//! What a gateway's processes have taken so far: processor time, memory, descriptors. Linux alone.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// A second has so many ticks on every Linux that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;
const KIBIBYTE: u64 = 1024;

/// What a process and all below it have taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Seconds of processor time so far.
    pub processor_seconds: f64,
    /// Bytes in memory now.
    pub resident: u64,
    /// The most bytes that were in memory, by the largest process.
    pub resident_max: u64,
    /// Descriptors now.
    pub descriptors: u64,
    /// Threads now.
    pub threads: u64,
}

/// What these processes and all below them have taken; those that are gone count nothing.
pub fn usage(roots: &[u32]) -> Usage {
    let mut sum = Usage::default();
    for process in family(roots) {
        let folder = Path::new("/proc").join(process.to_string());
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        sum.processor_seconds += processor_seconds(&folder);
        sum.resident += kibibytes(&status, "VmRSS:") * KIBIBYTE;
        sum.resident_max = sum.resident_max.max(kibibytes(&status, "VmHWM:") * KIBIBYTE);
        sum.threads += kibibytes(&status, "Threads:");
        sum.descriptors += fs::read_dir(folder.join("fd")).map_or(0, |entries| entries.count() as u64);
    }
    sum
}

/// The processes themselves and their children's children.
fn family(roots: &[u32]) -> Vec<u32> {
    let mut family = roots.to_vec();
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse().ok());
            family.extend(children.filter(|child| !roots.contains(child)));
        }
    }
    family
}

fn processor_seconds(folder: &Path) -> f64 {
    let text = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    // The name before may have spaces and brackets in it. After it, the twelfth and thirteenth field.
    let fields = text.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}

fn kibibytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_memory_and_descriptors() {
        let usage = usage(&[std::process::id()]);
        assert!(usage.resident > KIBIBYTE && usage.resident_max >= usage.resident / 2, "{usage:?}");
        assert!(usage.descriptors > 2 && usage.threads > 0);
    }
}
