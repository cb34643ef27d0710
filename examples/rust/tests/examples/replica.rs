//! The replica: drained before it leaves, its successor named, and what is cut off is said.

use std::cell::RefCell;
use std::rc::Rc;

use leasehold::testing::{TestStore, World};
use leasehold::{Drain, Election, Error, Leadership, SessionOptions};
use leasehold_examples::replica::{Event, run};
use tokio::sync::Notify;

use super::{MOMENT, Running, SECOND, together};

/// What a test does to one replica, and what it hears from it.
#[derive(Default)]
struct Hands {
    terminate: Notify,
    finish_item: Notify,
    out_of_time: Notify,
    heard: RefCell<Vec<String>>,
}

impl Hands {
    fn hear(&self, event: &Event) {
        // Tokens differ from store to store; what matters is the word.
        let word = event.to_string().split(' ').next().unwrap().to_owned();
        self.heard.borrow_mut().push(match event {
            Event::Leads(_) | Event::Releases(_) => word,
            other => other.to_string(),
        });
    }

    fn heard(&self) -> Vec<String> {
        self.heard.borrow().clone()
    }
}

fn candidate(store: &TestStore, label: &str) -> Election {
    let options = SessionOptions::new().label(label);
    store.election("payments").session(options).await_successor(SECOND).build().unwrap()
}

fn replica<'a>(
    world: &'a World,
    election: &'a Election,
    hands: &Rc<Hands>,
) -> Running<'a, Result<(), Error>> {
    let hands = Rc::clone(hands);
    Running::new(world, async move {
        let work = async |_leadership: &Leadership, drain: &Drain| {
            while let Ok(work) = drain.begin() {
                hands.finish_item.notified().await;
                drop(work);
            }
        };
        let out_of_time = async || hands.out_of_time.notified().await;
        run(election, work, hands.terminate.notified(), out_of_time, |event| hands.hear(&event)).await
    })
}

#[test]
fn a_replica_finishes_its_work_before_the_next_one_leads_and_names_it() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (candidate(&one, "first"), candidate(&two, "second"));
    let (old, new) = (Rc::new(Hands::default()), Rc::new(Hands::default()));
    let mut leaving = replica(&world, &first, &old);
    together(&world, &mut [&mut leaving], MOMENT);
    let mut coming = replica(&world, &second, &new);
    together(&world, &mut [&mut leaving, &mut coming], SECOND);
    assert_eq!((old.heard(), new.heard().len()), (vec!["leads".to_owned()], 0));

    old.terminate.notify_one();
    together(&world, &mut [&mut leaving, &mut coming], SECOND * 2);
    assert_eq!(old.heard(), ["leads", "drains 1"]);
    assert_eq!(new.heard().len(), 0, "not while work is in flight");

    old.finish_item.notify_one();
    assert!(leaving.go_on(MOMENT * 5).expect("nothing is left to do").is_ok());
    assert_eq!(old.heard(), ["leads", "drains 1", "releases", "resigned second"]);
    assert!(coming.go_on(MOMENT).is_none());
    assert_eq!(new.heard(), ["leads"]);
}

#[test]
fn what_does_not_finish_in_time_is_cut_off_before_the_lease_is_given_back() {
    let world = World::new();
    let store = world.store();
    let election = candidate(&store, "only");
    let hands = Rc::new(Hands::default());
    let mut leaving = replica(&world, &election, &hands);
    together(&world, &mut [&mut leaving], MOMENT);
    hands.terminate.notify_one();
    together(&world, &mut [&mut leaving], SECOND);
    hands.out_of_time.notify_one();
    assert!(leaving.go_on(SECOND * 2).expect("nobody comes").is_ok());
    assert_eq!(hands.heard(), ["leads", "drains 1", "cut-off 1", "releases", "resigned -"]);
}

#[test]
fn a_replica_that_only_waits_leaves_at_once_and_without_its_place() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = candidate(&one, "first");
    let leadership = world.run(first.campaign()).unwrap();
    let second = candidate(&two, "second");
    let hands = Rc::new(Hands::default());
    let mut waiting = replica(&world, &second, &hands);
    together(&world, &mut [&mut waiting], SECOND);
    let name = leadership.lease().resource();
    assert_eq!(world.run(one.lease(name)).unwrap().unwrap().waiting, 1);
    hands.terminate.notify_one();
    assert!(waiting.go_on(MOMENT).expect("there is nothing to finish").is_ok());
    world.advance(MOMENT);
    assert_eq!(world.run(one.lease(name)).unwrap().unwrap().waiting, 0);
    assert!(hands.heard().is_empty());
}
