//! The incidents of a name that several hold: shared, or in slots. The gap begins when the last is gone.

use leasehold_core::Mode;
use leasehold_core::gap::GapCause;

use super::alone::numbers;
use super::day::{Day, Holder, Open, What};
use super::truth::{Point, Since};

/// One name with several holders, all of which act.
pub(crate) struct Several {
    pub(crate) name: usize,
    pub(crate) now: u64,
    holders: Vec<Holder>,
}

impl Several {
    pub(crate) fn begin(day: &mut Day, name: usize, now: u64) -> Self {
        let mut several = Self { name, now, holders: Vec::new() };
        several.join(day);
        several
    }

    fn is_single(&self, day: &Day) -> bool {
        day.modes[self.name] == Mode::Shared
    }

    fn enter(&self, day: &mut Day) -> Holder {
        let numbers = numbers(day, self.name);
        let session = day.open(self.now, self.name, numbers);
        day.acquire(self.now, session)
    }

    /// One more holds it, and acts.
    fn join(&mut self, day: &mut Day) {
        let holder = self.enter(day);
        self.holders.push(holder);
        self.act_on(day);
    }

    /// All of them show that they act, and everything that is true by now must be shown.
    fn act_on(&mut self, day: &mut Day) {
        self.now += day.chance.between(1, 20_000);
        for holder in self.holders.clone() {
            day.keep(holder.session, self.now - 1);
            let mark = day.renew(self.now, holder.session);
            day.events[mark].check = true;
        }
    }

    fn wait(&mut self, day: &mut Day, length: u64) {
        self.now += length;
        for holder in self.holders.clone() {
            day.keep(holder.session, self.now);
        }
    }

    fn release(&mut self, day: &mut Day, holder: Holder) -> Point {
        let mark = day.act(self.now, holder.session, What::Release(holder.session, holder.grant));
        self.holders.retain(|other| other.grant != holder.grant);
        Point { at: self.now, mark }
    }

    pub(crate) fn incident(&mut self, day: &mut Day) {
        let length = day.chance.between(1_000, 700_000);
        self.wait(day, length);
        while self.holders.len() < 2 || (self.holders.len() < 3 && day.chance.once_in(3)) {
            day.count("one more holder");
            self.join(day);
        }
        match day.chance.between(0, 4) {
            0 => self.leave_one_by_one(day),
            1 => self.die_before_the_last_leaves(day, false),
            2 => self.die_before_the_last_leaves(day, true),
            3 => self.stand_still_and_be_left(day),
            _ => self.warm_up_while_another_leaves(day),
        }
    }

    fn opened(&self, words: &str, from: Point, before: usize) -> Open {
        let words = format!("{}: {words} at {}", self.name, from.at);
        let since = Since::Point(from);
        Open { words, since, causes: Vec::new(), before, free: from.at, over: from.at, serves: None }
    }

    /// All release; the last one begins the gap.
    fn leave_one_by_one(&mut self, day: &mut Day) {
        day.count("the last of several releases");
        let mut last = None;
        for holder in self.holders.clone() {
            let length = day.chance.between(0, 9_000);
            self.wait(day, length);
            last = Some((self.release(day, holder), holder.grant));
        }
        let (from, before) = last.expect("there were two or more");
        let open = self.opened("the last of several released", from, before);
        day.perhaps_black_out(self.now);
        self.next(day, open);
    }

    /// All but one leave, the last of those after the other fell silent: the gap begins there, with what is left of the silence.
    fn die_before_the_last_leaves(&mut self, day: &mut Day, found: bool) {
        let dead = self.holders.remove(0);
        let (overdue, hard) = (day.overdue(dead.session), day.sessions[dead.session].numbers.hard);
        let silence = day.silence(dead.session);
        let (grace_over, free) = (silence[1].1, silence[2].1);
        let late = if found {
            day.count("one of several died and was found before the last left");
            (overdue + hard).max(grace_over) + 1
        } else {
            day.count("one of several died before the last left");
            overdue - day.chance.between(0, 100_000)
        };
        let length = late.max(self.now) - self.now;
        self.wait(day, length);
        if found {
            day.push(self.now, self.name, What::Tidy);
        }
        let mut last = None;
        for holder in self.holders.clone() {
            last = Some((self.release(day, holder), holder.grant));
        }
        let (from, before) = last.expect("one was left");
        let mut open = self.opened("the last of several released, another had died", from, before);
        open.add(GapCause::Detection, overdue);
        open.over = open.free.max(overdue + hard);
        if self.is_single(day) {
            open.add(GapCause::Grace, grace_over);
            open.add(GapCause::CoolDown, free);
        } else {
            // Other places were free: whoever had asked would have had one.
            open.free = open.free.max(free).max(open.over);
        }
        self.next(day, open);
    }

