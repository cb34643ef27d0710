//! Delivering: replies, items and answers go to the connections that wait for them.

use std::collections::BTreeMap;

use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{Failure, Query, ReadAnswer, Response, ToClient, TokenCheck};
use leasehold_core::{Answer, Applied, Command, Item, ItemKind, Reply, Revision, SessionId};

use super::held::cancelled_wait;
use super::intake::respond;
use super::{Node, Output};
use crate::batch::Origin;
use crate::reads::{self, MAX_PAGES_PER_TURN, What};
use crate::routes::ConnectionId;
use crate::stats::{Operation, Outcome};

impl Node {
    /// Hands out what applying an entry gave: items, then replies with everything unseen behind each attach, then the answers
    /// to renewals, which name items and go behind all of them.
    pub(super) fn deliver(
        &mut self,
        out: &mut Vec<Output>,
        term: u64,
        index: u64,
        commands: &[Command],
        applied: Applied,
    ) {
        let origins = self.origins(out, term, index);
        let before_items = out.len();
        self.publish(out, index, &applied);
        let asked = commands.iter().zip(&applied.replies).zip(&origins);
        let asked = asked.filter(|(_, origin)| !matches!(origin, Origin::Node)).map(|(asked, _)| asked);
        self.stats.count_entry(asked, &applied.items);
        // Of several attaches of a session in one entry the last one counts; its position.
        let mut attached: BTreeMap<SessionId, usize> = BTreeMap::new();
        for (position, command) in commands.iter().enumerate() {
            let Some(Origin::Client { connection, .. }) = origins.get(position) else { continue };
            match (command, &applied.replies[position]) {
                (Command::Attach(attach), Reply::Attached { .. }) => {
                    self.routes.attach(*connection, attach.session);
                    attached.insert(attach.session, position);
                }
                (Command::Open(_), Reply::Opened(opened)) => self.routes.prove(*connection, opened.session),
                _ => {}
            }
        }
        self.push_items(out, applied.items, &attached);
        let mut renewals = 0;
        // Waits that a cancel of this entry has ended, and whether the node itself gave them up.
        let mut cancelled = Vec::new();
        let mut replies = applied.replies;
        for (position, reply) in replies.iter_mut().enumerate() {
            if matches!(reply, Reply::Renewed(_)) {
                renewals += usize::from(matches!(origins.get(position), Some(Origin::Client { .. })));
                continue;
            }
            let reply = std::mem::replace(reply, Reply::Done);
            if let (Some(wait), Reply::Plain { answer: Answer::Cancelled, .. }) =
                (cancelled_wait(&commands[position]), &reply)
            {
                cancelled.push((wait, matches!(origins.get(position), Some(Origin::Node))));
            }
            let Some(Origin::Client { connection, id }) = origins.get(position) else { continue };
            match reply {
                // The answer to an applied command is an item; saying so twice would only cost.
                Reply::Applied { .. } => {}
                reply => self.answer(out, (*connection, *id), &commands[position], reply),
            }
            if let Command::Attach(attach) = &commands[position]
                && attached.get(&attach.session) == Some(&position)
            {
                let items: Vec<Item> = self.table.unseen(attach.session).cloned().collect();
                send_items(out, *connection, attach.session, items);
            }
        }
        self.answer_renewals(out, commands, &origins, (replies, renewals), before_items);
        self.answer_held(out, applied.events, cancelled);
    }

    /// Answers to renewals, of which there are so many.
    fn answer_renewals(
        &mut self,
        out: &mut Vec<Output>,
        commands: &[Command],
        origins: &[Origin],
        (replies, renewals): (Vec<Reply>, usize),
        before_items: usize,
    ) {
        self.hints.count(renewals, self.now);
        if renewals == 0 {
            return;
        }
        // Each with a wish, if they are a bunch.
        out.reserve(if self.hints.is_many() { 2 * renewals } else { renewals });
        for ((reply, origin), command) in replies.into_iter().zip(origins).zip(commands) {
            let (Reply::Renewed(_), Origin::Client { connection, id }) = (&reply, *origin) else { continue };
            respond(out, connection, id, Response::Reply(reply));
            if planted(Bug::RenewalOvertakesEvents) {
                out[before_items..].rotate_right(1);
            }
            // Behind the answer: a client that waits for it hears no wishes.
            out.extend(self.hint(command).map(|message| Output::Send { connection, message }));
        }
    }

    /// The wish for the next renewal of a session whose renewal was one of too many at once. Callers of plain sessions keep their own time.
    fn hint(&self, command: &Command) -> Option<ToClient> {
        let Command::Renew { session, number, .. } = command else { return None };
        if !self.hints.is_many() {
            return None;
        }
        let (sessions, _) = self.table.sizes();
        let ttl = self.table.session_ttl(*session)?;
        let length = self.hints.wish(sessions, *session, *number, ttl)?;
        Some(ToClient::Hint { session: *session, length })
    }

