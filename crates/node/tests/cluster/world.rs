//! Several nodes, each with a disk and two clocks of its own, and a network between them.

mod asking;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Config;
use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{Member, MemberId, ToClient};
use leasehold_node::payload::SnapshotImage;
use leasehold_node::{
    CALLS, ConnectionId, Fatal, Input, LogWrite, Membership, Node, Options, Output, PeerMessage, Place,
    SavedSnapshot, Setup, Start, founding_snapshot,
};

use crate::checks::Checks;
use crate::disk::Disk;
use crate::net::{Net, News};

pub(crate) use asking::{is_unavailable, is_unknown};

/// The first id of a member; those of the others follow.
const FIRST_ID: u64 = 101;
/// The loops wake this often.
pub(crate) const HOP: Duration = Duration::from_millis(5);
/// The connections of clients at other members have ids above this; what is left for them is for nobody.
const LOCAL: u64 = 1 << 63;

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) struct Process {
    pub(crate) node: Option<Node>,
    pub(crate) disk: Disk,
    pub(crate) clock: Reading,
    /// By how many millionths its clocks run fast.
    pub(crate) rate: i64,
    pub(crate) inbox: Vec<Input>,
    /// A snapshot that is wanted by another, whose bytes are not made yet.
    pub(crate) making: Option<Box<SnapshotImage>>,
    /// Nor are they while this is so.
    pub(crate) makes_nothing: bool,
    /// Its loop stands still.
    pub(crate) stalled: bool,
    pub(crate) fatal: Option<Fatal>,
    /// What it was last told of its members.
    pub(crate) members: Option<Arc<Membership>>,
    /// How often a snapshot has taken the place of its table.
    pub(crate) replaced: usize,
    starts: u64,
    checked: u64,
    told: usize,
}

pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) processes: Vec<Process>,
    pub(crate) net: Net,
    pub(crate) checks: Checks,
    /// What clients were sent and have not looked at, in order.
    pub(crate) sent: Vec<(usize, ConnectionId, ToClient)>,
    pub(crate) closed: Vec<(usize, ConnectionId)>,
    /// How long writes take, at least and at most.
    pub(crate) disk_delay: (u64, u64),
    pub(crate) hop: Duration,
    pub(crate) founders: usize,
    config: Config,
    pub(crate) options: Options,
    seed: u64,
    requests: u64,
    connections: u64,
}

pub(crate) fn member(process: usize) -> Member {
    let name = format!("n{}", process + 1);
    let address = format!("10.0.0.{}:7070", process + 1);
    Member::new(id_of(process), &name, &address).expect("a good name and address")
}

pub(crate) fn id_of(process: usize) -> MemberId {
    MemberId(FIRST_ID + process as u64)
}

pub(crate) fn process_of(id: MemberId) -> usize {
    usize::try_from(id.0 - FIRST_ID).expect("ids are small here")
}

impl World {
    pub(crate) fn founded(count: usize, options: Options, seed: u64) -> Self {
        let config = Config::default();
        let founding = founding_snapshot(&config, (0..count).map(member).collect());
        let mut world = Self {
            now: 0,
            processes: Vec::new(),
            net: Net::new(seed),
            checks: Checks::new(config.clone()),
            sent: Vec::new(),
            closed: Vec::new(),
            disk_delay: (0, 0),
            hop: HOP,
            founders: count,
            config,
            options,
            seed,
            requests: 0,
            connections: 0,
        };
        for _ in 0..count {
            world.add_process(Some(founding.clone()));
        }
        world
    }

    /// A cluster that serves.
    pub(crate) fn cluster(count: usize) -> Self {
        let mut world = Self::founded(count, Options::default(), 1);
        world.run_until(5_000, |world| world.leader().is_some());
        world
    }

    /// One process more, blank if there is no snapshot. It runs.
    pub(crate) fn add_process(&mut self, snapshot: Option<SavedSnapshot>) -> usize {
        let number = self.processes.len();
        let offset = 7_000_000_000 * (number as u64 + 1);
        self.processes.push(Process {
            node: None,
            disk: Disk::with(snapshot),
            // Clocks of machines do not begin together, nor do the two of one machine.
            clock: Reading { boot: 9_000_000_123 + offset, raw: 5_000_000_777 + offset / 2 },
            rate: 0,
            inbox: Vec::new(),
            making: None,
            makes_nothing: false,
            stalled: false,
            fatal: None,
            members: None,
            replaced: 0,
            starts: 0,
            checked: 0,
            told: 0,
        });
        self.start(number);
        number
    }

    pub(crate) fn node(&self, process: usize) -> &Node {
        self.processes[process].node.as_ref().expect("it runs")
    }

    pub(crate) fn is_up(&self, process: usize) -> bool {
        self.processes[process].node.is_some()
    }

    /// Who leads and serves. An old leader that does not know better yet is not meant.
    pub(crate) fn leader(&self) -> Option<usize> {
        let all = (0..self.processes.len()).filter(|process| self.is_up(*process));
        let mut serving = all.filter(|process| {
            let node = self.node(*process);
            !self.processes[*process].stalled && node.is_serving() && node.leader() == Some(id_of(*process))
        });
        let first = serving.next()?;
        serving.next().is_none().then_some(first)
    }

