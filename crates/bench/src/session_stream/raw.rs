//! The floor: the same frames over blocking sockets, a thread for each connection, no runtime.
//!
//! What this costs, the kernel costs; no carrier on the same socket can be cheaper by much.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use prost::Message;

use super::clock::{cpu_ns, now_ns};
use super::codec;
use super::endpoint::{Listener, Stream, connect};
use super::load::{Pace, TURN, check};
use super::messages::{AnswerFrame, OpFrame, answer, mark_frame, work_frame};
use super::plan::{Sharing, Transport, Work};
use super::report::Figures;

/// Accepts and serves until the process is ended.
pub(crate) fn serve(listener: &Listener) -> anyhow::Result<()> {
    loop {
        let connection = Connection::new(listener.accept()?);
        thread::spawn(move || connection.serve());
    }
}

/// Does the work and returns what it cost.
pub(crate) fn measure(
    transport: Transport,
    address: &str,
    sharing: Sharing,
    work: Work,
) -> anyhow::Result<Figures> {
    let mut first = Connection::new(connect(transport, address)?);
    if let Work::PingPong { round_trips } = work {
        first.ping_pong(round_trips / 10 + 1)?;
    }
    let server_before = first.server_cpu_ns()?;
    let (client_before, start) = (cpu_ns(), now_ns());
    let (latencies, ops) = match work {
        Work::PingPong { round_trips } => (first.ping_pong(round_trips)?, u64::from(round_trips)),
        Work::Paced { ops_per_second, ops_per_frame, sessions, length_ms } => {
            let ids: Vec<u32> = (0..sessions).collect();
            let pace = Pace::new(ops_per_second, ops_per_frame, ids.len(), length_ms);
            let per_connection = if sharing == Sharing::One { ids.len() } else { 1 };
            let mut threads = Vec::new();
            for ids in ids.chunks(per_connection) {
                let stream = connect(transport, address)?;
                let ids = ids.to_vec();
                threads.push(thread::spawn(move || paced(stream, &ids, pace)));
            }
            let mut latencies = Vec::new();
            for thread in threads {
                latencies.append(&mut thread.join().expect("a paced thread returns its errors")?);
            }
            let ops = latencies.len() as u64 * u64::from(ops_per_frame);
            (latencies, ops)
        }
    };
    let (wall, client) = (now_ns() - start, cpu_ns() - client_before);
    let server = first.server_cpu_ns()? - server_before;
    Ok(Figures::new(latencies, ops, wall, server, client))
}

/// A socket with its two buffers.
struct Connection {
    stream: Stream,
    read: BytesMut,
    written: BytesMut,
    chunk: Vec<u8>,
}

impl Connection {
    fn new(stream: Stream) -> Connection {
        Connection { stream, read: BytesMut::new(), written: BytesMut::new(), chunk: vec![0; 64 * 1024] }
    }

    fn serve(mut self) -> anyhow::Result<()> {
        loop {
            // All that one read brought is answered with one write.
            let mut frame = Some(self.receive::<OpFrame>()?);
            while let Some(ops) = frame {
                codec::put(&answer(ops), &mut self.written);
                frame = codec::take(&mut self.read)?;
            }
            self.flush()?;
        }
    }

    fn receive<M: Message + Default>(&mut self) -> anyhow::Result<M> {
        loop {
            if let Some(message) = codec::take(&mut self.read)? {
                return Ok(message);
            }
            let n = self.stream.read(&mut self.chunk)?;
            anyhow::ensure!(n > 0, "the peer ended the stream");
            self.read.extend_from_slice(&self.chunk[..n]);
        }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.written)?;
        self.written.clear();
        Ok(())
    }

    fn exchange(&mut self, frame: &OpFrame) -> anyhow::Result<AnswerFrame> {
        codec::put(frame, &mut self.written);
        self.flush()?;
        self.receive()
    }

    fn server_cpu_ns(&mut self) -> anyhow::Result<u64> {
        let frame = self.exchange(&mark_frame(0))?;
        let answer = frame.answers.first().ok_or_else(|| anyhow::anyhow!("a mark was not answered"))?;
        Ok(answer.token)
    }

    fn ping_pong(&mut self, round_trips: u32) -> anyhow::Result<Vec<u64>> {
        let mut latencies = Vec::new();
        for number in 1..=u64::from(round_trips) {
            let sent = now_ns();
            let answer = self.exchange(&work_frame(0, number, 1))?;
            latencies.push(now_ns() - sent);
            check(&answer, number)?;
        }
        Ok(latencies)
    }
}

/// Sends for the sessions of one connection on one thread and reads their answers on another.
fn paced(stream: Stream, ids: &[u32], pace: Pace) -> anyhow::Result<Vec<u64>> {
    let mut reader = Connection::new(stream.try_clone()?);
    let mut writer = Connection::new(stream);
    let all = pace.due(pace.length);
    let total = all * ids.len() as u64;
    let (sent_at, in_flight) = mpsc::channel();
    let reading = thread::spawn(move || -> anyhow::Result<Vec<u64>> {
        let mut latencies = Vec::new();
        let mut next = BTreeMap::new();
        while (latencies.len() as u64) < total {
            let frame: AnswerFrame = reader.receive()?;
            let due = next.entry(frame.session).or_insert(0);
            check(&frame, *due)?;
            *due += 1;
            let since: u64 = in_flight.recv()?;
            latencies.push(now_ns() - since);
        }
        Ok(latencies)
    });
    let start = now_ns();
    let mut sent = 0;
    while sent < all {
        let due = pace.due(Duration::from_nanos(now_ns() - start));
        for number in sent..due {
            for &id in ids {
                sent_at.send(now_ns())?;
                codec::put(&work_frame(id, number, pace.ops_per_frame), &mut writer.written);
            }
        }
        sent = due;
        writer.flush()?;
        thread::sleep(TURN);
    }
    reading.join().expect("a reading thread returns its errors")
}
