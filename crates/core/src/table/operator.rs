//! What operators do: ask the holder, revoke, change the kind of a name.

use alloc::vec::Vec;

use super::LeaseTable;
use super::resource::{Holder, Kind, Standing};
use crate::answer::{Applied, BadRequest, Ending, ItemKind, Refusal, Reply, WaitEnding};
use crate::command::{Mode, Operator, Successor};
use crate::id::Token;
use crate::limits::MAX_ASKS_PER_LEASE;
use crate::name::{Label, Reason, ResourceName};
use crate::planted::{Bug, planted};
use crate::time::Millis;

impl LeaseTable {
    pub(super) fn operator(&mut self, out: &mut Applied, operator: &Operator) -> Reply {
        let done = match operator {
            Operator::AskRelease { resource, token, successor, by } => {
                self.ask_release(out, resource, *token, successor.as_ref(), by)
            }
            Operator::Revoke { resource, token, by, reason, now } => {
                self.revoke(out, resource, *token, by, reason, *now)
            }
            Operator::ChangeKind { resource, mode, by } => self.change_kind(out, resource, *mode, by),
            Operator::ClearAlarm { resource, token, by, reason } => {
                self.clear_alarm(out, resource, *token, by, reason)
            }
        };
        done.unwrap_or_else(Reply::Refused)
    }

    fn ask_release(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Option<Token>,
        successor: Option<&Successor>,
        by: &Label,
    ) -> Result<Reply, Refusal> {
        self.settle(out, name);
        let resource =
            self.resources.get_mut(name).ok_or_else(|| Refusal::NotHeld { resource: name.clone() })?;
        let asked = |holder: &&mut Holder| {
            matches!(holder.standing, Standing::Held) && token.is_none_or(|token| token == holder.token)
        };
        let Some(holder) = resource.holders.iter_mut().find(asked) else {
            return Err(match token {
                Some(token) => {
                    Refusal::NotCurrent { resource: name.clone(), token, ended: self.ending(name, token) }
                }
                None => Refusal::NotHeld { resource: name.clone() },
            });
        };
        let (session, token) = (holder.session, holder.token);
        let push = holder.asks < MAX_ASKS_PER_LEASE;
        holder.asks = holder.asks.saturating_add(1);
        if push {
            let (successor, by) = (successor.cloned(), by.clone());
            let request = ItemKind::ReleaseRequested { resource: name.clone(), token, successor, by };
            self.push_item(out, session, request);
        }
        Ok(Reply::Asked { token, holder: self.sessions[&session].label.clone() })
    }

    fn revoke(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        by: &Label,
        reason: &Reason,
        now: bool,
    ) -> Result<Reply, Refusal> {
        self.settle(out, name);
        let current = self.resources.get(name).and_then(|resource| resource.holder(token));
        // A revoked lease is current for one purpose only: to end the wait for its holder.
        let Some(holder) = current.filter(|holder| now || matches!(holder.standing, Standing::Held)) else {
            let ended = self.ending(name, token);
            return Err(Refusal::NotCurrent { resource: name.clone(), token, ended });
        };
        if matches!(holder.standing, Standing::Held) {
            let how = Ending::Revoked { by: by.clone(), reason: reason.clone() };
            self.record_ending(out, name, token, &how, self.last_at);
        }
        if now || planted(Bug::RevokeGrantsAtOnce) {
            self.vacate(name, token);
            self.note_acknowledged(name);
        } else {
            self.hold_back(name, token, false);
        }
        self.serve(out, [name.clone()]);
        let resource = self.resources.get(name).and_then(|resource| resource.holder(token));
        let held_back = match resource.map(|holder| &holder.standing) {
            Some(Standing::Revoked { until, .. }) => until.since(self.last_at),
            _ => Millis::ZERO,
        };
        Ok(Reply::Revoked { held_back })
    }

    /// The place of a lease that ended without its holder asking for it stays taken until the holder acknowledges, or until
    /// the last renewal so far is overdue: later renewals do not move that point.
    fn hold_back(&mut self, name: &ResourceName, token: Token, blocks_all: bool) {
        let drift = self.config.drift;
        let Some(holder) = self.resources.get(name).and_then(|resource| resource.holder(token)) else {
            return;
        };
        let session = &self.sessions[&holder.session];
        let (until, delay, slot) = (session.overdue_after(drift), session.policies.delay, holder.slot);
        if self.last_at > until {
            self.vacate(name, token);
            self.cool_down(name, slot, self.last_at, delay);
            return;
        }
        let holder = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(token));
        holder.expect("its place was there a moment ago").standing =
            Standing::Revoked { until, delay, blocks_all };
        self.note_held_back(name, until);
        self.lower_due(name, until);
    }

    /// Makes a name one of another kind. Leases of the old kind end and hold back all grants until their holders know;
    /// waits of the old kind end.
    fn change_kind(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        mode: Mode,
        by: &Label,
    ) -> Result<Reply, Refusal> {
        if !mode.is_valid() {
            return Err(Refusal::BadRequest { what: BadRequest::BadSlots });
        }
        self.settle(out, name);
        let kind = Kind::of(mode);
        let resource =
            self.resources.get_mut(name).ok_or_else(|| Refusal::NotHeld { resource: name.clone() })?;
        if resource.kind == kind {
            return Ok(Reply::KindChanged);
        }
        resource.kind = kind;
        for cooling in &mut resource.cooling {
            // A place of the old kind has no counterpart in the new one: it cools down for all of them.
            cooling.slot = None;
        }
        for holder in &mut resource.holders {
            holder.slot = None;
            if let Standing::Revoked { blocks_all, .. } = &mut holder.standing {
                *blocks_all = true;
            }
        }
        let held = |holder: &&Holder| matches!(holder.standing, Standing::Held);
        let tokens: Vec<Token> = resource.holders.iter().filter(held).map(|holder| holder.token).collect();
        let waits: Vec<_> = resource.queue.values().copied().collect();
        let reason = Reason::new("kind of the resource changed").expect("this text is short and plain");
        let how = Ending::Revoked { by: by.clone(), reason };
        for token in tokens {
            self.record_ending(out, name, token, &how, self.last_at);
            self.hold_back(name, token, true);
        }
        let mut touched = alloc::vec![name.clone()];
        for waiting in waits {
            touched.extend(self.end_wait(out, waiting.session, waiting.command, WaitEnding::KindChanged));
        }
        self.serve(out, touched);
        Ok(Reply::KindChanged)
    }
}