    pub(crate) fn the_leader(&self) -> usize {
        self.leader().expect("somebody leads")
    }

    /// Those that run and do not lead.
    pub(crate) fn followers(&self) -> Vec<usize> {
        let leader = self.the_leader();
        (0..self.processes.len()).filter(|process| *process != leader && self.is_up(*process)).collect()
    }

    /// The process begins with what its disk holds.
    pub(crate) fn start(&mut self, process: usize) {
        if let Err(fatal) = self.try_start(process) {
            panic!("process {process} does not begin: {fatal}");
        }
    }

    pub(crate) fn try_start(&mut self, process: usize) -> Result<(), Fatal> {
        let own = &mut self.processes[process];
        assert!(own.node.is_none(), "it runs already");
        own.starts += 1;
        own.inbox.clear();
        own.making = None;
        own.stalled = false;
        own.checked = own.disk.covered().max(1);
        own.told = self.checks.told_by(own.checked);
        let setup = Setup {
            place: Place::Served,
            member: id_of(process),
            start: Start::Blank,
            config: self.config.clone(),
            recovered: own.disk.recovered(),
            options: self.options.clone(),
            version: "test".into(),
            pid: 7,
            seed: self.seed ^ (process as u64) << 32 ^ own.starts,
        };
        own.node = Some(Node::start(setup, own.clock)?);
        Ok(())
    }

    /// The process is gone; the first `kept` of the batches under way had reached the disk.
    pub(crate) fn crash_keeping(&mut self, process: usize, kept: usize) {
        self.processes[process].disk.crash(kept);
        self.stop(process);
    }

    pub(crate) fn crash(&mut self, process: usize) {
        self.crash_keeping(process, 0);
    }

    fn stop(&mut self, process: usize) {
        if self.processes[process].node.take().is_some() {
            self.net.gone(process, self.processes.len(), self.now);
        }
    }

    /// Cuts a process off, both ways.
    pub(crate) fn isolate(&mut self, process: usize) {
        for other in (0..self.processes.len()).filter(|other| *other != process) {
            self.net.cut(process, other, self.now, (0, 0));
            self.net.cut(other, process, self.now, (0, 0));
        }
    }

    /// One turn of a loop, with everything that arrived.
    pub(crate) fn turn(&mut self, process: usize) {
        let own = &mut self.processes[process];
        let Some(node) = own.node.as_mut().filter(|_| !own.stalled) else { return };
        match node.turn(own.clock, std::mem::take(&mut own.inbox)) {
            Ok(outputs) => self.after_turn(process, outputs),
            Err(fatal) => {
                own.fatal = Some(fatal);
                own.disk.crash(0);
                self.stop(process);
            }
        }
    }

    fn after_turn(&mut self, process: usize, outputs: Vec<Output>) {
        let own = &mut self.processes[process];
        // What was installed was not applied entry by entry.
        for output in &outputs {
            if let Output::Write(LogWrite { install: Some(snapshot), .. }) = output {
                own.checked = snapshot.index;
                own.told = self.checks.told_by(own.checked);
            }
        }
        self.note_applied(process);
        for output in outputs {
            self.carry_out(process, output);
        }
        let own = &self.processes[process];
        if let Some(node) = &own.node {
            self.checks.compare(node, own.told);
        }
    }

    fn note_applied(&mut self, process: usize) {
        let applied = self.node(process).applied();
        let disk = &self.processes[process].disk;
        let changes = (self.processes[process].checked + 1..=applied)
            .any(|index| disk.entry(index).is_some_and(|entry| entry.kind != 0));
        while self.processes[process].checked < applied {
            let index = self.processes[process].checked + 1;
            self.processes[process].checked = index;
            let Some(entry) = self.processes[process].disk.entry(index).cloned() else {
                self.checks.violated(format!("entry {index} is applied and is not on the disk"));
                continue;
            };
            if self.checks.commit(&entry) {
                let voters = self.node(process).membership().members;
                let voters: Vec<usize> = voters
                    .iter()
                    .filter(|(_, role)| *role == leasehold_core::protocol::MemberRole::Voter)
                    .map(|(member, _)| process_of(member.id))
                    .collect();
                let have = voters.iter().filter(|voter| self.processes[**voter].disk.has(&entry)).count();
                // What comes right behind a change of the members may have been decided by those before it.
                if !changes && !self.checks.is_changing() && have <= voters.len() / 2 {
                    self.checks.violated(format!("entry {index} is on {have} disks of {}", voters.len()));
                }
            }
        }
    }

