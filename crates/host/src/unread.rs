//! What a client leaves unread: how much memory that is, roughly, and how to wait until it is less.
//!
//! Bytes are counted and not messages, since a page of leases with long values is a thousand times an answer to a renewal.

use std::mem::size_of;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::answer::{Answer, Grant, HeldLease, Holdings, Item, ItemKind, Reply};
use leasehold_core::gap::GapView;
use leasehold_core::protocol::{ReadAnswer, RequestId, Response, ToClient};
use leasehold_core::table::{HolderView, LeaseView, PastView, SessionView, WaiterView};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::room::{Held, LONGEST_TURN, Page, Room, SMALL};

/// Bytes that a client may leave unread before its questions wait: some ten thousand answers to renewals.
pub(crate) const MAX_UNREAD: usize = 2 * 1024 * 1024;
/// Bytes that may wait for a client before its connection is ended; it attaches anew. Questions wait while far less is unread, so only what
/// was asked all at once, before the first answer, comes near this, or a client that sends commands and reads nothing.
pub(crate) const MAX_OUTGOING: usize = 64 * 1024 * 1024;

/// What a client leaves unread without being counted among all: some answers to renewals, and less than its connection costs.
const UNCOUNTED: usize = 4 * 1024;
/// How often it is looked whether a reader that is kept waiting by others may go on.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Bytes on their way to one client.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    bytes: AtomicUsize,
    /// It became less than would keep a reader waiting.
    less: Notify,
    /// For what all clients leave unread.
    pub(crate) room: Room,
    /// The page that is being made: the answer to this question.
    page: Mutex<Option<(RequestId, Page)>>,
    /// It is made.
    made: Notify,
}

/// Messages on their way to a client, from the loop until they are written. They count as long as this lives.
#[derive(Debug)]
pub struct OnTheWay {
    unread: Arc<Unread>,
    bytes: usize,
    _held: Option<Held>,
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.unread.remove(self.bytes);
    }
}

