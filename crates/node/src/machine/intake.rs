//! Taking in: requests are checked for what does not need the log, and wait for the next batch.

use leasehold_core::answer::Renewed;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{Failure, Plain, Request, RequestId, Response, ToClient};
use leasehold_core::table::{FIRST_VERSION, NUMBERS_CALLS, needs, stands_in};
use leasehold_core::{Command, Op, Refusal, Reply, Sequence, SessionCommand, SessionId, SessionKind};

use super::{Early, Input, Node, Output};
use crate::batch::{MAX_QUEUED, Origin};
use crate::holds::Asks;
use crate::reads::{Read, What};
use crate::routes::{CALLS, ConnectionId};
use crate::stats::{Operation, Outcome};

impl Node {
    pub(super) fn take_in(&mut self, out: &mut Vec<Output>, input: Input) {
        match input {
            Input::Request { connection, id, .. } if self.draining => {
                respond(out, connection, id, unavailable("the service is stopping"));
            }
            Input::Request { connection, id, .. } if self.is_blank() => {
                // Others know a leader, and this node does not even know them.
                respond(out, connection, id, unavailable("this node is not part of a cluster yet"));
                if connection != CALLS {
                    out.push(Output::Close(connection));
                }
            }
            Input::Request { connection, id, request: Request::Renew { session, number, seen } }
                if self.takes_renewal(connection, session) =>
            {
                let origin = Origin::Client { connection, id };
                self.queue.push(origin, Command::Renew { session, number, seen });
            }
            Input::Request { connection, id, request: Request::Command(command) }
                if self.takes_command(connection, &command) =>
            {
                self.queue.push(Origin::Client { connection, id }, Command::Session(command));
            }
            Input::Request { connection, id, request } => {
                // Nothing overtakes what waits already, also where it waits for a quorum that a leader does not find any more.
                let now = self.early.is_empty() && (self.is_serving() || !self.reads.has_unheard(connection));
                if (now && self.is_serving() && self.handover.is_none())
                    || self.may_overtake(connection, &request)
                {
                    self.take_request(out, connection, id, request);
                } else if now && self.can_forward() {
                    self.forward(out, Early { connection, id, request, since: self.now });
                } else if self.early.len() < MAX_QUEUED {
                    // Before the first entry of this leadership is applied, nothing can be judged.
                    self.early.push_back(Early { connection, id, request, since: self.now });
                } else {
                    respond(out, connection, id, unavailable("the service is starting"));
                }
            }
            Input::Abandoned { connection, id } => {
                self.early.retain(|early| (early.connection, early.id) != (connection, id));
                self.reads.forget(connection, Some(id));
                self.abandon_forwarded(out, connection, id);
                let cancel = self.holds.abandon((connection, id));
                self.push_own(cancel);
            }
            Input::HungUp(connection) => self.note_hung_up(out, connection),
            Input::Disconnected(connection) => {
                self.routes.disconnect(connection);
                self.disconnect_forwarded(out, connection);
                // A call that is kept waiting would find nobody to tell, and leave a wait that nobody waits for.
                self.early.retain(|early| early.connection != connection);
                self.reads.forget(connection, None);
                let cancels = self.holds.abandon_all(connection);
                self.push_own(cancels);
            }
            Input::Written { number } => self.written(out, number),
            Input::SnapshotSaved { index } => {
                let alone = self.is_alone() && self.raft.store().conf_state().learners.is_empty();
                let copied = self.copied();
                self.raft.mut_store().compact(index, alone, copied);
                self.since_snapshot.saving = false;
            }
            Input::SnapshotMade(made) => self.offer_snapshot(made),
            Input::Peer { from, message } => self.take_peer(out, from, message),
            Input::PeerLost(peer) => self.lose_peer(out, peer),
            Input::SnapshotSent { to, arrived } => {
                use raft::SnapshotStatus::{Failure, Finish};
                self.raft.report_snapshot(to.0, if arrived { Finish } else { Failure });
                if arrived {
                    self.raft.mut_store().forget_snapshot();
                }
            }
            Input::PeerKnows { member, version } => {
                self.known_versions.insert(member, version);
            }
            Input::Space { enough } => self.note_space(enough),
            Input::Drain => self.leave(out),
        }
    }

