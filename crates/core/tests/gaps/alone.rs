//! The incidents of a name that one holds at a time.
//!
//! An incident is an ending, the way in which the next holder comes, and what that one does first. Each is chosen before anything of
//! it happens.

use leasehold_core::gap::GapCause;

use super::day::{Day, Holder, Numbers, Open, SessionNumber, What, stretch};
use super::truth::{Point, Since};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Released,
    Closed,
    DiedWithItsSocket,
    DiedInSilence,
    DiedAfterACommand,
    ReleasedWhenOverdue,
    RevokedAndAcknowledged,
    RevokedAndSilent,
    RevokedAndGone,
    RevokedNow,
    RevokedThenNow,
    RevokedWhenOverdue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Newcomer,
    Waiter,
    DeadWaiter,
    ReturningWaiter,
    Alarm,
    AlarmBefore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Acts,
    WarmsUp,
    SaysReadyOnly,
    DiesWarm,
    ReleasesWarm,
    NeverHeard,
}

const ENDINGS: [Ending; 13] = [
    Ending::Released,
    Ending::Released,
    Ending::Closed,
    Ending::DiedWithItsSocket,
    Ending::DiedWithItsSocket,
    Ending::DiedInSilence,
    Ending::DiedAfterACommand,
    Ending::ReleasedWhenOverdue,
    Ending::RevokedAndAcknowledged,
    Ending::RevokedAndSilent,
    Ending::RevokedNow,
    Ending::RevokedThenNow,
    Ending::RevokedWhenOverdue,
];
const NEXTS: [Next; 9] = [
    Next::Newcomer,
    Next::Newcomer,
    Next::Newcomer,
    Next::Waiter,
    Next::Waiter,
    Next::DeadWaiter,
    Next::ReturningWaiter,
    Next::Alarm,
    Next::AlarmBefore,
];
const FIRSTS: [First; 9] = [
    First::Acts,
    First::Acts,
    First::Acts,
    First::Acts,
    First::WarmsUp,
    First::SaysReadyOnly,
    First::DiesWarm,
    First::ReleasesWarm,
    First::NeverHeard,
];

/// Whoever comes next, on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Coming {
    /// It will ask.
    Newcomer,
    /// It waits since this point.
    Waiting(SessionNumber, u64),
    /// It waits, and is silent.
    Silent(SessionNumber, u64),
    /// An alarm was raised.
    Stopped,
    /// An alarm will be raised.
    ToBeStopped,
}

/// One name that one holds at a time.
pub(crate) struct Alone {
    pub(crate) name: usize,
    pub(crate) now: u64,
    pub(crate) holder: Holder,
}

/// Numbers of a session: now with grace and cool-down, now without.
pub(crate) fn numbers(day: &mut Day, name: usize) -> Numbers {
    let wide = matches!(day.modes[name], leasehold_core::Mode::Shared)
        || matches!(day.modes[name], leasehold_core::Mode::Slot { of } if of > 1);
    let ttl = if wide { day.chance.between(240, 290) } else { day.chance.between(20, 60) } * 1_000;
    let ttl = ttl + day.chance.between(0, 999);
    let grace = day.chance.one_of(&[0, 0, 7_000, 15_500]);
    let hard = grace + day.chance.one_of(&[0, 0, 4_000, 90_000]);
    let delay = day.chance.one_of(&[0, 0, 5_000, 12_345]);
    Numbers { ttl, grace, hard, delay }
}

impl Alone {
    /// The first grant: there is no gap before it.
    pub(crate) fn begin(day: &mut Day, name: usize, now: u64) -> Self {
        let numbers = numbers(day, name);
        let session = day.open(now, name, numbers);
        let holder = day.acquire(now + 10, session);
        let mut alone = Self { name, now: now + 10, holder };
        alone.act_on(day);
        alone
    }

    /// The holder shows that it acts, and everything that is true by now must be shown.
    fn act_on(&mut self, day: &mut Day) {
        let third = day.sessions[self.holder.session].numbers.ttl / 3;
        day.keep(self.holder.session, self.now);
        self.now += day.chance.between(1, third);
        let mark = day.renew(self.now, self.holder.session);
        day.events[mark].check = true;
    }