impl Unread {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, ..Self::default() }
    }

    /// Counts messages in, unless that would be too much. What one turn has to say goes out, however much it is.
    pub(crate) fn add(self: &Arc<Self>, messages: &[ToClient]) -> Option<OnTheWay> {
        let more = weight_of(messages);
        let before = self.bytes.fetch_add(more, Ordering::Relaxed);
        // From here on it is counted out by what is dropped.
        let mut sent = OnTheWay { unread: Arc::clone(self), bytes: more, _held: None };
        self.page_is_made(messages);
        if before + more > UNCOUNTED {
            sent._held = Some(self.room.count(more));
        }
        (before == 0 || before + more <= MAX_OUTGOING).then_some(sent)
    }

    fn remove(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before >= MAX_UNREAD && before - bytes < MAX_UNREAD {
            self.less.notify_one();
        }
    }

    /// Waits while it is too much. For one that waits at a time.
    pub(crate) async fn wait_until_less(&self) {
        while self.is_much() {
            let _ = timeout(LOOK_AGAIN, self.less.notified()).await;
        }
    }

    /// Whether questions of this client must wait: it leaves much unread, or some while there is no room for others.
    pub(crate) fn is_much(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes >= MAX_UNREAD || (bytes >= SMALL && self.room.is_scarce())
    }

    /// The page that is asked for next has its turn and its room.
    pub(crate) fn begin_page(&self, id: RequestId, page: Page) {
        *self.lock() = Some((id, page));
    }

    /// Waits until the page that was begun is made. After a while its turn passes to others; then it is waited for no more.
    pub(crate) async fn wait_until_made(&self) {
        if timeout(LONGEST_TURN, self.made.notified()).await.is_err() {
            *self.lock() = None;
        }
    }

    fn page_is_made(&self, messages: &[ToClient]) {
        let mut page = self.lock();
        let is_answer = |id: &RequestId| {
            messages.iter().any(|m| matches!(m, ToClient::Response { id: of, .. } if of == id))
        };
        if page.as_ref().is_some_and(|(id, _)| is_answer(id)) {
            *page = None;
            self.made.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(RequestId, Page)>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a refusal in the place of answers that are too large while there is no room. Pages had theirs before they were made.
pub(crate) fn refuse_large(messages: &mut [ToClient], room: &Room) {
    for message in messages.iter_mut().filter(|_| room.is_scarce()) {
        let ToClient::Response { response, .. } = message else { continue };
        let Response::Read { answer, .. } = &*response else { continue };
        let is_page = matches!(
            answer,
            ReadAnswer::Leases { .. }
                | ReadAnswer::Sessions { .. }
                | ReadAnswer::Alarms(_)
                | ReadAnswer::Gaps(_)
        );
        if !is_page && let Err(failure) = room.admit(weight_of_answer(answer)) {
            *response = Response::Failed(failure);
        }
    }
}

/// Something that is shown with its name, which has 512 bytes at most, and a few numbers.
const NAMED: usize = 1_024;

/// The members of a cluster with their names and addresses: there are a few.
const CLUSTER: usize = 4_096;

/// What messages weigh together.
fn weight_of(messages: &[ToClient]) -> usize {
    messages.iter().map(weight).sum()
}

/// Bytes of memory of a message, roughly.
fn weight(message: &ToClient) -> usize {
    let beside = match message {
        ToClient::Response { response: Response::Read { answer, .. }, .. } => weight_of_answer(answer),
        ToClient::Response { response: Response::Reply(Reply::Renewed(renewed)), .. } => {
            renewed.holdings.as_ref().map_or(0, weight_of_holdings)
        }
        ToClient::Response { response: Response::Cluster(_), .. } => CLUSTER,
        ToClient::Items { items, .. } => items.iter().map(weight_of_item).sum(),
        ToClient::Response { .. } | ToClient::Hint { .. } | ToClient::Watched { .. } => 0,
    };
    size_of::<ToClient>() + beside
}

/// What a plain session has. Names are shared with the table.
fn weight_of_holdings(holdings: &Holdings) -> usize {
    holdings.leases.len() * size_of::<HeldLease>() + holdings.waits.len() * NAMED
}

fn weight_of_item(item: &Item) -> usize {
    let grants = match &item.kind {
        ItemKind::Answer { answer: Answer::Granted(grants) | Answer::AlreadyGranted(grants), .. }
        | ItemKind::WaitGranted { grants, .. } => grants.len(),
        _ => 0,
    };
    size_of::<Item>() + grants * size_of::<Grant>()
}

pub(crate) fn weight_of_answer(answer: &ReadAnswer) -> usize {
    match answer {
        ReadAnswer::Lease(lease) => lease.as_deref().map_or(0, weight_of_lease),
        ReadAnswer::Leases { leases, .. } => leases.iter().map(weight_of_lease).sum(),
        ReadAnswer::Sessions { sessions, .. } => sessions.len() * size_of::<SessionView>(),
        ReadAnswer::History(past) => past.len() * size_of::<PastView>(),
        ReadAnswer::Register(Some((value, _))) => value.as_bytes().len(),
        ReadAnswer::Alarms(alarms) => alarms.len() * NAMED,
        ReadAnswer::Gaps(gaps) => {
            gaps.names.iter().map(|name| NAMED + name.gaps.len() * size_of::<GapView>()).sum()
        }
        ReadAnswer::Cluster(_) => CLUSTER,
        ReadAnswer::Register(None) | ReadAnswer::Check(_) | ReadAnswer::Status(_) => 0,
    }
}

fn weight_of_lease(lease: &LeaseView) -> usize {
    let values = lease.holders.iter().filter_map(|holder| holder.value.as_ref());
    size_of::<LeaseView>()
        + lease.holders.len() * size_of::<HolderView>()
        + lease.queue.len() * size_of::<WaiterView>()
        + values.map(|value| value.as_bytes().len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::answer::Renewed;
    use leasehold_core::protocol::{Failure, RequestId};
    use leasehold_core::{
        CommandNumber, ItemNumber, RenewalNumber, ResourceName, Revision, SessionId, Token, Value,
    };
    use std::time::Duration;

    fn answers(count: usize, bytes: usize) -> Vec<ToClient> {
        let value = Value::new(vec![1; bytes]).unwrap();
        let answer = ReadAnswer::Register(Some((value, Token::from_u64(1))));
        let response = Response::Read { revision: Revision::new(1), answer };
        vec![ToClient::Response { id: RequestId(1), response }; count]
    }

    #[test]
    fn long_values_weigh_what_they_are_and_short_answers_little() {
        let failed = Response::Failed(Failure::OutcomeUnknown);
        let short = weight_of(&[ToClient::Response { id: RequestId(1), response: failed }]);
        assert!(short < 1_024);
        assert!(weight_of(&answers(3, 65_536)) > 3 * 65_536);
    }

    #[test]
    fn what_a_session_has_and_what_it_was_granted_weigh_what_they_are() {
        let name = ResourceName::new("job").unwrap();
        let token = Token::from_u64(1);
        let grant = Grant { resource: name, token, fence: token, slot: None };
        let leases = vec![HeldLease { grant: grant.clone(), release_requested: false }; 1_000];
        let holdings = Some(Holdings { leases, waits: Vec::new() });
        let renewed = Renewed { number: RenewalNumber::NONE, after: ItemNumber::NONE, holdings };
        let response = Response::Reply(Reply::Renewed(renewed));
        assert!(weight_of(&[ToClient::Response { id: RequestId(1), response }]) > 1_000 * size_of::<Grant>());
        let answer = Answer::Granted(vec![grant; 64]);
        let kind = ItemKind::Answer { command: CommandNumber::new(1), answer };
        let items = vec![Item { number: ItemNumber::new(1), kind }; 100];
        let items = ToClient::Items { session: SessionId::from_u64(1), items };
        assert!(weight_of(&[items]) > 6_400 * size_of::<Grant>());
    }

    #[tokio::test]
    async fn a_reader_waits_until_there_is_less_and_no_longer() {
        let unread = Arc::new(Unread::default());
        let batch = answers(MAX_UNREAD / 65_536, 65_536);
        let sent = unread.add(&batch).expect("it is not too much");
        assert!(unread.is_much());
        let waits = unread.wait_until_less();
        tokio::pin!(waits);
        timeout(Duration::from_millis(20), &mut waits).await.expect_err("nothing was read");
        drop(sent);
        timeout(Duration::from_secs(10), waits).await.expect("it goes on");
        unread.wait_until_less().await;
    }

    #[test]
    fn one_turn_may_say_what_it_likes_and_the_next_one_not_beyond_the_bound() {
        let unread = Arc::new(Unread::default());
        let batch = answers(MAX_OUTGOING / 65_536 + 1, 65_536);
        let sent = unread.add(&batch);
        assert!(sent.is_some(), "what one turn has to say goes out");
        assert!(unread.add(&answers(1, 1)).is_none());
        drop(sent);
        assert!(unread.add(&answers(1, 1)).is_some(), "what is dropped counts no more");
    }

    #[tokio::test]
    async fn what_all_leave_unread_keeps_questions_of_those_waiting_that_read_nothing() {
        let room = Room::default();
        let unread = Arc::new(Unread::new(room.clone()));
        let sent = unread.add(&answers(SMALL / 16_384 + 1, 16_384));
        assert!(!unread.is_much());
        let others: Vec<_> = (0..16).map(|_| room.count(usize::MAX)).collect();
        assert!(unread.is_much() && !Unread::new(room.clone()).is_much());
        let [mut large, mut small] = [32_768, 100].map(|bytes| answers(1, bytes));
        for answers in [&mut large, &mut small] {
            refuse_large(answers, &room);
        }
        let is_refused = |answers: &[ToClient]| {
            matches!(
                &answers[0],
                ToClient::Response { response: Response::Failed(Failure::TooMuchUnread { .. }), .. }
            )
        };
        assert_eq!((is_refused(&large), is_refused(&small)), (true, false));
        drop(others);
        assert!(!unread.is_much() && !room.is_scarce());
        drop(sent);
    }

    #[tokio::test]
    async fn a_page_keeps_its_turn_until_it_is_answered_or_for_too_long() {
        let unread = Arc::new(Unread::default());
        unread.begin_page(RequestId(1), unread.room.page().await.unwrap());
        drop(unread.add(&answers(1, 10)));
        unread.wait_until_made().await;
        assert!(unread.lock().is_none());
        unread.begin_page(RequestId(2), unread.room.page().await.unwrap());
        drop(unread.add(&answers(1, 10)));
        assert!(unread.lock().is_some(), "that was the answer to another question");
        unread.wait_until_made().await;
        assert!(unread.lock().is_none(), "it has had its time");
    }
}