    /// Whether a renewal is one like nearly all: of a session that is attached here, and nothing stands in its way. Whatever is said to any
    /// other is said by [`place_request`](Self::place_request).
    fn takes_renewal(&self, connection: ConnectionId, session: SessionId) -> bool {
        self.takes_all()
            && !self.queue.is_full_for_renewals()
            && self.routes.is_proven(connection, session)
            && self.table.session_kind(session) == Some(SessionKind::Streamed)
            && !planted(Bug::RenewalAckedFromMemory)
    }

    /// The same for a command of a stream.
    fn takes_command(&self, connection: ConnectionId, command: &SessionCommand) -> bool {
        self.takes_all()
            && !self.full
            && !self.queue.is_full_for_others()
            && needs(&command.op) <= self.roster.version.max(FIRST_VERSION)
            && self.routes.is_proven(connection, command.session)
            && self.table.session_kind(command.session).is_some()
    }

    /// Whether nothing that arrives has to wait.
    fn takes_all(&self) -> bool {
        self.early.is_empty() && self.handover.is_none() && self.is_serving()
    }

    /// Whether this may go before what waits for the end of a handover: a renewal has its own number and no place in any order.
    fn may_overtake(&self, connection: ConnectionId, request: &Request) -> bool {
        let not_asked = self.handover.as_ref().is_some_and(|handover| !handover.asked);
        let renews = match request {
            Request::Renew { session, .. } => self.routes.is_proven(connection, *session),
            Request::Plain { plain: Plain::Renew, .. } => true,
            _ => false,
        };
        not_asked && renews && self.is_serving()
    }

