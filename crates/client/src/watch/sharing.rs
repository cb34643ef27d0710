//! Watches that share a connection: those of one store with the same prefix that begin now.
//!
//! A program may have a watch in each of very many tasks. With a connection each, a change is written, carried and read once for each of
//! them. Promises that every one of them is told what it would be told by itself, and that none waits for another for long: whoever does not
//! take what it is told gets a connection of its own, behind the last that it took. Nobody joins a connection that waits for somebody, or that
//! has broken: it may be over for them alone. What it deliberately does not do: watches that begin after a revision have a connection each,
//! since no two of them are at the same place, and one that has parted does not come back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::select_all;
use leasehold_core::Revision;
use leasehold_core::protocol::Changes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};

use super::task::{Listener, Over, Task};
use crate::driver::Visitor;

/// How long those without room are waited for while others have taken what they were told: an application may just not have had its turn. For
/// each of them in all, until it has taken everything: one that is always a little late would slow down the others for ever.
const GRACE: Duration = Duration::from_millis(200);

type Application = mpsc::Sender<Result<Changes, Over>>;

/// The connections of a store that are shared, by what is watched on them.
#[derive(Debug, Default)]
pub(crate) struct Sharing(Mutex<HashMap<String, Weak<Shared>>>);

/// A connection that is shared, for as long as anybody has this.
#[derive(Debug)]
pub(super) struct Shared {
    fan: Arc<Fan>,
    /// Its end is that of the connection.
    _until: oneshot::Sender<()>,
}

/// When a watch came to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// It was made for it: where it begins is from now on.
    First,
    /// Before it had begun: it is told where that is.
    Early,
    /// When everything up to here had been told: it is told nothing but what comes after.
    Underway(Revision),
}

impl Sharing {
    /// Lets a watch that begins now share a connection, which is made if there is none.
    pub(super) fn join(
        &self,
        store: &str,
        visitor: &Visitor,
        prefix: &str,
        application: Application,
    ) -> (Arc<Shared>, Joined) {
        let mut shared = lock(&self.0);
        if let Some(present) = shared.get(prefix).and_then(Weak::upgrade)
            && let Some(joined) = present.fan.join(&application)
        {
            return (present, joined);
        }
        shared.retain(|_, present| present.strong_count() > 0);
        let (until, over) = oneshot::channel();
        let fan = Arc::new(Fan {
            place: Place { visitor: visitor.clone(), store: store.to_owned(), prefix: prefix.to_owned() },
            members: Mutex::new(Members {
                all: vec![Member::new(application)],
                last: None,
                waits: false,
                broken: false,
                ended: false,
            }),
            deserted: Notify::new(),
            over: tokio::sync::Mutex::new(over),
        });
        let made = Arc::new(Shared { fan: Arc::clone(&fan), _until: until });
        shared.insert(prefix.to_owned(), Arc::downgrade(&made));
        visitor.spawn(Task::new(visitor, store, prefix, None, Listener::Many(fan)).run());
        (made, Joined::First)
    }
}

/// All that share a connection, for the task that reads from it.
#[derive(Debug)]
pub(super) struct Fan {
    place: Place,
    members: Mutex<Members>,
    /// Nobody is left: all have parted.
    deserted: Notify,
    over: tokio::sync::Mutex<oneshot::Receiver<()>>,
}

/// What is watched, and where.
#[derive(Debug)]
struct Place {
    visitor: Visitor,
    store: String,
    prefix: String,
}

#[derive(Debug)]
struct Members {
    all: Vec<Member>,
    /// The last revision that they were told; nothing before they were told where the watch begins. Whoever comes later is not told that.
    last: Option<Revision>,
    /// Somebody is waited for.
    waits: bool,
    /// The connection broke, and there is no other yet.
    broken: bool,
    ended: bool,
}

#[derive(Debug, Clone)]
struct Member {
    application: Application,
    /// The last revision that it was given.
    last: Option<Revision>,
    /// For how long it was waited for since it had last taken everything.
    waited: Duration,
}

impl Member {
    fn new(application: Application) -> Self {
        Self { application, last: None, waited: Duration::ZERO }
    }
}

impl Fan {
    /// Adds a watch, unless what becomes of this connection may be none of its business.
    fn join(&self, application: &Application) -> Option<Joined> {
        let mut members = lock(&self.members);
        if members.ended || members.waits || members.broken {
            return None;
        }
        members.all.push(Member::new(application.clone()));
        Some(members.last.map_or(Joined::Early, Joined::Underway))
    }

