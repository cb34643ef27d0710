//! What came out of an entry, as lines for people.

use leasehold_core::answer::{Applied, Reply};
use leasehold_core::{
    Answer, Command, Ending, Event, Grant, HeldLease, Holdings, ItemKind, Mode, Refusal, ResourceName,
    SessionId, Successor, Token, Unavailable, WaitEnding, Waited,
};

use super::world::World;

impl World {
    /// Everything worth seeing of an entry: replies that are no mere acknowledgement, items pushed, endings.
    pub(crate) fn render(&self, who: &[String], commands: &[Command], applied: &Applied) -> Vec<String> {
        let mut lines = Vec::new();
        for ((who, command), reply) in who.iter().zip(commands).zip(&applied.replies) {
            lines.extend(self.reply(who, command, reply));
        }
        for (session, item) in &applied.items {
            lines.push(format!("{}.{} {}", self.name(*session), item.number, self.item(&item.kind)));
        }
        lines.extend(applied.events.iter().filter_map(|event| self.event(event)));
        lines
    }

    fn reply(&self, who: &str, command: &Command, reply: &Reply) -> Option<String> {
        Some(match reply {
            Reply::Opened(opened) if opened.repeated => {
                format!("{who} was open already, session {}, ttl {}", short(opened.session), opened.ttl)
            }
            Reply::Opened(opened) => {
                format!("{who} opened, session {}, ttl {}", short(opened.session), opened.ttl)
            }
            Reply::Attached { last_command, last_item } => {
                format!("{who} attached, last command {last_command}, last item {last_item}")
            }
            Reply::Renewed(renewed) => {
                let held = renewed.holdings.as_ref().map(holdings);
                format!(
                    "{who} renewed by {} after item {}{}",
                    renewed.number,
                    renewed.after,
                    held.unwrap_or_default()
                )
            }
            Reply::StaleRenewal { number, highest } => {
                format!("{who} renewal {number} is stale, {highest} was applied")
            }
            // The answer follows as an item, or is gone with its session.
            Reply::Applied { .. } => return None,
            Reply::Repeated { number } => format!("{who} command {number} was applied before"),
            Reply::Plain { number, answer, renewal } => {
                format!("{who} answer to {number} counted from renewal {renewal}: {}", self.answer(answer))
            }
            Reply::PlainRepeated { number, answer, renewal, held } => {
                let held: Vec<String> = held.iter().map(|t| token(*t)).collect();
                let held = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
                let answer = self.answer(answer);
                format!(
                    "{who} again, answer to {number} counted from renewal {renewal}: {answer}; still held: {held}"
                )
            }
            Reply::NumberSettled { call, settled } => {
                format!("{who} call {call} is settled, as all below {settled}: nothing done, unknown before")
            }
            Reply::PlainWaitEnded { number, why } => {
                format!("{who} waits no more by {number}: {}", wait_ending(*why))
            }
            Reply::Closed => format!("{who} closed"),
            Reply::Asked { token: t, holder } => format!("asked {holder:?}, which holds {}", token(*t)),
            Reply::Revoked { held_back } => format!("revoked, held back for {held_back}"),
            Reply::KindChanged => "kind changed".to_owned(),
            Reply::AlarmCleared => "alarm cleared".to_owned(),
            Reply::Done if matches!(command, Command::Tidy(due) if due.is_empty()) => {
                "nothing is due".to_owned()
            }
            Reply::Done => return None,
            Reply::Refused(refusal) => format!("{who} refused: {}", self.refusal(refusal)),
        })
    }

    pub(crate) fn item(&self, kind: &ItemKind) -> String {
        match kind {
            ItemKind::Answer { command, answer } => format!("answer to {command}: {}", self.answer(answer)),
            ItemKind::WaitGranted { command, grants } => format!("wait {command} granted: {}", all(grants)),
            ItemKind::WaitEnded { command, why } => format!("wait {command} ended: {}", wait_ending(*why)),
            ItemKind::LeaseEnded { resource, token: t, how } => {
                format!("lease ended: {resource} {}, {}", token(*t), self.ending(how))
            }
            ItemKind::ReleaseRequested { resource, token: t, successor, by } => {
                let to = successor
                    .as_ref()
                    .map_or_else(String::new, |to| format!(" in favour of {}", self.successor(to)));
                format!("asked by {by:?} to release {resource} {}{to}", token(*t))
            }
            ItemKind::Offered { resource, token: t, from, length } => {
                format!("offered {resource} {} by {from:?} for {length}", token(*t))
            }
            ItemKind::OfferEnded { resource, token: t } => format!("offer ended: {resource} {}", token(*t)),
            ItemKind::OfferAccepted { resource, token: t, by, label } => {
                format!("offer of {resource} {} accepted by {} {label:?}", token(*t), self.name(*by))
            }
        }
    }

