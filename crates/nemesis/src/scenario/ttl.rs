//! A dead holder's lease ends, however often leaders die: never with a fresh ttl for each of them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use leasehold::{SessionOptions, Store};
use rustix::process::Pid;

use crate::cleanup::{self, Undo};
use crate::figures;
use crate::history::{At, Event, Line, Now};
use crate::report::{Figure, Report};
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// Kills the leader again and again, and starts it at once.
#[derive(Debug)]
struct Killer {
    every: Duration,
    next: At,
    kills: usize,
}

impl Killer {
    fn new(every: Duration) -> Self {
        Self { every, next: At::now(), kills: 0 }
    }

    /// Lets time pass until it is enough, or until `end`, and kills whenever it is due.
    fn pass(&mut self, stage: &mut Stage, end: At, is_enough: impl Fn() -> bool) -> Result<()> {
        while At::now() < end && !is_enough() {
            if At::now() >= self.next {
                let leader = stage.cluster.leader(HEALING)?;
                stage.fault(&format!("kill -9 of n{}, which leads, and a start", leader + 1));
                stage.cluster.nodes[leader].kill()?;
                stage.cluster.nodes[leader].start()?;
                self.next = At::now().plus(self.every);
                self.kills += 1;
            }
            stage.pass(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Holders die one after the other, each with a waiter behind it, and the leader is killed and started again every half ttl, from the
/// beginning to the end.
pub(super) fn failover(options: &Options) -> Result<Report> {
    let ttl = options.pick(Duration::from_secs(10), Duration::from_secs(2));
    // The load only shows when there are no grants; it must not decide how log time goes on, so its ttl is the longer one.
    let shape = Shape { contenders: 2, names: 1, ttl: ttl * 2, keeper_ttl: ttl * 2, ..Shape::default() };
    let mut stage = Stage::new("ttl-failover", options, options.nodes, shape)?;
    stage.begin()?;
    let began = At::now();
    let (mut lateness, mut rounds) = (Vec::new(), Vec::new());
    let mut killer = Killer::new(ttl / 2);
    let ttls = u32::try_from(options.rounds(20, 3))?;
    while At::now().since(began) < ttl * ttls {
        let (from, to) = round(&mut stage, &mut killer, ttl, rounds.len())?;
        stage.progress.say(&format!("the waiter was served {:?} after the death", to.since(from)));
        rounds.push((from, to));
    }
    let lines = stage.heal()?;
    let (mut violations, mut without) = (Vec::new(), Vec::new());
    for (from, to) in &rounds {
        let (took, outages) = (to.since(*from), outages(&lines, *from, *to));
        lateness.push(took.saturating_sub(ttl));
        without.push(outages);
        if took > ttl * 2 + outages {
            violations.push(format!("the waiter was served {took:?} after the death of a holder with a ttl of {ttl:?}, and there were no grants for {outages:?} of that"));
        }
    }
    stage.judge("a dead holder's lease ends within two ttls and the outages", rounds.len(), violations);
    stage.figure(Figure::main("kills of leaders", killer.kills.to_string()));
    stage.figure(Figure::main("served later than the ttl by", figures::Lengths::of(lateness).show()));
    stage.figure(Figure::main("outages until then", figures::Lengths::of(without).show()));
    Ok(stage.finished(&lines))
}

/// A holder dies with a waiter behind it. Gives when it died and when the waiter was served.
fn round(stage: &mut Stage, killer: &mut Killer, ttl: Duration, number: usize) -> Result<(At, At)> {
    let resource = format!("dead/{number}");
    let mut hold = stage.cluster.command();
    hold.args(["hold", &resource, "--ttl", &format!("{}ms", ttl.as_millis())]);
    hold.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut holder = hold.spawn().context("a holder does not start")?;
    let undo = Undo::Kill(Pid::from_child(&holder));
    cleanup::note(undo.clone());
    let mut line = String::new();
    BufReader::new(holder.stdout.take().context("a holder has an output")?).read_line(&mut line)?;

    let url = stage.cluster.url();
    let waiter = stage.runtime().spawn({
        let resource = resource.clone();
        async move {
            let store = Store::connect(&url).await?;
            let session = store.session_with(&SessionOptions::new().ttl(ttl * 2)).await?;
            let lease = session.acquire(&resource).wait(Duration::from_secs(600)).await?;
            let served = At::now();
            lease.release().await?;
            store.close().await;
            anyhow::Ok(served)
        }
    });
    // The waiter must stand in the queue, and the holder have renewed.
    killer.pass(stage, At::now().plus(ttl / 2), || false)?;
    holder.kill().context("a holder cannot be killed")?;
    holder.wait().context("a holder cannot be waited for")?;
    cleanup::done(&undo);
    let died = At::now();
    let _ = line;
    killer.pass(stage, died.plus(ttl * 20), || waiter.is_finished())?;
    let served = stage.block_on(async { tokio::time::timeout(HEALING, waiter).await });
    let served =
        served.with_context(|| format!("the waiter for {resource} was not served within 20 ttls"))???;
    Ok((died, served))
}

/// How long there were no grants in this time, counting only what is longer than a busy machine takes.
fn outages(lines: &[Line<'_>], from: At, to: At) -> Duration {
    let grants = lines.iter().filter(|line| matches!(line.event, Event::Granted { .. }));
    let times: Vec<At> = grants.map(|line| line.at).filter(|at| (from..=to).contains(at)).collect();
    let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
    gaps.filter(|gap| *gap > Duration::from_millis(100)).sum()
}