    /// One stands still, the others leave, and it comes back in time with its lease.
    fn stand_still_and_be_left(&mut self, day: &mut Day) {
        let still = self.holders.remove(0);
        let numbers = day.sessions[still.session].numbers.clone();
        let overdue = day.overdue(still.session);
        // Who comes back in time does so before the outages on the way have it lapse.
        let in_time = if numbers.hard == 0 { 30_000 } else { 0 };
        let late = overdue - day.chance.between(in_time, 100_000);
        let length = late.max(self.now) - self.now;
        self.wait(day, length);
        let mut last = None;
        for holder in self.holders.clone() {
            last = Some((self.release(day, holder), holder.grant));
        }
        let (from, before) = last.expect("one was left");
        self.holders = vec![still];
        self.now = self.now.max(overdue - in_time + day.chance.between(0, numbers.hard));
        day.calm.push((day.sessions[still.session].sign.at, self.now));
        let mark = day.renew(self.now, still.session);
        if self.now > overdue {
            day.count("one of several stood still and was left alone");
            let mut open = self.opened("the others released while one stood still", from, before);
            open.add(GapCause::Detection, overdue);
            if self.is_single(day) {
                open.add(GapCause::Grace, overdue + numbers.grace);
                open.add(GapCause::CoolDown, overdue + numbers.grace + numbers.delay);
            }
            open.add(GapCause::Queue, self.now);
            day.close(self.name, open, Point { at: self.now, mark }, still.grant);
        }
        self.act_on(day);
    }

    /// One more comes and warms up; nobody acts once the others have left.
    fn warm_up_while_another_leaves(&mut self, day: &mut Day) {
        day.count("warm-up while the last of the others leaves");
        if self.holders.len() == 3 {
            let first = self.holders[0];
            self.release(day, first);
        }
        let warm = self.enter(day);
        day.act(self.now + 1, warm.session, What::Ready(warm.session, warm.grant, false));
        self.now += 1;
        let length = day.chance.between(1, 300_000);
        self.wait(day, length);
        day.keep(warm.session, self.now);
        let mut last = None;
        for holder in self.holders.clone() {
            last = Some((self.release(day, holder), holder.grant));
        }
        let (from, before) = last.expect("there were two");
        day.calm.push((warm.granted.at, self.now + 100_000));
        let mut open = self.opened("the last of the others left in the warm-up", from, before);
        self.holders = vec![warm];
        let length = day.chance.between(1, 100_000);
        self.wait(day, length);
        let mark = day.act(self.now, warm.session, What::Ready(warm.session, warm.grant, true));
        open.add(GapCause::WarmUp, self.now);
        day.close(self.name, open, Point { at: self.now, mark }, warm.grant);
        self.act_on(day);
    }

    /// Somebody comes.
    pub(crate) fn next(&mut self, day: &mut Day, mut open: Open) {
        self.now = open.free.max(open.over) + 1 + day.chance.one_of(&[0, 1, 70, 8_000, 90_000]);
        open.say(&format!("somebody asked at {}", self.now));
        open.add(GapCause::Queue, self.now);
        day.perhaps_black_out(self.now);
        self.holders.clear();
        let holder = self.enter(day);
        day.close(self.name, open, holder.granted, holder.grant);
        self.holders.push(holder);
        self.act_on(day);
    }

    /// Everything ends with a restore, or the day does.
    pub(crate) fn stop(&mut self, day: &mut Day, until: u64) {
        for holder in self.holders.clone() {
            day.keep(holder.session, until);
        }
    }

    pub(crate) fn restored(&mut self, day: &mut Day, restored: Point, wait: u64) {
        let signs = self.holders.iter().map(|holder| (day.sessions[holder.session].sign, holder.grant));
        let (from, last) = signs.max_by_key(|(sign, grant)| (sign.at, *grant)).expect("somebody holds it");
        let mut open = self.opened("a restore ended everything", from, last);
        open.add(GapCause::Detection, restored.at);
        if self.is_single(day) {
            let delays = self.holders.iter().map(|holder| day.sessions[holder.session].numbers.delay);
            open.add(GapCause::CoolDown, restored.at + delays.max().unwrap_or(0));
        }
        open.add(GapCause::Restore, restored.at + wait);
        self.next(day, open);
    }
}