    /// Takes in nothing more. Callers that are kept waiting are answered once their waits are withdrawn.
    pub(super) fn drain(&mut self, out: &mut Vec<Output>) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        for Early { connection, id, .. } in std::mem::take(&mut self.early) {
            respond(out, connection, id, unavailable("the service is stopping"));
        }
        self.withdraw_forwarded(out);
        for ((session, number), (connection, id)) in self.holds.let_go_numbered() {
            let response = match self.table.call_again(session, number) {
                Some(reply) => Response::Reply(reply),
                None => Response::Failed(Failure::OutcomeUnknown),
            };
            respond(out, connection, id, response);
        }
        let cancels = self.holds.withdraw_all();
        self.push_own(cancels);
    }

    /// Puts commands of the node itself into the queue. There are never more of them than callers that are kept waiting.
    pub(super) fn push_own(&mut self, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            self.queue.push(Origin::Node, command);
        }
    }

    /// Takes in what arrived before this node could judge it.
    pub(super) fn take_early(&mut self, out: &mut Vec<Output>) {
        if self.is_serving() && self.handover.is_none() {
            for Early { connection, id, request, .. } in std::mem::take(&mut self.early) {
                self.take_request(out, connection, id, request);
            }
        } else if self.can_forward() {
            for early in std::mem::take(&mut self.early) {
                self.forward(out, early);
            }
        }
    }

    fn take_request(
        &mut self,
        out: &mut Vec<Output>,
        connection: ConnectionId,
        id: RequestId,
        request: Request,
    ) {
        if self.has_not_heard_of(&request) {
            if self.reads.is_full_of_unheard() {
                let response = unavailable("too many requests name sessions that this node has not heard of");
                return self.answer_now(out, (connection, id), operation(&request), response);
            }
            let what = What::Unheard(Box::new(request));
            return self.reads.push(Read { connection, id, what });
        }
        self.take_confirmed(out, connection, id, request);
    }

    /// Takes a request in, or answers it, now that what it names is known, or known not to be there.
    fn take_confirmed(
        &mut self,
        out: &mut Vec<Output>,
        connection: ConnectionId,
        id: RequestId,
        request: Request,
    ) {
        let operation = operation(&request);
        if let Err(response) = self.place_request(connection, id, request) {
            self.answer_now(out, (connection, id), operation, response);
        }
    }

    fn answer_now(
        &mut self,
        out: &mut Vec<Output>,
        (connection, id): (ConnectionId, RequestId),
        operation: Option<Operation>,
        response: Response,
    ) {
        if let Some(operation) = operation {
            self.stats.count(operation, Outcome::of_response(&response));
        }
        respond(out, connection, id, response);
    }

    /// What waited for a quorum is judged by whoever leads: here, or where it is sent on to.
    pub(super) fn take_unheard(
        &mut self,
        out: &mut Vec<Output>,
        (connection, id): (ConnectionId, RequestId),
        request: Request,
    ) {
        if self.draining {
            respond(out, connection, id, unavailable("the service is stopping"));
        } else if self.is_serving() && self.handover.is_none() {
            self.take_confirmed(out, connection, id, request);
        } else {
            self.early.push_back(Early { connection, id, request, since: self.now });
        }
    }

    /// Puts a request where it belongs, or answers it at once.
    fn place_request(
        &mut self,
        connection: ConnectionId,
        id: RequestId,
        request: Request,
    ) -> Result<(), Response> {
        let mut held = None;
        let command = match in_use(request, self.roster.version)? {
            Request::Read(query) => {
                if self.reads.is_full() {
                    return Err(unavailable("too many reads are under way"));
                }
                self.reads.push(Read { connection, id, what: What::Query(query) });
                return Ok(());
            }
            Request::Open(open) => Command::Open(open),
            Request::Attach { attach, nonce } => {
                self.known(attach.session)?;
                if self.table.nonce(attach.session) != Some(nonce) {
                    return Err(Response::Failed(Failure::NotYourSession { session: attach.session }));
                }
                self.routes.prove(connection, attach.session);
                Command::Attach(attach)
            }
            Request::Renew { session, number, seen } => {
                self.own(connection, session)?;
                // The table counts the renewals of a plain session: a number from outside could leave it none to go on with.
                if self.table.session_kind(session) == Some(SessionKind::Plain) {
                    return Err(Response::Reply(Reply::Refused(Refusal::WrongSessionKind)));
                }
                let renew = Command::Renew { session, number, seen };
                if planted(Bug::RenewalAckedFromMemory)
                    && let Some((_, after)) = self.table.stream_position(session)
                {
                    self.queue.push(Origin::Node, renew);
                    let renewed = Renewed { number, after, holdings: None };
                    return Err(Response::Reply(Reply::Renewed(renewed)));
                }
                renew
            }
            Request::Command(command) => {
                self.own(connection, command.session)?;
                Command::Session(command)
            }
            Request::Operator(operator) => Command::Operator(operator),
            Request::Cluster(command) => return self.cluster_command((connection, id), command),
            Request::Plain { session, nonce, plain } => {
                self.known(session)?;
                if self.table.nonce(session) != Some(nonce) {
                    return Err(Response::Failed(Failure::NotYourSession { session }));
                }
                match plain {
                    Plain::Renew => Command::RenewPlain { session },
                    Plain::Command { op, hold, numbered } => {
                        let asks = if numbered.is_some() { Asks::Numbered } else { Asks::Once };
                        held = (hold && matches!(op, Op::Acquire(_))).then_some(asks);
                        let sequence = numbered.map_or(Sequence::Plain, Sequence::Numbered);
                        Command::Session(SessionCommand { session, sequence, op })
                    }
                }
            }
            Request::Watch(_) | Request::StopWatch { .. } => {
                let why = "watches are not kept by the node".into();
                return Err(Response::Failed(Failure::BadRequest { why }));
            }
        };
        let command = match command {
            // Its number is used up all the same: else nothing that follows in its stream, a release say, could be taken in.
            Command::Session(SessionCommand {
                session,
                sequence: sequence @ Sequence::Streamed { .. },
                op,
            }) if self.full && makes_something(&op) => Command::NoRoom { session, sequence },
            other => other,
        };
        if self.full && takes_room(&command) {
            return Err(unavailable(
                "the disk is full; only what renews, ends or frees something is taken in",
            ));
        }
        if self.queue.is_full_for(&command) {
            return Err(unavailable("too many commands wait for the disk"));
        }
        if held.is_some_and(|asks| !self.holds.ask((connection, id), asks)) {
            let why = format!("request {} is still kept waiting; give this one another id", id.0);
            return Err(Response::Failed(Failure::BadRequest { why }));
        }
        self.queue.push(Origin::Client { connection, id }, command);
        Ok(())
    }

    /// Whether a request names a session newer than all that this node has heard of.
    fn has_not_heard_of(&self, request: &Request) -> bool {
        let session = match request {
            Request::Attach { attach, .. } => attach.session,
            Request::Renew { session, .. } | Request::Plain { session, .. } => *session,
            Request::Command(command) => command.session,
            _ => return false,
        };
        session.get() > self.table.newest()
    }

    /// Refuses what names a session that is over: that never changes again.
    fn known(&self, session: SessionId) -> Result<(), Response> {
        if self.table.nonce(session).is_some() {
            return Ok(());
        }
        if session.get() <= self.table.newest() {
            return Err(Response::Reply(Reply::Refused(Refusal::SessionEnded { session })));
        }
        Err(Response::Failed(Failure::NotYourSession { session }))
    }

    fn own(&self, connection: ConnectionId, session: SessionId) -> Result<(), Response> {
        self.known(session)?;
        if self.routes.is_proven(connection, session) {
            return Ok(());
        }
        Err(Response::Failed(Failure::NotYourSession { session }))
    }
}

