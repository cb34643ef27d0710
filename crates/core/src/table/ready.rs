//! What a holder says of its readiness. It moves the end of the gap before it, and changes nothing about who is granted what.

use super::LeaseTable;
use super::gaps::{Gap, Sign, teller};
use super::resource::Readiness;
use crate::answer::{Answer, Applied, Event, Refusal};
use crate::gap::GapCause;
use crate::id::{SessionId, Token};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};

impl LeaseTable {
    /// A holder says that it is warming up, or that it is ready. The first word counts, and the first `ready` ends it: what is said in the
    /// middle of a term begins no gap.
    pub(super) fn set_ready(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        ready: bool,
    ) -> Result<Answer, Refusal> {
        if !self.counts_gaps() {
            // Whoever keeps the log does not let it in; a log that has it all the same is judged alike by all that can read it.
            return Err(Refusal::NotYetInUse);
        }
        self.settle(out, name);
        if !self.holds(id, name, token) {
            let ended = self.ending(name, token);
            return Err(Refusal::NotHolder { resource: name.clone(), token, ended });
        }
        let (at, ttl) = (self.last_at, self.sessions[&id].ttl);
        let resource = self.resources.get_mut(name).expect("a lease that is held has its resource");
        let holder = resource.holder_mut(token).expect("a lease that is held has its place");
        let before = holder.readiness;
        holder.readiness = match (before, ready) {
            // Whoever has held it for a ttl without a word has acted.
            (Readiness::Unsaid, false) if at.since(holder.since) <= ttl => Readiness::WarmingUp,
            (Readiness::Unsaid | Readiness::WarmingUp, true) => Readiness::Ready(at),
            (said, _) => said,
        };
        if holder.readiness != before {
            self.note_readiness(out, name, token, before);
            Self::event(out, Event::ReadySet { resource: name.clone(), token, session: id, ready });
        }
        Ok(Answer::ReadySet)
    }

    fn note_readiness(&mut self, out: &mut Applied, name: &ResourceName, token: Token, before: Readiness) {
        let (at, outages) = (self.last_at, &self.outages);
        let resource = self.resources.get_mut(name).expect("its holder was there a moment ago");
        if resource.others_act(token) {
            return;
        }
        let Some(holder) = resource.holder(token) else { return };
        let (granted, ready) = (Sign::of_grant(holder, outages), holder.acts());
        if before == Readiness::Unsaid {
            // Without a holder right before it there is nobody whose gap this could be.
            let last = resource.history.back().filter(|past| past.until <= granted.at).map(|past| past.token);
            let Some(last) = last else { return };
            let gaps = resource.gaps_mut();
            if gaps.past.back().is_some_and(|gap| gap.before == token) {
                // It was away and came back: what it does since its grant is no warm-up any more.
                return;
            }
            let closed = gaps.past.back().is_some_and(|gap| gap.after == Some(token));
            let gap = if closed { gaps.past.pop_back() } else { None };
            let leeway = gaps.ends.leeway_from(granted.at);
            let mut gap = gap.unwrap_or_else(|| Gap::new(granted, last, leeway));
            gap.after = Some(token);
            resource.open_gap(out, name, gap);
        }
        if ready {
            if let Some(gap) = &mut resource.gaps_mut().open {
                let at = if planted(Bug::GapWithoutWarmUp) { gap.end } else { at };
                gap.settle(outages, GapCause::WarmUp, at, &mut teller(out, name));
            }
            resource.close_gap(out, name, token);
        }
    }
}