    /// Who asked for the commands of this entry. What this node had proposed for the same place in another term is lost.
    fn origins(&mut self, out: &mut Vec<Output>, term: u64, index: u64) -> Vec<Origin> {
        while let Some(front) = self.proposed.front() {
            if front.index > index {
                break;
            }
            let proposed = self.proposed.pop_front().expect("the front was just looked at");
            if proposed.index == index && proposed.term == term {
                let waited = self.now.since(proposed.since);
                self.commits.add(waited.greater(), self.now);
                let micros = waited.smaller().as_micros();
                self.stats.commit_micros.add(u64::try_from(micros).unwrap_or(u64::MAX));
                return proposed.origins;
            }
            for origin in proposed.origins {
                if let Origin::Client { connection, id } = origin {
                    self.holds.forget((connection, id));
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
        mut items: Vec<(SessionId, Item)>,
        attached: &BTreeMap<SessionId, usize>,
    ) {
        out.reserve(items.len());
        // In the order of sessions, and of each in the order in which they arose.
        items.sort_by_key(|(session, _)| *session);
        let mut items = items.into_iter().peekable();
        while let Some((session, first)) = items.next() {
            let mut of_session = vec![first];
            while let Some((_, item)) = items.next_if(|(next, _)| *next == session) {
                of_session.push(item);
            }
            if attached.contains_key(&session) {
                continue;
            }
            if let Some(connection) = self.routes.attached(session) {
                send_items(out, connection, session, of_session);
            }
        }
    }

    pub(super) fn answer_reads(&mut self, out: &mut Vec<Output>) {
        if !self.reads.has_due(self.applied) {
            return;
        }
        let (mut pages, mut later) = (0, Vec::new());
        let now = self.leadership.as_ref().map(|leadership| leadership.clock.stamp());
        let now = now.unwrap_or_default().max(self.table.last_at());
        for read in self.reads.due(self.applied) {
            pages += usize::from(read.is_listing());
            if read.is_listing() && pages > MAX_PAGES_PER_TURN {
                later.push(read);
                continue;
            }
            let query = match read.what {
                What::Query(query) => query,
                What::Unheard(request) => {
                    self.take_unheard(out, (read.connection, read.id), *request);
                    continue;
                }
            };
            let answer = reads::answer(&self.table, &query, now);
            let answer = answer.unwrap_or_else(|| match query {
                Query::Cluster => ReadAnswer::Cluster(self.cluster_view()),
                _ => ReadAnswer::Status(self.status()),
            });
            self.stats.count(Operation::Read, Outcome::Done);
            let ahead = matches!(answer, ReadAnswer::Check(TokenCheck::Ahead { .. }));
            self.stats.ahead_checks += u64::from(ahead);
            let revision = Revision::new(self.applied);
            respond(out, read.connection, read.id, Response::Read { revision, answer });
        }
        self.reads.postpone(later);
    }
}

/// Bytes of items in one message at most, roughly: a message must fit a frame, and a session that was away may have thousands
/// of items with large grants among them.
const MAX_ITEM_BYTES: usize = 1024 * 1024;

fn send_items(out: &mut Vec<Output>, connection: ConnectionId, session: SessionId, items: Vec<Item>) {
    let mut bytes = items.iter().map(weight).sum::<usize>();
    if bytes <= MAX_ITEM_BYTES && !items.is_empty() {
        return out.push(Output::Send { connection, message: ToClient::Items { session, items } });
    }
    let mut message = Vec::new();
    bytes = 0;
    for item in items {
        let size = weight(&item);
        if bytes + size > MAX_ITEM_BYTES && !message.is_empty() {
            let items = std::mem::take(&mut message);
            out.push(Output::Send { connection, message: ToClient::Items { session, items } });
            bytes = 0;
        }
        bytes += size;
        message.push(item);
    }
    if !message.is_empty() {
        out.push(Output::Send { connection, message: ToClient::Items { session, items: message } });
    }
}

/// Bytes of an item at most: one name, a label or two and the reason of a revoke, and with grants a name for each.
fn weight(item: &Item) -> usize {
    const PLAIN: usize = 2 * 1024;
    const GRANT: usize = 64;
    let grants = match &item.kind {
        ItemKind::Answer { answer: Answer::Granted(grants) | Answer::AlreadyGranted(grants), .. }
        | ItemKind::WaitGranted { grants, .. } => grants.as_slice(),
        _ => &[],
    };
    PLAIN + grants.iter().map(|grant| GRANT + grant.resource.as_str().len()).sum::<usize>()
}
