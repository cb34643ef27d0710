//! What every scenario has: a cluster, clients at work on it, their history, and an end at which all is judged.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use crate::check::{self, Rules, Verdict};
use crate::cleanup::{self, Cleanup};
use crate::cluster::Cluster;
use crate::figures;
use crate::history::{At, Event, Line, Recorder};
use crate::progress::Progress;
use crate::random::Random;
use crate::replicas;
use crate::report::{Figure, Report};
use crate::shell;
use crate::workload::{Shape, Workload};

/// How long a cluster may take to begin to serve.
pub const FOUNDING: Duration = Duration::from_secs(20);
/// How long everybody may take to be served after the healing, if no ttl is longer.
pub const HEALING: Duration = Duration::from_secs(10);

/// How long sessions that nobody closed may take to expire, and nodes to come to one entry.
const SETTLING: Duration = Duration::from_secs(60);

/// What decides a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program to serve with.
    pub program: PathBuf,
    /// Where histories and logs go.
    pub out: PathBuf,
    /// Decides faults and requests.
    pub seed: u64,
    /// Fewer faults and shorter lengths.
    pub quick: bool,
    /// How many nodes a cluster has, where the scenario does not decide it.
    pub nodes: usize,
    /// How often a scenario breaks something, if not as often as it says itself.
    pub rounds: Option<usize>,
}

impl Options {
    /// One of two, as the run is quick or not.
    pub fn pick<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// How often something is broken: as asked for, or as the run is quick or not.
    pub fn rounds(&self, whole: usize, quick: usize) -> usize {
        self.rounds.unwrap_or_else(|| self.pick(whole, quick))
    }
}

/// A scenario at work.
#[derive(Debug)]
pub struct Stage {
    /// The cluster.
    pub cluster: Cluster,
    /// What happens.
    pub recorder: Recorder,
    /// What is told of it.
    pub progress: Progress,
    /// Decides.
    pub random: Random,
    /// What clients do.
    pub shape: Shape,
    /// What decides the run.
    pub options: Options,
    /// The directory of the run.
    pub home: PathBuf,
    workload: Option<Workload>,
    runtime: Runtime,
    figures: Vec<Figure>,
    verdicts: Vec<Verdict>,
    /// Last: everything else has let go of what is removed here.
    _cleanup: Cleanup,
}

impl Stage {
    /// A cluster of so many nodes that does not run yet.
    ///
    /// # Errors
    /// When the machine does not let us.
    pub fn new(name: &'static str, options: &Options, nodes: usize, shape: Shape) -> Result<Self> {
        shell::check_machine()?;
        let cleanup = Cleanup::begin().context("signals cannot be caught")?;
        let home = options.out.join(format!("{name}-{}", options.seed));
        // What an earlier run with this seed left is of no use.
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).with_context(|| format!("{} cannot be made", home.display()))?;
        let home = home.canonicalize().with_context(|| format!("{} cannot be found", home.display()))?;
        let recorder = Recorder::create(&home.join("history.jsonl"))?;
        let progress = Progress::new(name);
        progress.say(&format!("seed {}, history {}", options.seed, recorder.path().display()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Self {
            cluster: Cluster::new(&options.program, &home, nodes)?,
            recorder,
            progress,
            random: Random::new(options.seed),
            shape,
            options: options.clone(),
            home,
            workload: None,
            runtime,
            figures: Vec::new(),
            verdicts: Vec::new(),
            _cleanup: cleanup,
        })
    }

    /// Starts every node and all clients, and waits until everybody was served once.
    ///
    /// # Errors
    /// When the cluster does not begin to serve.
    pub fn begin(&mut self) -> Result<()> {
        self.cluster.start()?;
        let leader = self.cluster.leader(FOUNDING)?;
        self.progress.say(&format!("{} leads", self.cluster.nodes[leader].name));
        self.work()
    }

    /// Starts the clients.
    ///
    /// # Errors
    /// When they are not all served in time.
    pub fn work(&mut self) -> Result<()> {
        let url = self.cluster.url();
        let workload = Workload::start(&self.runtime, &url, &self.shape, &self.recorder, &mut self.random)?;
        workload.settle(FOUNDING)?;
        self.workload = Some(workload);
        Ok(())
    }

    /// Something is broken from now on.
    pub fn fault(&self, text: &str) -> At {
        self.progress.say(text);
        self.recorder.record(Event::Fault { text: text.to_owned().into() })
    }

