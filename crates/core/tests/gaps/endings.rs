//! How a holder that is alone loses its lease, and what a restore finds.

use leasehold_core::gap::GapCause;

use super::alone::{Alone, Ending, Next};
use super::day::{Day, Holder, Open, What, stretch};
use super::truth::{Point, Since};

impl Alone {
    /// The holder is gone.
    pub(crate) fn end(&mut self, day: &mut Day, ending: Ending) -> Open {
        let (name, Holder { session, grant, .. }) = (self.name, self.holder);
        let third = day.sessions[session].numbers.ttl / 3;
        let delay = day.sessions[session].numbers.delay;
        let mut open = Open {
            words: format!("{name}: {ending:?} at {}", self.now),
            since: day.silent(self.holder, None),
            causes: Vec::new(),
            before: grant,
            free: self.now,
            over: self.now,
            serves: None,
        };
        day.count(match ending {
            Ending::Released => "release",
            Ending::Closed => "close",
            Ending::DiedWithItsSocket => "death with the end of its socket",
            Ending::DiedInSilence => "death without a word",
            Ending::DiedAfterACommand => "death after a command",
            Ending::ReleasedWhenOverdue => "release of an overdue holder",
            Ending::RevokedAndAcknowledged => "revoke, acknowledged",
            Ending::RevokedAndSilent | Ending::RevokedAndGone => "revoke, not acknowledged",
            Ending::RevokedNow => "revoke --now",
            Ending::RevokedThenNow => "revoke, then --now",
            Ending::RevokedWhenOverdue => "revoke of an overdue holder",
        });
        let gone = |what| (what, self.now);
        let (what, at) = match ending {
            Ending::Released => gone(What::Release(session, grant)),
            Ending::Closed => gone(What::Close(session)),
            Ending::RevokedNow => gone(What::Revoke { grant, now: true }),
            Ending::DiedInSilence | Ending::DiedAfterACommand | Ending::DiedWithItsSocket => {
                let at = day.sessions[session].sign.at.max(self.now - third.min(self.now)) + third / 2;
                let at = at.min(day.overdue(session));
                match ending {
                    Ending::DiedAfterACommand => {
                        day.act(at, session, What::Value(session, grant));
                    }
                    Ending::DiedWithItsSocket => {
                        let attach = day.sessions[session].attach;
                        day.act(at, session, What::Detached(session, attach));
                        // The word about an attachment of before says nothing, and neither does a late one.
                        day.push(at + 1, name, What::Detached(session, attach - 1));
                        day.push(day.overdue(session) + 1, name, What::Detached(session, attach));
                    }
                    _ => {}
                }
                day.perhaps_black_out(day.sessions[session].sign.at);
                day.end_term(name, self.holder);
                self.fall_silent(day, &mut open, session);
                return open;
            }
            Ending::ReleasedWhenOverdue | Ending::RevokedWhenOverdue => {
                let grace = day.sessions[session].numbers.grace;
                if grace == 0 {
                    return self.end(day, Ending::Released);
                }
                let overdue = day.overdue(session);
                self.now = overdue + day.chance.between(1, grace);
                open.causes.push((GapCause::Detection, overdue));
                open.causes.push((GapCause::Grace, self.now));
                day.end_term(name, self.holder);
                let revoked = ending == Ending::RevokedWhenOverdue;
                let what =
                    if revoked { What::Revoke { grant, now: false } } else { What::Release(session, grant) };
                let mark = day.push(self.now, name, what);
                open.since = day.silent(self.holder, Some(mark));
                open.free = self.now;
                if revoked && delay > 0 {
                    open.add(GapCause::CoolDown, self.now + delay);
                } else {
                    open.serves = Some(mark);
                }
                return open;
            }
            Ending::RevokedAndAcknowledged
            | Ending::RevokedAndSilent
            | Ending::RevokedAndGone
            | Ending::RevokedThenNow => {
                return self.revoke(day, open, ending);
            }
        };
        let mark = day.push(at, name, what);
        if ending == Ending::RevokedNow {
            open.since = day.silent(self.holder, Some(mark));
            open.causes.push((GapCause::Detection, at));
        } else {
            open.since = Since::Left(day.lease(self.holder), Point { at, mark });
        }
        open.serves = Some(mark);
        day.sessions[session].sign = Point { at, mark };
        day.end_term(name, self.holder);
        day.perhaps_black_out(at);
        open
    }

