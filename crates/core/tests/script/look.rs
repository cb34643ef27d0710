//! Looking at the table from a script: reads leave no trace in it.

use leasehold_core::gap::GapView;
use leasehold_core::table::{HolderView, HoldingState, ReadinessView};
use leasehold_core::{RegisterKey, ResourceName, SessionId, Token};

use super::command::resource;
use super::render::{mode, token};
use super::words::Words;
use super::world::World;

/// Something to look at.
pub(crate) enum Look {
    /// A resource.
    Lease(ResourceName),
    /// The past of a resource.
    History(ResourceName),
    /// For how long nobody acted on a resource.
    Gaps(ResourceName),
    /// When nobody led.
    Outages,
    /// Whether a token is current.
    Check(ResourceName, Token),
    /// A register.
    Register(ResourceName, RegisterKey),
    /// All sessions.
    Sessions,
    /// What a client has not said it has seen.
    Unseen(SessionId),
    /// How much there is in the table.
    Sizes,
    /// Goes on with what was read from a snapshot.
    Snapshot,
}

/// Reads a line that begins with `first`, if it is one that looks.
pub(crate) fn read_look(world: &World, first: &str, words: &mut Words<'_>) -> Result<Option<Look>, String> {
    let name = |words: &mut Words<'_>| resource(words.next("a resource")?);
    Ok(Some(match first {
        "show" => Look::Lease(name(words)?),
        "history" => Look::History(name(words)?),
        "gaps" => Look::Gaps(name(words)?),
        "check" => {
            let resource = name(words)?;
            let token = world.token(&resource, words.next("a token")?)?;
            Look::Check(resource, token)
        }
        "read" => {
            let resource = name(words)?;
            Look::Register(
                resource,
                RegisterKey::new(words.next("a key")?).map_err(|error| error.to_string())?,
            )
        }
        "outages" => Look::Outages,
        "sessions" => Look::Sessions,
        "unseen" => Look::Unseen(world.session(words.next("a session")?)?),
        "sizes" => Look::Sizes,
        "snapshot" => Look::Snapshot,
        _ => return Ok(None),
    }))
}

impl World {
    pub(crate) fn look(&mut self, look: &Look) -> Result<Vec<String>, String> {
        Ok(match look {
            Look::Lease(name) => self.show(name),
            Look::Gaps(name) => self.gaps(name),
            Look::Outages => self.outages(),
            Look::History(name) => self.history(name),
            Look::Check(name, t) => vec![match self.table.check(name, *t) {
                Ok(()) => format!("{name} {} is current", token(*t)),
                Err(Some(how)) => format!("{name} {} is not current: {}", token(*t), self.ending(&how)),
                Err(None) => format!("{name} {} is not current, and how it ended is not known", token(*t)),
            }],
            Look::Register(name, key) => vec![match self.table.register(name, key) {
                Some((value, t)) => format!("{name} {key} is {value:?}, written with {}", token(t)),
                None => format!("{name} {key} is not written"),
            }],
            Look::Sessions => self.sessions(),
            Look::Unseen(id) => {
                let line = |item: &leasehold_core::Item| {
                    format!("{}.{} unseen: {}", self.name(*id), item.number, self.item(&item.kind))
                };
                let lines: Vec<String> = self.table.unseen(*id).map(line).collect();
                if lines.is_empty() { vec!["nothing is unseen".to_owned()] } else { lines }
            }
            Look::Sizes => {
                let (sessions, resources) = self.table.sizes();
                vec![format!(
                    "{sessions} sessions, {resources} resources, newest number {}",
                    self.table.newest()
                )]
            }
            Look::Snapshot => {
                self.pass_through_snapshot()?;
                vec!["snapshot".to_owned()]
            }
        })
    }

    fn show(&self, name: &ResourceName) -> Vec<String> {
        let Some(view) = self.table.lease(name) else { return vec![format!("{name} is not known")] };
        let plural = if view.transitions == 1 { "" } else { "s" };
        let mut lines = vec![format!("{name}: {}, {} grant{plural}", mode(view.mode), view.transitions)];
        lines.extend(view.holders.iter().map(|holder| self.holder(holder)));
        for waiter in &view.queue {
            let overdue = if waiter.overdue { ", overdue" } else { "" };
            lines.push(format!(
                "  waiting: {} for {}{overdue}",
                self.name(waiter.session),
                waiter.waiting_for
            ));
        }
        lines.extend(
            view.alarm.map(|alarm| format!("  alarm: {} was shown {} ago", token(alarm.token), alarm.age)),
        );
        lines.extend(view.cool_down.map(|remaining| format!("  cool-down: {remaining}")));
        lines
    }