    /// Tells everybody. While nobody has room they are waited for, as one is that has the connection to itself; those that have none for a while
    /// although others have part.
    pub(super) async fn tell(&self, changes: Changes) {
        let without_room = self.give(&changes);
        if without_room.is_empty() {
            return;
        }
        if without_room.len() == lock(&self.members).all.len() {
            // Nobody is held up: the application as a whole stands still, or is gone.
            somebody_has_room(&without_room).await;
        }
        let began = leasehold_clock::read();
        let grace = tokio::time::sleep(GRACE);
        tokio::pin!(grace);
        for application in without_room {
            tokio::select! {
                permit = application.reserve() => {
                    if let Ok(permit) = permit {
                        permit.send(Ok(changes.clone()));
                        let waited = leasehold_clock::read().since(began).greater();
                        self.note(&application, changes.revision, waited);
                    }
                }
                () = &mut grace => break,
            }
        }
        let mut members = lock(&self.members);
        members.waits = false;
        members.all.retain_mut(|member| {
            let has_it = member.last.is_some_and(|last| last >= changes.revision);
            // It may have made room while others were waited for.
            if !has_it && member.application.try_send(Ok(changes.clone())).is_err() {
                self.part(member);
                return false;
            }
            member.last = Some(changes.revision);
            true
        });
        self.look(&mut members);
    }

    /// Gives the changes to all that have room, and says who has none. How far the log has come is told only to those who have taken everything.
    fn give(&self, changes: &Changes) -> Vec<Application> {
        let mut members = lock(&self.members);
        members.last = Some(changes.revision);
        members.broken = false;
        let mut without_room = Vec::new();
        let nobody_has_room = members.all.iter().all(|member| member.application.capacity() == 0);
        members.all.retain_mut(|member| {
            let has_taken_all = member.application.capacity() == member.application.max_capacity();
            if has_taken_all {
                member.waited = Duration::ZERO;
            }
            if changes.changes.is_empty() && !has_taken_all && !member.application.is_closed() {
                return true;
            }
            match member.application.try_send(Ok(changes.clone())) {
                Ok(()) => member.last = Some(changes.revision),
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(_)) if nobody_has_room || member.waited < GRACE => {
                    without_room.push(member.application.clone());
                }
                Err(TrySendError::Full(_)) => {
                    self.part(member);
                    return false;
                }
            }
            true
        });
        members.waits = !without_room.is_empty();
        self.look(&mut members);
        without_room
    }

    fn note(&self, application: &Application, revision: Revision, waited: Duration) {
        for member in &mut lock(&self.members).all {
            if member.application.same_channel(application) {
                member.last = Some(revision);
                member.waited += waited;
            }
        }
    }

    /// Ends what nobody listens to any more: those that parted may live on.
    fn look(&self, members: &mut Members) {
        if members.all.is_empty() {
            members.ended = true;
            self.deserted.notify_one();
        }
    }

    /// The connection broke: until there is another, nobody joins.
    pub(super) fn breaks(&self) {
        lock(&self.members).broken = true;
    }

    /// Gives a watch that is behind a connection of its own.
    fn part(&self, member: &Member) {
        let Place { visitor, store, prefix } = &self.place;
        let listener = Listener::One(member.application.clone());
        visitor.spawn(Task::new(visitor, store, prefix, member.last, listener).run());
    }

    /// Tells everybody why it is over. Nobody joins any more.
    pub(super) fn end(&self, over: &Over) {
        let mut members = lock(&self.members);
        members.ended = true;
        for member in members.all.drain(..) {
            if let Err(TrySendError::Full(told)) = member.application.try_send(Err(over.clone())) {
                self.place.visitor.spawn(async move { drop(member.application.send(told).await) });
            }
        }
    }

    /// Ends when nobody has a watch on this connection any more.
    pub(super) async fn closed(&self) {
        let mut over = self.over.lock().await;
        tokio::select! {
            // Nothing is ever sent: this is the end.
            _ = &mut *over => {}
            () = self.deserted.notified() => {}
        }
    }
}

/// Ends when one of them has room, or all are gone.
async fn somebody_has_room(applications: &[Application]) {
    let mut waiting: Vec<_> = applications.iter().map(|one| Box::pin(one.reserve())).collect();
    while !waiting.is_empty() {
        let (room, _, others) = select_all(waiting).await;
        if room.is_ok() {
            return;
        }
        waiting = others;
    }
}

/// Lets go of everybody who is still there when it is dropped.
pub(super) struct Abandons(pub(super) Arc<Fan>);

impl Drop for Abandons {
    fn drop(&mut self) {
        let mut members = lock(&self.0.members);
        members.ended = true;
        members.all.clear();
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
