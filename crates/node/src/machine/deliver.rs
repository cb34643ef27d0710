//! Delivering: replies, items and answers go to the connections that wait for them.

use std::collections::BTreeMap;

use leasehold_core::protocol::{Failure, ReadAnswer, Response, ToClient};
use leasehold_core::{Applied, Command, Event, Item, Reply, SessionId};

use super::intake::respond;
use super::{Node, Output};
use crate::batch::Origin;
use crate::reads;
use crate::routes::ConnectionId;

impl Node {
    /// Hands out what applying an entry gave. Items of an entry go before its replies: a renewal's answer is sent behind
    /// everything that arose before it.
    pub(super) fn deliver(
        &mut self,
        out: &mut Vec<Output>,
        term: u64,
        index: u64,
        commands: &[Command],
        applied: Applied,
    ) {
        let origins = self.origins(out, term, index);
        let mut attached: Vec<(ConnectionId, SessionId)> = Vec::new();
        for (position, command) in commands.iter().enumerate() {
            let Some(Origin::Client { connection, .. }) = origins.get(position) else { continue };
            match (command, &applied.replies[position]) {
                (Command::Attach(attach), Reply::Attached { .. }) => {
                    self.routes.attach(*connection, attach.session);
                    attached.retain(|(_, session)| *session != attach.session);
                    attached.push((*connection, attach.session));
                }
                (Command::Open(_), Reply::Opened(opened)) => self.routes.prove(*connection, opened.session),
                _ => {}
            }
        }
        self.push_items(out, applied.items, &attached);
        for (position, reply) in applied.replies.into_iter().enumerate() {
            // The answer to an applied command is an item; saying so twice would only cost.
            if let Some(Origin::Client { connection, id }) = origins.get(position)
                && !matches!(reply, Reply::Applied { .. })
            {
                respond(out, *connection, *id, Response::Reply(reply));
            }
        }
        for (connection, session) in attached {
            let items: Vec<Item> = self.table.unseen(session).cloned().collect();
            send_items(out, connection, session, items);
        }
        for event in &applied.events {
            if let Event::SessionEnded { session } = event {
                self.routes.end_session(*session);
            }
        }
    }

    /// Who asked for the commands of this entry. What this node had proposed for the same place in another term is lost.
    fn origins(&mut self, out: &mut Vec<Output>, term: u64, index: u64) -> Vec<Origin> {
        while let Some(front) = self.proposed.front() {
            if front.index > index {
                break;
            }
            let proposed = self.proposed.pop_front().expect("the front was just looked at");
            if proposed.index == index && proposed.term == term {
                return proposed.origins;
            }
            for origin in proposed.origins {
                if let Origin::Client { connection, id } = origin {
                    respond(out, connection, id, Response::Failed(Failure::OutcomeUnknown));
                }
            }
        }
        Vec::new()
    }

    /// Pushes items to the attached connections. Those that attach in this very entry get everything unseen afterwards.
    fn push_items(
        &self,
        out: &mut Vec<Output>,
        items: Vec<(SessionId, Item)>,
        attached: &[(ConnectionId, SessionId)],
    ) {
        let mut by_session: BTreeMap<SessionId, Vec<Item>> = BTreeMap::new();
        for (session, item) in items {
            by_session.entry(session).or_default().push(item);
        }
        for (session, items) in by_session {
            if attached.iter().any(|(_, new)| *new == session) {
                continue;
            }
            if let Some(connection) = self.routes.attached(session) {
                send_items(out, connection, session, items);
            }
        }
    }

    pub(super) fn answer_reads(&mut self, out: &mut Vec<Output>) {
        for read in self.reads.due(self.applied) {
            let answer = reads::answer(&self.table, &read.query);
            let answer = answer.unwrap_or_else(|| ReadAnswer::Status(self.status()));
            respond(out, read.connection, read.id, Response::Read(answer));
        }
    }
}

/// Items in one message at most: a session that was away may have thousands with large grants among them.
const ITEMS_PER_MESSAGE: usize = 512;

fn send_items(out: &mut Vec<Output>, connection: ConnectionId, session: SessionId, mut items: Vec<Item>) {
    while items.len() > ITEMS_PER_MESSAGE {
        let rest = items.split_off(ITEMS_PER_MESSAGE);
        out.push(Output::Send { connection, message: ToClient::Items { session, items } });
        items = rest;
    }
    if !items.is_empty() {
        out.push(Output::Send { connection, message: ToClient::Items { session, items } });
    }
}