    fn carry_out(&mut self, process: usize, output: Output) {
        match output {
            Output::Write(write) => {
                for entry in &write.entries {
                    self.checks.proposed(entry, self.now);
                }
                let (least, most) = self.disk_delay;
                let takes = least + self.net.random.below(most - least + 1);
                self.processes[process].disk.take(write, self.now + takes);
            }
            Output::Send { connection, .. } | Output::Close(connection) if connection.0 >= LOCAL => {}
            Output::Send { connection, message } => {
                self.checks.sent(&message);
                self.sent.push((process, connection, message));
            }
            Output::Changed(changes) => {
                let told = self.processes[process].told;
                self.processes[process].told = self.checks.changed(told, &changes);
            }
            Output::SaveSnapshot(image) => self.processes[process].disk.save(image),
            Output::MakeSnapshot(image) => self.processes[process].making = Some(image),
            Output::SendPeer { to, message } => {
                if let PeerMessage::Raft(message) = &message {
                    self.checks.raft(message);
                    let knows = message.get_snapshot().get_metadata().get_conf_state();
                    let known =
                        [&knows.voters, &knows.learners, &knows.voters_outgoing, &knows.learners_next];
                    if message.get_snapshot().get_metadata().index > 0
                        && !known.iter().any(|ids| ids.contains(&to.0))
                    {
                        self.checks
                            .violated(format!("member {} is sent a snapshot that does not know it", to.0));
                    }
                }
                let to = process_of(to);
                if to >= self.processes.len() {
                    // Nobody is there.
                    return;
                }
                if let Some(news) = self.net.send(process, to, message, self.now) {
                    self.hear(process, news);
                }
            }
            Output::Close(CALLS) => self.checks.violated("the connection of all calls was closed".into()),
            Output::Close(connection) => self.closed.push((process, connection)),
            Output::Members(members) => self.processes[process].members = Some(members),
            Output::Replaced => self.processes[process].replaced += 1,
        }
    }

    fn hear(&mut self, process: usize, news: News) {
        if !self.is_up(process) {
            // Nobody listens there: whoever sent it hears that the connection is refused.
            if let News::Arrived { from, message } = news
                && !matches!(message, PeerMessage::Raft(_))
            {
                self.hear(from, News::Lost { peer: process });
            }
            return;
        }
        self.processes[process].inbox.push(match news {
            News::Arrived { from, message } => Input::Peer { from: id_of(from), message },
            News::Lost { peer } => Input::PeerLost(id_of(peer)),
            News::SnapshotSent { to, arrived } => Input::SnapshotSent { to: id_of(to), arrived },
        });
    }

    /// Time passes; every loop that does not stand still takes its turns.
    pub(crate) fn hop(&mut self) {
        let nanos = u64::try_from(self.hop.as_nanos()).expect("a hop is short");
        self.now += nanos;
        for own in &mut self.processes {
            let more = i64::try_from(nanos).expect("a hop is short") * own.rate / 1_000_000;
            own.clock = own.clock.plus(Duration::from_nanos(nanos.saturating_add_signed(more)));
        }
        for (process, news) in self.net.due(self.now) {
            self.hear(process, news);
        }
        for process in 0..self.processes.len() {
            self.turn(process);
            while self.sync(process) {
                self.turn(process);
            }
        }
    }

    /// What can be synced is; the process hears of it in its next turn.
    fn sync(&mut self, process: usize) -> bool {
        let own = &mut self.processes[process];
        if own.stalled || own.node.is_none() {
            return false;
        }
        let before = own.inbox.len();
        while let Some(number) = own.disk.sync(self.now) {
            own.inbox.push(Input::Written { number });
        }
        own.inbox.extend(own.disk.saved().map(|index| Input::SnapshotSaved { index }));
        let made = own.making.take_if(|_| !own.makes_nothing);
        own.inbox.extend(made.map(|image| Input::SnapshotMade(image.save())));
        own.inbox.len() > before
    }

    pub(crate) fn run(&mut self, length: u64) {
        let end = self.now + length * 1_000_000;
        while self.now < end {
            self.hop();
        }
    }

    /// Runs until something is so, and says after how many milliseconds.
    #[track_caller]
    pub(crate) fn run_until(&mut self, most: u64, mut is_so: impl FnMut(&mut Self) -> bool) -> u64 {
        let begin = self.now;
        while !is_so(self) {
            assert!(self.now < begin + most * 1_000_000, "it did not come to it in {most} ms");
            self.hop();
        }
        (self.now - begin) / 1_000_000
    }

    /// How everybody stands, in words.
    pub(crate) fn standing(&self) -> String {
        let stands = |(number, own): (usize, &Process)| {
            let Some(node) = &own.node else { return format!("\n{number} is down: {:?}", own.fatal) };
            let members = node.membership().members;
            let members: Vec<_> =
                members.iter().map(|(member, role)| format!("{} {role:?}", process_of(member.id))).collect();
            let (leader, serves) = (node.leader().map(process_of), node.is_serving());
            format!("\n{number} follows {leader:?}, serves: {serves}, at {}, of {members:?}", node.applied())
        };
        self.processes.iter().enumerate().map(stands).collect()
    }

    /// Nothing was violated.
    #[track_caller]
    pub(crate) fn is_sound(&self) {
        assert!(self.checks.violations.is_empty(), "{:#?}", self.checks.violations);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let has_bug = Bug::ALL.iter().any(|bug| planted(*bug));
        if !has_bug && !std::thread::panicking() {
            self.is_sound();
        }
    }
}