    fn gaps(&self, name: &ResourceName) -> Vec<String> {
        let Some(of) = self.table.gaps(name, None, self.table.last_at()) else {
            return vec![format!("{name} is not known")];
        };
        if of.gaps.is_empty() {
            return vec![format!("{name}: no gaps")];
        }
        of.gaps.iter().map(|gap| one_gap(name, gap)).collect()
    }

    fn holder(&self, holder: &HolderView) -> String {
        let state = match holder.state {
            HoldingState::Held => format!("{} left", holder.remaining),
            HoldingState::Overdue => "overdue".to_owned(),
            HoldingState::Revoked => "revoked".to_owned(),
        };
        let slot = holder.slot.map_or_else(String::new, |slot| format!(" slot {slot}"));
        let fence = (holder.fence != holder.token).then(|| format!(" fencing with {}", token(holder.fence)));
        let shared = if holder.shared { " shared" } else { "" };
        let value = match &holder.value {
            Some(value) if value.is_empty() => String::new(),
            Some(value) => format!(", value {value:?}"),
            None => ", value left out".to_owned(),
        };
        let (who, t, fence) = (self.name(holder.session), token(holder.token), fence.unwrap_or_default());
        let drains = holder.draining.map_or_else(String::new, |shown| {
            format!(", draining {} within {}", shown.in_flight, shown.remaining)
        });
        let drains = match holder.readiness {
            None => drains,
            Some(ReadinessView::WarmingUp) => format!("{drains}, warming up"),
            Some(ReadinessView::ReadyAfter(length)) => format!("{drains}, ready after {length}"),
        };
        let offers = holder.offer.as_ref().map_or_else(String::new, |offer| {
            let ready = if offer.ready { "ready" } else { "not ready" };
            format!(", offered to {} ({ready}) for {}", self.name(offer.to), offer.remaining)
        });
        format!(
            "  held: {who} {t}{fence}{slot}{shared} for {}, {state}{value}{drains}{offers}",
            holder.held_for
        )
    }

    fn history(&self, name: &ResourceName) -> Vec<String> {
        let past = self.table.history(name);
        let line = |past: &leasehold_core::table::PastView| {
            let (who, t) = (self.name(past.session), token(past.token));
            let (held, ago, how) = (past.held_for, past.ended_ago, self.ending(&past.how));
            format!("{name} {t} of {who}: held for {held}, {how} {ago} ago")
        };
        if past.is_empty() { vec![format!("{name} has no past")] } else { past.iter().map(line).collect() }
    }

    fn outages(&self) -> Vec<String> {
        let line = |outage: &leasehold_core::gap::OutageView| {
            let length = outage.length.map_or("nobody knows for how long".to_owned(), |l| format!("for {l}"));
            format!("nobody led {length}, up to {} ago", outage.ended_ago)
        };
        self.table.outages(self.table.last_at()).iter().map(line).collect()
    }

    fn sessions(&self) -> Vec<String> {
        let line = |view: leasehold_core::table::SessionView| {
            let left = if view.overdue { "overdue".to_owned() } else { format!("{} left", view.remaining) };
            format!("{}: {left}, {} leases, {} waits", self.name(view.session), view.leases, view.waits)
        };
        let lines: Vec<String> = self.table.sessions(None, usize::MAX).map(line).collect();
        if lines.is_empty() { vec!["no sessions".to_owned()] } else { lines }
    }
}

fn one_gap(name: &ResourceName, gap: &GapView) -> String {
    let parts: Vec<String> =
        gap.parts.iter().map(|part| format!("{} {}", part.cause.word(), part.length)).collect();
    let ended = gap.ended_ago.map_or_else(|| "lasts".to_owned(), |ago| format!("ended {ago} ago"));
    let after = gap.after.as_ref().map_or_else(String::new, |after| format!(" to {}", token(after.token)));
    let (length, before) = (gap.length(), token(gap.before.token));
    let least = gap.at_least();
    let least = if least == length { String::new() } else { format!(", at least {least}") };
    format!("{name}: {length}{least} from {before}{after}, {ended}: {}", parts.join(", "))
}
