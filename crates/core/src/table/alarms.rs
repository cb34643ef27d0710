//! Alarms: somebody has shown a token that this log has never granted.
//!
//! Then a later life of the state is known outside: this one was set back by hand, or restored by a wrong word, and a fence
//! that has accepted the greater token would refuse every new holder. Nothing of that resource is granted until an operator
//! has looked, and every other resource is granted as before: a session can stop no more than a few names, and all of them together
//! no more than the alarms that are kept. The present holder keeps what it has.
//!
//! Only a session raises it, by a release or by writing a register. Asking whether a token is current says that it is ahead, and
//! changes nothing: a slip of the finger in a question must not stop anybody's work.

use serde::{Deserialize, Serialize};

use super::LeaseTable;
use crate::answer::{Applied, Event, Refusal, Reply};
use crate::id::{SessionId, Token};
use crate::limits::{MAX_ALARMS, MAX_ALARMS_PER_SESSION};
use crate::name::{Label, Reason, ResourceName};
use crate::time::{LogTime, Millis};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Alarm {
    /// The greatest token shown.
    pub(super) token: Token,
    /// Who showed it.
    pub(super) by: Label,
    pub(super) since: LogTime,
}

/// An alarm as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmView {
    /// Which resource is granted to nobody.
    pub resource: ResourceName,
    /// The greatest token shown for it.
    pub token: Token,
    /// What the one who showed it calls itself.
    pub by: Label,
    /// Since it was shown.
    pub age: Millis,
}

impl LeaseTable {
    /// Whether a token is above all that this log has granted, in any life.
    pub fn is_ahead(&self, token: Token) -> bool {
        token.get() > self.newest()
    }

    /// The alarms that are raised, by name.
    pub fn alarms(&self) -> impl Iterator<Item = AlarmView> {
        self.alarms.iter().map(|(name, alarm)| self.view_alarm(name, alarm))
    }

    /// The alarm of a resource.
    pub fn alarm(&self, name: &ResourceName) -> Option<AlarmView> {
        self.alarms.get(name).map(|alarm| self.view_alarm(name, alarm))
    }

    fn view_alarm(&self, name: &ResourceName, alarm: &Alarm) -> AlarmView {
        let age = self.last_at.since(alarm.since);
        AlarmView { resource: name.clone(), token: alarm.token, by: alarm.by.clone(), age }
    }

    /// The token because of which a resource is granted to nobody.
    pub(super) fn stopped_by(&self, name: &ResourceName) -> Option<Token> {
        let own = self.alarms.get(name);
        let any = || self.alarms.first_key_value().map(|(_, alarm)| alarm).filter(|_| self.all_is_stopped());
        own.or_else(any).map(|alarm| alarm.token)
    }

    /// Releases of before stop every name when there is room for no more alarms.
    pub(super) fn all_is_stopped(&self) -> bool {
        self.alarms.len() >= MAX_ALARMS && !self.alarms_stop_their_name()
    }

    /// Refuses a token above all granted, and raises the alarm.
    pub(super) fn check_shown(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        by: SessionId,
    ) -> Result<(), Refusal> {
        if !self.is_ahead(token) {
            return Ok(());
        }
        let refusal = Refusal::TokenAhead { resource: name.clone(), token, newest: self.newest() };
        let session = &self.sessions[&by];
        let many = session.alarms >= MAX_ALARMS_PER_SESSION && self.alarms_stop_their_name();
        let full =
            many || self.alarms.len() >= MAX_ALARMS || (token > Token::MAX && self.alarms_stop_their_name());
        if self.alarms.get(name).map_or(full, |alarm| alarm.token >= token) {
            return Err(refusal);
        }
        let (id, by) = (by, session.label.clone());
        self.settle_gap(out, name);
        match self.alarms.get_mut(name) {
            Some(alarm) => (alarm.token, alarm.by) = (token, by.clone()),
            None => {
                let alarm = Alarm { token, by: by.clone(), since: self.last_at };
                self.alarms.insert(name.clone(), alarm);
                if self.alarms_stop_their_name() {
                    self.sessions.get_mut(&id).expect("its label was read a moment ago").alarms += 1;
                }
            }
        }
        Self::event(out, Event::AlarmRaised { resource: name.clone(), token, by });
        Err(refusal)
    }

    /// An operator has looked: grants go on.
    pub(super) fn clear_alarm(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        by: &Label,
        reason: &Reason,
    ) -> Result<Reply, Refusal> {
        self.settle(out, name);
        let all_was_stopped = self.all_is_stopped();
        match self.alarms.get(name) {
            // A greater one was shown since the operator looked: that one is not answered.
            Some(alarm) if alarm.token == token => {}
            other => {
                let raised = other.map(|alarm| alarm.token);
                return Err(Refusal::NoSuchAlarm { resource: name.clone(), token, raised });
            }
        }
        self.settle_gap(out, name);
        self.alarms.remove(name);
        let (by, reason) = (by.clone(), reason.clone());
        Self::event(out, Event::AlarmCleared { resource: name.clone(), token, by, reason });
        if all_was_stopped {
            self.serve_all(out);
        } else {
            self.serve(out, [name.clone()]);
        }
        Ok(Reply::AlarmCleared)
    }

    /// From some version on an alarm stops its own name alone, and a number that can be no token stops nothing. No operator can show
    /// such a number, so its alarm would stand for ever.
    pub(super) fn narrow_alarms(&mut self, out: &mut Applied) {
        if !self.alarms_stop_their_name() {
            return;
        }
        let beyond =
            |(name, alarm): (&ResourceName, &Alarm)| (alarm.token > Token::MAX).then(|| name.clone());
        let beyond: alloc::vec::Vec<ResourceName> = self.alarms.iter().filter_map(beyond).collect();
        let all_was_stopped = self.alarms.len() >= MAX_ALARMS;
        for name in &beyond {
            self.settle_gap(out, name);
            self.alarms.remove(name);
        }
        if all_was_stopped {
            self.serve_all(out);
        } else {
            self.serve(out, beyond);
        }
    }

    /// Everything that somebody waits for may be granted again.
    pub(super) fn serve_all(&mut self, out: &mut Applied) {
        let waited_for = self.resources.iter().filter(|(_, resource)| !resource.queue.is_empty());
        let names: alloc::vec::Vec<ResourceName> = waited_for.map(|(name, _)| name.clone()).collect();
        self.serve(out, names);
    }

    /// Alarms that a new epoch has answered: its tokens are above the one shown.
    pub(super) fn drop_answered_alarms(&mut self) {
        let newest = self.newest();
        self.alarms.retain(|_, alarm| alarm.token.get() > newest);
    }
}