    fn answer(&self, answer: &Answer) -> String {
        match answer {
            Answer::Granted(grants) => format!("granted {}", all(grants)),
            Answer::Queued { ahead } => format!("queued behind {ahead}"),
            Answer::Cancelled => "cancelled".to_owned(),
            Answer::AlreadyGranted(grants) => format!("already granted {}", all(grants)),
            Answer::ValueSet => "value set".to_owned(),
            Answer::RegisterWritten => "register written".to_owned(),
            Answer::Offered { to } => format!("offered to {}", self.name(*to)),
            Answer::Accepted { wait } => format!("accepted, the grant follows under {wait}"),
            Answer::Released => "released".to_owned(),
            Answer::ReadySet => "ready set".to_owned(),
            Answer::DrainingShown => "draining shown".to_owned(),
            Answer::Refused(refusal) => format!("refused: {}", self.refusal(refusal)),
        }
    }

    fn refusal(&self, refusal: &Refusal) -> String {
        let ended = |how: &Option<Ending>| match how {
            Some(how) => format!("; it was {}", self.ending(how)),
            None => "; how it ended is not known".to_owned(),
        };
        match refusal {
            Refusal::SessionEnded { session } => format!("session {} has ended", short(*session)),
            Refusal::NotFree { resource, why } => format!("{resource} is not free, {}", unavailable(why)),
            Refusal::NotHolder { resource, token: t, ended: how } => {
                format!("{resource} {} is not held by it{}", token(*t), ended(how))
            }
            Refusal::NotCurrent { resource, token: t, ended: how } => {
                format!("{resource} {} is not current{}", token(*t), ended(how))
            }
            Refusal::TokenAhead { resource, token: t, newest } => {
                let newest = token(Token::from_u64(*newest));
                format!("{resource} {} was never granted here, the newest is {newest}", token(*t))
            }
            Refusal::NoSuchAlarm { resource, token: t, raised } => {
                let raised = raised.map_or_else(String::new, |t| format!("; it is {}", token(t)));
                format!("{resource} has no alarm of {}{raised}", token(*t))
            }
            other => other.to_string(),
        }
    }

    fn event(&self, event: &Event) -> Option<String> {
        Some(match event {
            Event::Ended { resource, token: t, session, when, how, .. } => {
                let whose = self.name(*session);
                format!("ended: {resource} {} of {whose} at {when}, {}", token(*t), self.ending(how))
            }
            Event::SessionEnded { session } => format!("ended: session of {}", self.name(*session)),
            Event::WaitGranted { session, command, grants } if self.is_plain(*session) => {
                format!("{} wait {command} granted: {}", self.name(*session), all(grants))
            }
            Event::WaitEnded { session, command, why } if self.is_plain(*session) => {
                format!("{} wait {command} ended: {}", self.name(*session), wait_ending(*why))
            }
            Event::AlarmRaised { resource, token: t, by } => {
                format!("alarm: {resource} {} was shown by {by:?}", token(*t))
            }
            Event::AlarmCleared { resource, token: t, by, reason } => {
                format!("alarm of {resource} {} cleared by {by:?} ({reason})", token(*t))
            }
            Event::ReadySet { resource, token: t, ready, .. } => {
                let word = if *ready { "ready" } else { "warming up" };
                format!("{word}: {resource} {}", token(*t))
            }
            Event::DrainingShown { resource, token: t, in_flight, within, .. } => {
                format!("draining: {resource} {} with {in_flight} in flight, within {within}", token(*t))
            }
            // Streamed sessions have these as items.
            Event::SessionOpened { .. }
            | Event::Granted { .. }
            | Event::ValueSet { .. }
            | Event::RegisterWritten { .. }
            | Event::WaitGranted { .. }
            | Event::WaitEnded { .. } => return None,
        })
    }

