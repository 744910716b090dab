//! `rocksdb-deleteseq` and `readwhilewriting`: db_bench of RocksDB.
//!
//! Install: rocksdb-tools. A run is one db_bench on a database of its own in
//! the scratch folder, which is removed after it. Operations a second decide.
//! Invalid: an exit status other than 0, output without the figure.
//! deleteseq is one thread with a large footprint; readwhilewriting is
//! readers beside a writer, for contention on the program's own locks.

use super::output_metric;
use super::spec::WorkloadSpec;
use super::workload::{Workload, program};
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::THROUGHPUT;
use locklab_host::error::Error;

pub(super) struct RocksDb {
    benchmark: &'static str,
    keys: u64,
    threads: u64,
}

impl RocksDb {
    pub(super) fn new(spec: &WorkloadSpec) -> Self {
        if spec.name == "readwhilewriting" {
            Self {
                benchmark: "readwhilewriting",
                keys: spec.scaled(50_000, 100),
                threads: spec.threads.unwrap_or(4).into(),
            }
        } else {
            Self {
                benchmark: "deleteseq",
                keys: spec.scaled(200_000, 100),
                threads: spec.threads.unwrap_or(1).into(),
            }
        }
    }

    fn benchmarks(&self) -> String {
        match self.benchmark {
            "readwhilewriting" => "fillseq,readwhilewriting".into(),
            other => other.into(),
        }
    }
}

impl Workload for RocksDb {
    fn about(&self) -> String {
        format!(
            "db_bench --benchmarks={} --num={} --threads={}.",
            self.benchmarks(),
            self.keys,
            self.threads
        )
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        let mut setup = vec![("CPUs".into(), launcher.cpus_text())];
        if self.benchmark == "readwhilewriting" {
            setup.push((
                "Filling".into(),
                "fillseq before it is in the process's figures, not in the throughput".into(),
            ));
        }
        setup
    }

    fn is_one_process(&self) -> bool {
        true
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::higher(THROUGHPUT, "ops/s", Source::Output)]
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        for subject in subjects {
            program("db_bench", "rocksdb-tools", subject)?;
        }
        Ok(())
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let folder = launcher.fresh("rocksdb")?;
        let arguments = [
            format!("--benchmarks={}", self.benchmarks()),
            format!("--num={}", self.keys),
            format!("--threads={}", self.threads),
            format!("--db={}", folder.display()),
            "--seed=1".into(),
        ];
        let cpus = launcher.cpus.clone();
        let done = launcher.run(subject, "db_bench", &arguments, &cpus)?;
        done.check()?;
        // Removed before the next run, because databases are large.
        launcher.fresh("rocksdb")?;
        let pattern = format!(r"(?m)^{}\s*:.*?([0-9.]+) ops/sec", self.benchmark);
        let mut figures = done.figures();
        figures.insert(
            THROUGHPUT.into(),
            output_metric::find(THROUGHPUT, &pattern, &done.out)?,
        );
        Ok(figures)
    }
}