    fn revoke(&mut self, day: &mut Day, mut open: Open, ending: Ending) -> Open {
        let (name, Holder { session, grant, .. }) = (self.name, self.holder);
        let (until, delay) = (day.overdue(session), day.sessions[session].numbers.delay);
        let mark = day.push(self.now, name, What::Revoke { grant, now: false });
        open.since = day.silent(self.holder, Some(mark));
        open.causes.push((GapCause::Detection, self.now));
        day.sessions[session].sign = Point { at: self.now, mark };
        day.end_term(name, self.holder);
        day.perhaps_black_out(self.now);
        let earlier = self.now + day.chance.between(0, (until - self.now).min(9_000));
        match ending {
            Ending::RevokedAndSilent | Ending::RevokedAndGone => {
                if ending == Ending::RevokedAndSilent && day.chance.once_in(2) {
                    // It goes on renewing, which moves nothing, and dies later.
                    day.keep(session, until);
                }
                open.add(GapCause::Revoke, until);
                open.add(GapCause::CoolDown, until + delay);
            }
            Ending::RevokedThenNow => {
                open.add(GapCause::Revoke, earlier);
                open.serves = Some(day.push(earlier, name, What::Revoke { grant, now: true }));
            }
            _ => {
                open.add(GapCause::Revoke, earlier);
                let revoked = mark;
                let mark = day.act(earlier, session, What::Release(session, grant));
                let given_up = Point { at: earlier, mark };
                open.since = Since::Acknowledged(day.lease(self.holder), revoked, given_up);
                if delay > 0 {
                    open.add(GapCause::CoolDown, earlier + delay);
                } else {
                    open.serves = Some(mark);
                }
            }
        }
        open
    }
}

impl Alone {
    /// Brings the name to where the restore will find it: held, free, revoked or in somebody's grace.
    pub(crate) fn stop(&mut self, day: &mut Day, restored: u64) -> Option<Open> {
        let (session, grant) = (self.holder.session, self.holder.grant);
        let numbers = day.sessions[session].numbers.clone();
        let state = day.chance.between(0, 4);
        if state == 0 && numbers.grace > 0 {
            day.count("restore in somebody's grace");
            let last = restored - stretch(numbers.ttl) - day.chance.between(1, numbers.grace);
            day.keep(session, last - 1);
            day.renew(last, session);
            let words = format!("{}: a restore in the grace of a holder silent since {last}", self.name);
            let overdue = day.overdue(session);
            let causes = vec![(GapCause::Detection, overdue), (GapCause::Grace, restored)];
            day.end_term(self.name, self.holder);
            return Some(Open {
                words,
                since: day.silent(self.holder, None),
                causes,
                before: grant,
                free: restored,
                over: restored,
                serves: None,
            });
        }
        self.now = restored - day.chance.between(1, 15_000);
        day.keep(session, self.now);
        match state {
            1 => {
                day.count("restore while nobody held it");
                let mut open = self.end(day, Ending::Released);
                open.causes.push((GapCause::Queue, restored));
                Some(open)
            }
            2 if day.overdue(session) >= restored => {
                day.count("restore while a revoke was pending");
                let mut open = self.end(day, Ending::RevokedAndGone);
                open.causes.truncate(1);
                open.causes.push((GapCause::Revoke, restored));
                Some(open)
            }
            _ => {
                day.keep(session, restored - 1);
                None
            }
        }
    }

    /// Everything has ended; somebody waits for the wait to be over, or comes later.
    pub(crate) fn restored(&mut self, day: &mut Day, open: Option<Open>, restored: Point, wait: u64) {
        let Point { at, .. } = restored;
        let held = open.is_none();
        let session = self.holder.session;
        let mut open = open.unwrap_or_else(|| {
            day.sessions[session].sign = restored;
            day.end_term(self.name, self.holder);
            Open {
                words: format!("{}: a restore at {at} ended everything", self.name),
                since: day.silent(self.holder, Some(restored.mark)),
                causes: vec![(GapCause::Detection, at)],
                before: self.holder.grant,
                free: at,
                over: at,
                serves: None,
            }
        });
        let released = open.causes.first().is_some_and(|(cause, _)| *cause == GapCause::Queue);
        (open.free, open.over, open.serves) = (at, at, None);
        if held || !released {
            open.add(GapCause::CoolDown, at + day.sessions[session].numbers.delay);
        }
        open.add(GapCause::Restore, at + wait);
        open.say("then the wait of a restore");
        self.now = at + 1;
        // Where nothing keeps the name from anybody, whoever asks has no need to wait.
        let waits = open.free > at + 3_000 && day.chance.once_in(2);
        let coming = self.prepare(day, if waits { Next::Waiter } else { Next::Newcomer });
        self.go_on(day, open, coming);
    }
}