    pub(crate) fn ending(&self, how: &Ending) -> String {
        match how {
            Ending::Released => "released".to_owned(),
            Ending::HandedOver { to } => format!("handed over to {}", self.name(*to)),
            Ending::Drained => "drained and released".to_owned(),
            Ending::Expired => "expired".to_owned(),
            Ending::Taken { by } => format!("taken by {}", token(*by)),
            Ending::Revoked { by, reason } => format!("revoked by {by:?} ({reason})"),
            Ending::SessionClosed => "closed with its session".to_owned(),
            Ending::Rebooted => "ended by a reboot".to_owned(),
            Ending::Restored => "ended by a restore".to_owned(),
        }
    }

    fn successor(&self, successor: &Successor) -> String {
        match successor {
            Successor::FirstWaiter => "the first waiter".to_owned(),
            Successor::Labelled(label) => format!("the first waiter labelled {label:?}"),
            Successor::Session(id) => self.name(*id),
        }
    }
}

/// A token as scripts write it.
pub(crate) fn token(token: Token) -> String {
    let number = token.get() & ((1 << 48) - 1);
    if token.epoch() == 0 { format!("t{number}") } else { format!("t{}.{number}", token.epoch()) }
}

/// A mode as scripts write it behind a name.
pub(crate) fn mode(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".to_owned(),
        Mode::Shared => "shared".to_owned(),
        Mode::Slot { of } => format!("{of} slots"),
    }
}

/// A session's id, with its epoch in front where it has one.
fn short(session: SessionId) -> String {
    token(Token::from_u64(session.get())).replacen('t', "", 1)
}

fn all(grants: &[Grant]) -> String {
    let one = |grant: &Grant| {
        let slot = grant.slot.map_or_else(String::new, |slot| format!("#{slot}"));
        let fence = (grant.fence != grant.token).then(|| format!(" fencing with {}", token(grant.fence)));
        format!("{}{slot} {}{}", grant.resource, token(grant.token), fence.unwrap_or_default())
    };
    grants.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn unavailable(why: &Unavailable) -> String {
    match why {
        Unavailable::Held { holder, token: t, overdue } => {
            format!(
                "held by {holder:?} with {}{}",
                token(*t),
                if *overdue { ", which is overdue" } else { "" }
            )
        }
        Unavailable::Queue { waiting } => format!("{waiting} wait for it"),
        Unavailable::RevokePending { token: t, remaining } => {
            format!("the holder of {} may not know of its revoke for {remaining}", token(*t))
        }
        Unavailable::CoolDown { remaining } => format!("it cools down for {remaining}"),
        Unavailable::RestoreWait { remaining } => format!("the wait after a restore runs for {remaining}"),
        Unavailable::Alarm { token: t } => format!("{} was shown, which was never granted", token(*t)),
    }
}

/// What a plain session has.
fn holdings(holdings: &Holdings) -> String {
    let lease = |held: &HeldLease| {
        let asked = if held.release_requested { " (asked to release)" } else { "" };
        let Grant { resource, token: t, fence, .. } = &held.grant;
        let fence = if fence == t { String::new() } else { format!(" fence {}", token(*fence)) };
        format!("{resource} {}{fence}{asked}", token(*t))
    };
    let leases: Vec<String> = holdings.leases.iter().map(lease).collect();
    let leases = if leases.is_empty() { "nothing".to_owned() } else { leases.join(", ") };
    let wait = |wait: &Waited| {
        let names: Vec<&str> = wait.resources.iter().map(ResourceName::as_str).collect();
        format!("{} by {}", names.join(" + "), wait.acquire)
    };
    let waits: Vec<String> = holdings.waits.iter().map(wait).collect();
    let waits = if waits.is_empty() { String::new() } else { format!(", waiting for {}", waits.join(", ")) };
    format!(", holding {leases}{waits}")
}

const fn wait_ending(why: WaitEnding) -> &'static str {
    match why {
        WaitEnding::TimedOut => "timed out",
        WaitEnding::OfferEnded => "the offer ended",
        WaitEnding::KindChanged => "the kind of the resource changed",
        WaitEnding::Cancelled => "cancelled",
    }
}