/// Lets in what may stand in a log of this version. A command of a stream that may not gets something that every release refuses in its
/// place, because its number must be used up; all else is refused here.
pub(super) fn in_use(request: Request, version: u32) -> Result<Request, Response> {
    let version = version.max(FIRST_VERSION);
    match request {
        Request::Command(mut command) if needs(&command.op) > version => match command.sequence {
            Sequence::Streamed { number, .. } => {
                command.op = stands_in(number);
                Ok(Request::Command(command))
            }
            Sequence::Plain | Sequence::Numbered(_) => {
                Err(Response::Reply(Reply::Refused(Refusal::NotYetInUse)))
            }
        },
        Request::Command(SessionCommand { sequence: Sequence::Numbered(_), .. })
        | Request::Plain { plain: Plain::Command { numbered: Some(_), .. }, .. }
            if NUMBERS_CALLS > version =>
        {
            Err(Response::Reply(Reply::Refused(Refusal::NotYetInUse)))
        }
        Request::Plain { plain: Plain::Command { ref op, .. }, .. } if needs(op) > version => {
            Err(Response::Reply(Reply::Refused(Refusal::NotYetInUse)))
        }
        other => Ok(other),
    }
}

/// Whether a command makes something that needs room on the disk for longer than itself.
const fn takes_room(command: &Command) -> bool {
    match command {
        Command::Open(_) => true,
        Command::Session(command) => makes_something(&command.op),
        _ => false,
    }
}

const fn makes_something(op: &Op) -> bool {
    matches!(
        op,
        Op::Acquire(_)
            | Op::SetValue { .. }
            | Op::WriteRegister { .. }
            | Op::Offer(_)
            | Op::Accept { .. }
            | Op::SetDraining { .. }
    )
}

/// What a request that was not placed is counted as.
fn operation(request: &Request) -> Option<Operation> {
    Some(match request {
        Request::Open(_) => Operation::Open,
        Request::Attach { .. } => Operation::Attach,
        Request::Renew { .. } | Request::Plain { plain: Plain::Renew, .. } => Operation::Renew,
        Request::Command(command) => Operation::of_op(&command.op),
        Request::Operator(operator) => Operation::of_operator(operator),
        Request::Read(_) => Operation::Read,
        Request::Plain { plain: Plain::Command { op, .. }, .. } => Operation::of_op(op),
        Request::Watch(_) | Request::StopWatch { .. } | Request::Cluster(_) => return None,
    })
}

pub(super) fn unavailable(why: &str) -> Response {
    Response::Failed(Failure::Unavailable { why: why.into() })
}

pub(super) fn respond(out: &mut Vec<Output>, connection: ConnectionId, id: RequestId, response: Response) {
    out.push(Output::Send { connection, message: ToClient::Response { id, response } });
}
