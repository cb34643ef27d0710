//! The client's side of the measurement on tokio: the same code drives both contenders.
//!
//! Latency is counted from handing a frame to the session's queue until its answer comes out at the other
//! end; the time a frame waits for its turn of the pacer is not in it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::Streaming;

use super::clock::{cpu_ns, now_ns};
use super::messages::{AnswerFrame, OpFrame, mark_frame, work_frame};
use super::plan::Work;
use super::report::Figures;

/// A contender that has not caught up this long after the last frame was due has failed, not been slow.
const CATCH_UP: Duration = Duration::from_secs(20);

/// The finest turn of a pacer: what falls due within it is sent together. It is tokio's own resolution.
pub(crate) const TURN: Duration = Duration::from_millis(1);

/// One open session of either contender.
pub(crate) struct Session {
    pub id: u32,
    pub ops: mpsc::UnboundedSender<OpFrame>,
    pub answers: Answers,
}

/// Where a session's answers come out.
pub(crate) enum Answers {
    Queue(mpsc::UnboundedReceiver<AnswerFrame>),
    Stream(Box<Streaming<AnswerFrame>>),
}

impl Answers {
    /// The next frame of answers; may be dropped while waiting without losing one.
    async fn next(&mut self) -> anyhow::Result<AnswerFrame> {
        let frame = match self {
            Answers::Queue(queue) => queue.recv().await,
            Answers::Stream(stream) => stream.message().await?,
        };
        frame.ok_or_else(|| anyhow::anyhow!("the server ended the stream"))
    }
}

impl Session {
    async fn exchange(&mut self, frame: OpFrame) -> anyhow::Result<AnswerFrame> {
        self.ops.send(frame)?;
        self.answers.next().await
    }

    /// The server's processor time so far.
    async fn server_cpu_ns(&mut self) -> anyhow::Result<u64> {
        let frame = self.exchange(mark_frame(self.id)).await?;
        let answer = frame.answers.first().ok_or_else(|| anyhow::anyhow!("a mark was not answered"))?;
        Ok(answer.token)
    }
}

/// Does the work and returns what it cost.
pub(crate) async fn measure(mut sessions: Vec<Session>, work: Work) -> anyhow::Result<Figures> {
    if let Work::PingPong { round_trips } = work {
        // Warm-up: allocations, connection set-up and the scheduler's idea of us settle.
        ping_pong(&mut sessions[0], round_trips / 10 + 1).await?;
    }
    let server_before = sessions[0].server_cpu_ns().await?;
    let (client_before, start) = (cpu_ns(), now_ns());
    let (latencies, ops) = match work {
        Work::PingPong { round_trips } => {
            (ping_pong(&mut sessions[0], round_trips).await?, u64::from(round_trips))
        }
        Work::Paced { ops_per_second, ops_per_frame, length_ms, .. } => {
            let pace = Pace::new(ops_per_second, ops_per_frame, sessions.len(), length_ms);
            let in_all = sessions.len() as f64;
            let mut tasks = JoinSet::new();
            for (i, session) in sessions.drain(..).enumerate() {
                let pace = pace.starting_at(i as f64 / in_all);
                tasks.spawn(timeout(CATCH_UP + pace.length, paced(session, pace)));
            }
            let mut latencies = Vec::new();
            while let Some(done) = tasks.join_next().await {
                let (session, mut of_one) = done???;
                latencies.append(&mut of_one);
                sessions.push(session);
            }
            let ops = latencies.len() as u64 * u64::from(ops_per_frame);
            (latencies, ops)
        }
    };
    let (wall, client) = (now_ns() - start, cpu_ns() - client_before);
    let server = sessions[0].server_cpu_ns().await? - server_before;
    Ok(Figures::new(latencies, ops, wall, server, client))
}

async fn ping_pong(session: &mut Session, round_trips: u32) -> anyhow::Result<Vec<u64>> {
    let mut latencies = Vec::new();
    for number in 1..=u64::from(round_trips) {
        let sent = now_ns();
        let answer = session.exchange(work_frame(session.id, number, 1)).await?;
        latencies.push(now_ns() - sent);
        check(&answer, number)?;
    }
    Ok(latencies)
}

/// An answer that is not the one expected means that the contender is broken, and its figures worthless.
pub(crate) fn check(frame: &AnswerFrame, first: u64) -> anyhow::Result<()> {
    let got = frame.answers.first().map(|a| a.number);
    anyhow::ensure!(got == Some(first), "answer {got:?} came where {first} was due");
    Ok(())
}

/// What one session has to send by when.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub ops_per_frame: u32,
    pub length: Duration,
    frames_per_second: f64,
    phase: f64,
}

impl Pace {
    pub(crate) fn new(ops_per_second: u32, ops_per_frame: u32, sessions: usize, length_ms: u32) -> Pace {
        let share = f64::from(ops_per_second) / f64::from(ops_per_frame) / sessions as f64;
        Pace {
            ops_per_frame,
            length: Duration::from_millis(u64::from(length_ms)),
            frames_per_second: share,
            phase: 0.0,
        }
    }

    /// The same, with this part of the first frame already due, so that sessions do not all send at one moment.
    pub(crate) fn starting_at(self, phase: f64) -> Pace {
        Pace { phase, ..self }
    }

    /// How long to wait after `elapsed` until more than `sent` frames are due; never less than one turn.
    pub(crate) fn until_next(&self, sent: u64, elapsed: Duration) -> Duration {
        let at = Duration::from_secs_f64((sent as f64 + 1.0 - self.phase) / self.frames_per_second);
        at.saturating_sub(elapsed).max(TURN)
    }

    /// Frames due `elapsed` after the start; no more become due after the length is over.
    pub(crate) fn due(&self, elapsed: Duration) -> u64 {
        (elapsed.min(self.length).as_secs_f64() * self.frames_per_second + self.phase) as u64
    }
}

async fn paced(mut session: Session, pace: Pace) -> anyhow::Result<(Session, Vec<u64>)> {
    let mut latencies = Vec::new();
    let mut in_flight = VecDeque::new();
    let mut sent = 0_u64;
    let start = now_ns();
    let elapsed = || Duration::from_nanos(now_ns() - start);
    let mut turn = std::pin::pin!(sleep(pace.until_next(0, Duration::ZERO)));
    let all = pace.due(pace.length);
    while (latencies.len() as u64) < all {
        tokio::select! {
            () = &mut turn, if sent < all => {
                let due = pace.due(elapsed());
                while sent < due {
                    in_flight.push_back(now_ns());
                    session.ops.send(work_frame(session.id, sent, pace.ops_per_frame))?;
                    sent += 1;
                }
                turn.set(sleep(pace.until_next(sent, elapsed())));
            }
            answer = session.answers.next() => {
                check(&answer?, latencies.len() as u64)?;
                let since = in_flight.pop_front().ok_or_else(|| anyhow::anyhow!("an answer too many"))?;
                latencies.push(now_ns() - since);
            }
        }
    }
    Ok((session, latencies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_together_owe_the_rate_asked_for() {
        let pace = Pace::new(100_000, 1, 16, 2_000);
        assert_eq!(pace.due(Duration::from_secs(1)), 6_250);
        assert_eq!(pace.due(Duration::from_secs(9)), 12_500);
        assert_eq!(pace.until_next(250, Duration::ZERO), Duration::from_micros(40_160));
    }

    #[test]
    fn an_answer_out_of_order_is_noticed() {
        let frame = super::super::messages::answer(work_frame(0, 4, 1));
        assert!(check(&frame, 4).is_ok());
        assert!(check(&frame, 5).is_err());
    }
}
