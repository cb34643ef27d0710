//! A history put together: which grants there were, and what became of each.

use std::collections::{BTreeMap, HashMap};

use leasehold::Token;

use crate::history::{At, Call, ClientId, Line, What};

/// A lease as its holder saw it.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Who holds it.
    pub client: ClientId,
    /// What.
    pub resource: String,
    /// The token.
    pub token: Token,
    /// When the client was about to ask.
    pub asked: At,
    /// When the client was told that it stands in the queue.
    pub queued: Option<At>,
    /// When the client was told that it holds it.
    pub granted: At,
    /// Every confirmation, the grant's own first: when it came, and until when the client believes.
    pub confirmations: Vec<(At, At)>,
    /// Until when the service must honour it.
    pub promised: At,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// When the call that gave it back ended.
    pub gave_back: Option<At>,
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client was about to give it back.
    GivenBack(At),
    /// The service ended it.
    Lost(At),
    /// An operator ended it.
    Revoked(At),
}

impl End {
    /// When.
    pub const fn at(self) -> At {
        match self {
            Self::GivenBack(at) | Self::Lost(at) | Self::Revoked(at) => at,
        }
    }
}

impl Grant {
    /// The times in which the client believed. Belief that ran out and was confirmed again makes two of them.
    pub fn windows(&self) -> Vec<(At, At)> {
        let mut windows: Vec<(At, At)> = Vec::new();
        let end = self.end.map_or(At(u64::MAX), End::at);
        for &(from, until) in &self.confirmations {
            let until = until.min(end);
            match windows.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ if from < until => windows.push((from, until)),
                _ => {}
            }
        }
        windows
    }

    /// Whether another may hold it at this time because the client or an operator had ended it.
    pub fn was_ended_before(&self, at: At) -> bool {
        matches!(self.end, Some(End::GivenBack(end) | End::Revoked(end)) if end <= at)
    }
}

/// Somebody looked who holds a resource.
#[derive(Debug, Clone)]
pub struct Look {
    /// When it was asked.
    pub asked: At,
    /// When the answer came.
    pub answered: At,
    /// What was looked at.
    pub resource: String,
    /// The token of the holder.
    pub token: Option<Token>,
}

/// A write to the register of a resource.
#[derive(Debug, Clone)]
pub struct Write {
    /// Who.
    pub client: ClientId,
    /// Beside which resource.
    pub resource: String,
    /// The token that was shown.
    pub token: Token,
    /// When the client was about to ask.
    pub asked: At,
    /// Why it was not taken, if it was not.
    pub refused: Option<String>,
}

/// An acquire, whatever became of it.
#[derive(Debug, Clone)]
struct Asking {
    asked: At,
    queued: Option<At>,
}

/// A history put together.
#[derive(Debug, Default)]
pub struct Story {
    /// Every acknowledged grant, in the order in which clients were told.
    pub grants: Vec<Grant>,
    /// Every look.
    pub looks: Vec<Look>,
    /// Every write whose outcome is known.
    pub writes: Vec<Write>,
    /// Who asked for anything, and when for the last time.
    pub clients: BTreeMap<ClientId, At>,
    /// When nothing was broken any more.
    pub healed: Option<At>,
}

impl Story {
    /// Puts a history together.
    pub fn of(lines: &[Line]) -> Self {
        let mut story = Self::default();
        let mut askings: HashMap<(ClientId, Call), Asking> = HashMap::new();
        let mut places: HashMap<(ClientId, Token), usize> = HashMap::new();
        for Line { at, what } in lines {
            let at = *at;
            match what {
                What::Asked { client, call, .. } => {
                    askings.insert((*client, *call), Asking { asked: at, queued: None });
                    story.clients.insert(*client, at);
                }
                What::Queued { client, call } => {
                    if let Some(asking) = askings.get_mut(&(*client, *call)) {
                        asking.queued = Some(at);
                    }
                }
                What::Granted { client, call, resource, token, until, promised } => {
                    let asking = askings.remove(&(*client, *call));
                    let asking = asking.unwrap_or(Asking { asked: at, queued: None });
                    places.insert((*client, *token), story.grants.len());
                    story.grants.push(Grant {
                        client: *client,
                        resource: resource.clone(),
                        token: *token,
                        asked: asking.asked,
                        queued: asking.queued,
                        granted: at,
                        confirmations: vec![(at, *until)],
                        promised: *promised,
                        end: None,
                        gave_back: None,
                    });
                }
                What::Confirmed { client, token, until, promised } => {
                    if let Some(grant) = story.grant(&places, *client, *token) {
                        grant.confirmations.push((at, *until));
                        grant.promised = grant.promised.max(*promised);
                    }
                }
                What::GivingBack { client, token } => {
                    if let Some(grant) = story.grant(&places, *client, *token) {
                        grant.end.get_or_insert(End::GivenBack(at));
                    }
                }
                What::GaveBack { client, token, .. } => {
                    if let Some(grant) = story.grant(&places, *client, *token) {
                        grant.gave_back = Some(at);
                    }
                }
                What::Wrote { client, resource, token, asked, refused } => story.writes.push(Write {
                    client: *client,
                    resource: resource.clone(),
                    token: *token,
                    asked: *asked,
                    refused: refused.clone(),
                }),
                What::Lost { client, token, revoked, .. } => {
                    if let Some(grant) = story.grant(&places, *client, *token) {
                        grant.end.get_or_insert(if *revoked { End::Revoked(at) } else { End::Lost(at) });
                    }
                }
                What::Looked { asked, resource, token } => {
                    let (asked, resource, token) = (*asked, resource.clone(), *token);
                    story.looks.push(Look { asked, answered: at, resource, token });
                }
                What::AllHealed => story.healed = Some(at),
                What::Refused { client, call, .. } | What::Unknown { client, call, .. } => {
                    askings.remove(&(*client, *call));
                }
                What::Fault { .. } | What::Healed { .. } | What::Finishing => {}
            }
        }
        story
    }

    /// The grants of each resource, in the order in which clients were told.
    pub fn by_resource(&self) -> BTreeMap<&str, Vec<&Grant>> {
        let mut resources: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
        for grant in &self.grants {
            resources.entry(&grant.resource).or_default().push(grant);
        }
        resources
    }

    fn grant(
        &mut self,
        places: &HashMap<(ClientId, Token), usize>,
        client: ClientId,
        token: Token,
    ) -> Option<&mut Grant> {
        places.get(&(client, token)).map(|place| &mut self.grants[*place])
    }
}

/// A time in a history, for people: milliseconds.
pub(crate) fn show(at: At) -> String {
    format!("{:.3} ms", at.0 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{asked, confirmed, giving_back, granted, ms};

    #[test]
    fn belief_that_ran_out_and_came_back_makes_two_windows() {
        let lines = [
            asked(0, 1, "r"),
            granted(10, 1, "r", 5),
            confirmed(500, 1, 5),
            confirmed(1500, 1, 5),
            giving_back(1600, 1, 5),
        ];
        let story = Story::of(&lines);
        assert_eq!(story.grants[0].windows(), [(ms(10), ms(1400)), (ms(1500), ms(1600))]);
    }
}