    /// Holds for a while, and then something happens.
    pub(crate) fn incident(&mut self, day: &mut Day) {
        self.now += day.chance.between(1_000, 900_000);
        day.keep(self.holder.session, self.now);
        if day.chance.once_in(8) {
            return self.pause(day);
        }
        let (ending, next) = (day.chance.one_of(&ENDINGS), day.chance.one_of(&NEXTS));
        if ending == Ending::Released && day.chance.once_in(4) {
            return self.hand_over(day);
        }
        let coming = self.prepare(day, next);
        day.keep(self.holder.session, self.now);
        let open = self.end(day, ending);
        self.go_on(day, open, coming);
    }

    /// From a gap that lasts to a holder that acts.
    pub(crate) fn go_on(&mut self, day: &mut Day, mut open: Open, mut coming: Coming) {
        loop {
            let granted = self.fill(day, &mut open, coming);
            self.holder = granted;
            self.now = granted.granted.at;
            let first = day.chance.one_of(&FIRSTS);
            if let Some(end) = self.first(day, &mut open, first) {
                day.close(self.name, open, end, granted.grant);
                return self.act_on(day);
            }
            // Nobody acts yet.
            open.serves = None;
            coming = Coming::Newcomer;
        }
    }

    /// Stands still, and comes back: within the ttl, within the grace, or before anybody took the lease.
    fn pause(&mut self, day: &mut Day) {
        let (name, session) = (self.name, self.holder.session);
        let numbers = day.sessions[session].numbers.clone();
        let (sign, overdue) = (day.sessions[session].sign, day.overdue(session));
        day.perhaps_black_out(sign.at);
        if numbers.hard == 0 || day.chance.once_in(3) {
            day.count("pause within the ttl");
            self.now = overdue - day.chance.between(0, 5_000).min(overdue - sign.at);
        } else {
            day.count(if numbers.hard > numbers.grace {
                "pause up to the hard limit"
            } else {
                "pause within the grace"
            });
            self.now = overdue + day.chance.between(1, numbers.hard);
        }
        let back = day.renew(self.now, session);
        if self.now > overdue {
            let mut causes = vec![(GapCause::Detection, overdue), (GapCause::Grace, overdue + numbers.grace)];
            causes.push((GapCause::CoolDown, overdue + numbers.grace + numbers.delay));
            causes.push((GapCause::Queue, self.now));
            let words = format!("{name}: the holder stood still from {} to {}", sign.at, self.now);
            let grant = self.holder.grant;
            let open = Open {
                words,
                since: day.silent(self.holder, Some(back)),
                causes,
                before: grant,
                free: self.now,
                over: self.now,
                serves: None,
            };
            day.close(name, open, Point { at: self.now, mark: back }, grant);
        }
        self.act_on(day);
    }

    /// Hands over to somebody named, without a gap.
    fn hand_over(&mut self, day: &mut Day) {
        day.count("planned handover");
        let numbers = numbers(day, self.name);
        let (old, next) = (self.holder, day.open(self.now, self.name, numbers));
        let waits = day.chance.once_in(2).then(|| {
            day.act(self.now, next, What::Acquire { session: next, wait: true });
        });
        day.act(self.now + 5, old.session, What::Offer(old.session, old.grant, next));
        day.act(self.now + 10, next, What::Accept(next, old.grant));
        self.now += day.chance.between(11, 3_000);
        let mark = day.act(self.now, old.session, What::Release(old.session, old.grant));
        day.end_term(self.name, old);
        if waits.is_some() {
            day.waited_for.push((self.name, self.now - 3_000, self.now));
        }
        self.holder = day.grant_by(mark, next);
        let handed = Point { at: self.now, mark };
        // Without a gap, unless an outage had the old holder lapse.
        let open = Open {
            words: format!("{}: handed over at {}", self.name, self.now),
            since: Since::Left(day.lease(old), handed),
            causes: Vec::new(),
            before: old.grant,
            free: self.now,
            over: self.now,
            serves: None,
        };
        day.close(self.name, open, handed, self.holder.grant);
        self.act_on(day);
    }