    /// It is mended.
    pub fn healed(&self, text: &str) -> At {
        self.progress.say(text);
        self.recorder.record(Event::Healed { text: text.to_owned().into() })
    }

    /// Waits.
    pub fn pass(&self, length: Duration) {
        std::thread::sleep(length);
    }

    /// A figure of this scenario.
    pub fn figure(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Something that this scenario alone can judge: good unless there are violations.
    pub fn judge(&mut self, name: &'static str, compared: usize, violations: Vec<String>) {
        self.verdicts.push(Verdict { name, compared, violations });
    }

    /// Checks a part of the history by rules of its own; its verdicts count as all others do.
    pub fn judge_part(&mut self, lines: &[Line<'_>], rules: Rules) {
        self.verdicts.extend(check::all(lines, rules));
    }

    /// Runs something of the clients' kind to its end.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The runtime of the clients.
    pub const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Everything is whole again: waits until the cluster is, lets clients work for a while and finish.
    ///
    /// # Errors
    /// When a node does not start, there is no leader, or the history cannot be written.
    pub fn heal(&mut self) -> Result<Vec<Line<'static>>> {
        self.cluster.net.mend_all()?;
        self.cluster.start()?;
        if let Some(workload) = &self.workload {
            workload.heal();
        }
        self.progress.say("all is healed");
        self.recorder.record(Event::AllHealed);
        self.cluster.leader(HEALING)?;
        self.pass(self.expiry());
        let late = self.workload.take().map_or(0, |workload| workload.finish(&self.runtime, HEALING));
        let late = (late > 0).then(|| format!("{late} clients did not finish within {HEALING:?}"));
        self.judge("every call ends", 1, late.into_iter().collect());
        let deaths = self.cluster.deaths();
        self.judge("no node ends by itself", self.cluster.nodes.len(), deaths);
        let found = replicas::compare(&self.cluster, SETTLING, &self.home);
        if found.orders > 0 {
            self.figure(Figure::told("nodes whose backup differs in bytes", found.orders.to_string()));
        }
        self.judge("all nodes have the same state", found.compared, found.violations);
        self.recorder.lines()
    }

    /// Checks everything, by the rules of a run whose clocks are right.
    pub fn finished(self, lines: &[Line<'_>]) -> Report {
        let rules = self.rules();
        self.judged(lines, rules)
    }

    /// Checks everything.
    pub fn judged(mut self, lines: &[Line<'_>], rules: Rules) -> Report {
        let mut figures = vec![
            Figure::told("grants", count(lines, |event| matches!(event, Event::Granted { .. }))),
            Figure::told(
                "renewals confirmed",
                count(lines, |event| matches!(event, Event::Confirmed { .. })),
            ),
            Figure::told("looks", count(lines, |event| matches!(event, Event::Looked { .. }))),
            Figure::told("not granted", count(lines, |event| matches!(event, Event::Refused { .. }))),
            Figure::told("outcome unknown", count(lines, |event| matches!(event, Event::Unknown { .. }))),
            Figure::told("leases lost", count(lines, |event| matches!(event, Event::Lost { .. }))),
            Figure::told("faults", count(lines, |event| matches!(event, Event::Fault { .. }))),
            Figure::told("no grants around a fault", figures::gaps(lines).show()),
        ];
        figures.append(&mut self.figures);
        let mut verdicts = check::all(lines, rules);
        verdicts.append(&mut self.verdicts);
        Report { history: self.recorder.path().to_owned(), figures, verdicts }
    }

    /// Within this time what a client that was cut off for longer than its ttl had held has gone to others, and it is back.
    fn expiry(&self) -> Duration {
        self.shape.ttl * 2 + Duration::from_secs(1)
    }

    /// The rules of a run whose clocks are right.
    pub fn rules(&self) -> Rules {
        let healing = Some(HEALING.max(self.expiry()));
        Rules { honoured: true, exclusion: true, healing }
    }

    /// A file of this run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for node in &mut self.cluster.nodes {
            let _ = node.cont();
            let _ = node.kill();
        }
        // Mounts must be gone before their directories are removed.
        cleanup::undo_all();
        // Logs and the history stay; what the nodes wrote is of no use without them, and large.
        for node in &self.cluster.nodes {
            let _ = std::fs::remove_dir_all(self.home.join(&node.name));
        }
    }
}

fn count(lines: &[Line<'_>], kind: impl Fn(&Event<'_>) -> bool) -> String {
    figures::count(lines, kind).to_string()
}
