//! The series of the process, by the names that every Prometheus client gives them. They are read when they are asked for, and
//! only where there is `/proc`.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Error, Gauge};

use super::description::SeriesKind;
use super::factory::MetricFactory;

/// In how many parts the kernel divides a second for those who read `/proc`: the same on every machine that this is built for.
const TICKS_PER_SECOND: f64 = 100.0;

const CPU: (&str, &str) = ("process_cpu_seconds_total", "Processor time of the process");
const RESIDENT: (&str, &str) = ("process_resident_memory_bytes", "Memory of the process that is resident");
const VIRTUAL: (&str, &str) = ("process_virtual_memory_bytes", "Address space of the process");
const OPEN: (&str, &str) = ("process_open_fds", "Open file descriptors of the process");
const MOST: (&str, &str) = ("process_max_fds", "How many file descriptors may be open");
const THREADS: (&str, &str) = ("process_threads", "Threads of the process");
const START: (&str, &str) = ("process_start_time_seconds", "When the process began, in seconds since 1970");

/// Registers them, where there is something to read.
pub(super) fn register(make: &MetricFactory<'_>) -> Result<(), Error> {
    if ProcessReading::take().is_none() {
        return Ok(());
    }
    let gauges = [RESIDENT, VIRTUAL, OPEN, MOST, THREADS, START];
    let mut series = vec![(SeriesKind::Counter, CPU.0, CPU.1)];
    series.extend(gauges.map(|(name, help)| (SeriesKind::Gauge, name, help)));
    make.collector(ProcessCollector::new()?, &series)
}

/// Reads `/proc` at each scrape.
struct ProcessCollector {
    cpu: Counter,
    gauges: [Gauge; 6],
}

/// What `/proc` says at one moment.
#[derive(Debug, PartialEq)]
struct ProcessReading {
    cpu: f64,
    /// As in the collector: resident, virtual, open, most, threads, start.
    gauges: [f64; 6],
}

impl ProcessCollector {
    fn new() -> Result<ProcessCollector, Error> {
        let gauge = |(name, help): (&str, &str)| Gauge::new(name, help);
        let gauges =
            [gauge(RESIDENT)?, gauge(VIRTUAL)?, gauge(OPEN)?, gauge(MOST)?, gauge(THREADS)?, gauge(START)?];
        Ok(ProcessCollector { cpu: Counter::new(CPU.0, CPU.1)?, gauges })
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.cpu.desc().into_iter().chain(self.gauges.iter().flat_map(Collector::desc)).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        if let Some(reading) = ProcessReading::take() {
            // It only rises; two readers at once count no time twice.
            self.cpu.inc_by((reading.cpu - self.cpu.get()).max(0.0));
            self.gauges.iter().zip(reading.gauges).for_each(|(gauge, value)| gauge.set(value));
        }
        self.cpu.collect().into_iter().chain(self.gauges.iter().flat_map(Collector::collect)).collect()
    }
}

impl ProcessReading {
    fn take() -> Option<ProcessReading> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{file}")).ok();
        let open = fs::read_dir("/proc/self/fd").ok()?.count();
        let (stat, status, limits) = (read("self/stat")?, read("self/status")?, read("self/limits")?);
        ProcessReading::parse([&stat, &status, &limits, &read("stat")?], open)
    }

    fn parse([stat, status, limits, machine]: [&str; 4], open: usize) -> Option<ProcessReading> {
        // The program's name, in brackets, may have spaces and brackets of its own.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |text: &str| text.parse::<f64>().ok();
        let ticks = |field: usize| Some(number(fields.get(field)?)? / TICKS_PER_SECOND);
        let in_status = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            number(line.split_whitespace().next()?)
        };
        let most = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let most = most.split_whitespace().next().and_then(number).unwrap_or(f64::INFINITY);
        let booted = number(machine.lines().find_map(|line| line.strip_prefix("btime "))?)?;
        let open = f64::from(u32::try_from(open).ok()?);
        let (resident, whole) = (in_status("VmRSS:")? * 1024.0, in_status("VmSize:")? * 1024.0);
        let gauges = [resident, whole, open, most, in_status("Threads:")?, booted + ticks(19)?];
        Some(ProcessReading { cpu: ticks(11)? + ticks(12)?, gauges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_nothing() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 1000 9 9";
        let status = "Name:\tx\nVmSize:\t  2048 kB\nVmRSS:\t     1024 kB\nThreads:\t9\n";
        let limits = "Max cpu time  unlimited unlimited seconds\nMax open files  1024 4096 files\n";
        let reading =
            ProcessReading::parse([stat, status, limits, "cpu 1 2\nbtime 1700000000\n"], 12).unwrap();
        assert_eq!(reading.cpu.to_bits(), 2.0_f64.to_bits());
        let shown = [1_048_576.0, 2_097_152.0, 12.0, 1024.0, 9.0, 1_700_000_010.0].map(f64::to_bits);
        assert_eq!(reading.gauges.map(f64::to_bits), shown);
        assert_eq!(ProcessReading::parse(["", status, limits, ""], 0), None);
    }

    #[test]
    fn unlimited_files_are_without_end() {
        let limits = "Max open files            unlimited            unlimited            files\n";
        let stat = "1 (x) S 1 2 3 4 5 6 7 8 9 10 1 1 0 0 20 0 9 0 1 9 9";
        let status = "VmSize: 1 kB\nVmRSS: 1 kB\nThreads: 1\n";
        let reading =
            ProcessReading::parse([stat, status, limits, "cpu 1 2\nbtime 1700000000\n"], 1).unwrap();
        assert!(reading.gauges[3].is_infinite());
    }
}