    /// Brings whoever comes next into its place before the ending.
    pub(crate) fn prepare(&mut self, day: &mut Day, next: Next) -> Coming {
        let name = self.name;
        match next {
            Next::Newcomer => Coming::Newcomer,
            Next::Alarm => Coming::ToBeStopped,
            Next::AlarmBefore => {
                let session = self.helper(day);
                day.push(self.now, name, What::Alarm(session));
                Coming::Stopped
            }
            Next::Waiter => {
                let numbers = numbers(day, name);
                let session = day.open(self.now, name, numbers);
                day.act(self.now, session, What::Acquire { session, wait: true });
                let since = self.now;
                self.now += day.chance.between(1, 2_000);
                Coming::Waiting(session, since)
            }
            Next::DeadWaiter | Next::ReturningWaiter => {
                day.count("waiter that is itself dead");
                let returns = next == Next::ReturningWaiter;
                let hard = if returns { 600_000 } else { 0 };
                let ttl = 20_000;
                let session = day.open(self.now, name, Numbers { ttl, grace: 0, hard, delay: 0 });
                day.act(self.now, session, What::Acquire { session, wait: true });
                let since = self.now;
                self.now += stretch(ttl) + day.chance.between(1, 5_000);
                if returns { Coming::Silent(session, since) } else { Coming::Newcomer }
            }
        }
    }

    fn helper(&self, day: &mut Day) -> SessionNumber {
        day.open(self.now, self.name, Numbers { ttl: 290_000, grace: 0, hard: 0, delay: 0 })
    }

    /// The next holder comes: what was in the way is over, and so is the waiting for somebody.
    fn fill(&mut self, day: &mut Day, open: &mut Open, coming: Coming) -> Holder {
        let name = self.name;
        let lag = day.chance.one_of(&[0, 0, 1, 40, 5_000, 60_000]);
        let at = open.free + lag;
        let strictly = u64::from(!open.causes.is_empty());
        match coming {
            Coming::Newcomer => {
                day.count(if lag == 0 { "somebody asks at once" } else { "nobody waits for a while" });
                let at = at + strictly;
                open.say(&format!("somebody asked at {at}"));
                open.add(GapCause::Queue, at);
                let numbers = numbers(day, name);
                let session = day.open(at, name, numbers);
                day.perhaps_black_out(at);
                let holder = day.acquire(at, session);
                day.perhaps_black_out(at);
                holder
            }
            Coming::Waiting(session, since) => {
                let mark = match open.serves {
                    Some(mark) => {
                        day.count("waiter served by the ending");
                        day.keep(session, day.events[mark].at - 1);
                        mark
                    }
                    None => {
                        day.count("waiter served by tidying");
                        let at = at + 1;
                        open.add(GapCause::Queue, at);
                        day.keep(session, at - 1);
                        day.perhaps_black_out(at);
                        day.push(at, name, What::Tidy)
                    }
                };
                let holder = day.grant_by(mark, session);
                open.say(&format!("a waiter was served at {}", holder.granted.at));
                day.waited_for.push((name, since, holder.granted.at));
                holder
            }
            Coming::Silent(session, since) => {
                day.count("dead waiter that came back");
                let at = at.max(day.overdue(session) + 1) + 1;
                open.add(GapCause::Queue, at);
                open.say(&format!("a waiter that had been silent came back at {at}"));
                let mark = day.renew(at, session);
                day.waited_for.push((name, since, at));
                day.grant_by(mark, session)
            }
            Coming::Stopped => self.answer(day, open, open.free),
            Coming::ToBeStopped => {
                let raised = at.max(open.over) + 1;
                self.now = raised;
                let by = self.helper(day);
                open.add(GapCause::Queue, raised);
                day.push(raised, name, What::Alarm(by));
                self.answer(day, open, raised)
            }
        }
    }

    /// An operator answers the alarm, and somebody asks or has waited.
    fn answer(&mut self, day: &mut Day, open: &mut Open, from: u64) -> Holder {
        day.count("alarm");
        let cleared = from.max(open.over) + day.chance.between(1, 250_000);
        open.say(&format!("an alarm was answered at {cleared}"));
        open.add(GapCause::Alarm, cleared);
        let waits = day.chance.once_in(2).then(|| {
            let numbers = numbers(day, self.name);
            let session = day.open(cleared - 1, self.name, numbers);
            day.act(cleared - 1, session, What::Acquire { session, wait: true });
            session
        });
        let mark = day.push(cleared, self.name, What::Clear);
        match waits {
            Some(session) => day.grant_by(mark, session),
            None => {
                open.causes.push((GapCause::Queue, cleared));
                self.fill(day, open, Coming::Newcomer)
            }
        }
    }

    /// What the new holder does first, and where the gap is over with it.
    fn first(&mut self, day: &mut Day, open: &mut Open, first: First) -> Option<Point> {
        let Holder { session, grant, granted } = self.holder;
        let room = day.overdue(session).saturating_sub(granted.at);
        let soon = granted.at + day.chance.between(0, 900);
        match first {
            _ if room < 2_000 => {
                // It was granted from the queue on its last breath: a renewal saves it.
                day.renew(granted.at + 1, session);
                self.now = granted.at + 1;
                Some(granted)
            }
            First::Acts => Some(granted),
            First::WarmsUp | First::SaysReadyOnly => {
                day.count("warm-up");
                if first == First::WarmsUp {
                    day.act(soon, session, What::Ready(session, grant, false));
                }
                let ready = soon + day.chance.between(1, 400_000);
                day.perhaps_black_out((soon + ready) / 2);
                day.keep(session, ready);
                let mark = day.act(ready, session, What::Ready(session, grant, true));
                self.now = ready;
                day.calm.push((granted.at, ready));
                open.say(&format!("warmed up until {ready}"));
                open.add(GapCause::WarmUp, ready);
                Some(Point { at: ready, mark })
            }
            First::ReleasesWarm => {
                day.count("release in the warm-up");
                day.renew(soon, session);
                day.act(soon, session, What::Ready(session, grant, false));
                let at = soon + day.chance.between(1, 60_000);
                day.keep(session, at);
                let mark = day.act(at, session, What::Release(session, grant));
                day.calm.push((granted.at, at));
                open.say(&format!("who released at {at} while it warmed up"));
                open.causes.push((GapCause::WarmUp, at));
                (open.free, open.serves) = (at, Some(mark));
                None
            }
            First::DiesWarm => {
                day.count("death in the warm-up");
                day.renew(soon, session);
                day.act(soon, session, What::Ready(session, grant, false));
                let at = soon + day.chance.between(1, 200_000);
                day.keep(session, at);
                let last = day.sessions[session].sign.at;
                day.calm.push((granted.at, at));
                open.say(&format!("who died at {last} while it warmed up"));
                open.causes.push((GapCause::WarmUp, last));
                self.fall_silent(day, open, session);
                None
            }
            First::NeverHeard => {
                day.count("never heard of after the grant");
                if day.sessions[session].sign.at > granted.at {
                    return Some(granted);
                }
                let words = format!("{}: silent since its grant at {}", self.name, granted.at);
                let next = Open {
                    words,
                    since: day.silent(self.holder, None),
                    causes: Vec::new(),
                    before: grant,
                    free: granted.at,
                    over: granted.at,
                    serves: None,
                };
                let over = std::mem::replace(open, next);
                day.close(self.name, over, granted, grant);
                self.fall_silent(day, open, session);
                None
            }
        }
    }

    pub(crate) fn fall_silent(&self, day: &mut Day, open: &mut Open, session: SessionNumber) {
        for (cause, until) in day.silence(session) {
            open.add(cause, until);
        }
        open.over = day.overdue(session) + day.sessions[session].numbers.hard;
        let mid = (day.sessions[session].sign.at + open.free) / 2;
        day.perhaps_black_out(mid);
    }
}
