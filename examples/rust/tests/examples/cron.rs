//! The job of cron: one instance works, the other goes home, and a lost lease stops it before the next page.

use std::cell::RefCell;

use leasehold::testing::World;
use leasehold::{Guard, Token};
use leasehold_examples::cron::{Ran, run_once};
use tokio::sync::Notify;

use super::{MOMENT, Running, SECOND};

/// Pages that were written, with their tokens. The second page waits until it may go on.
#[derive(Default)]
struct Report {
    pages: RefCell<Vec<(u32, Token)>>,
    go_on: Notify,
}

impl Report {
    async fn write(&self, page: u32, guard: &Guard<'_>) -> anyhow::Result<()> {
        if page == 1 {
            self.go_on.notified().await;
        }
        self.pages.borrow_mut().push((page, guard.token()?));
        Ok(())
    }
}

#[test]
fn a_second_instance_is_told_who_is_at_it_and_goes_home() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let report = Report::default();
    let write = async |page, guard: &Guard<'_>| report.write(page, guard).await;
    let mut first = Running::new(&world, run_once(&one, "reports", 3, write));
    assert!(first.go_on(MOMENT).is_none(), "it waits on its second page");

    let unused = async |_page, _guard: &Guard<'_>| panic!("nothing is written twice");
    let Ran::Elsewhere { why } = world.run(run_once(&two, "reports", 3, unused)).unwrap() else {
        panic!("the first one is at it")
    };
    assert!(why.starts_with("reports is not free: held by "), "{why}");

    report.go_on.notify_one();
    assert_eq!(first.go_on(MOMENT).unwrap().unwrap(), Ran::Done { pages: 3 });
    drop(first);
    report.go_on.notify_one();
    let again = world.run(run_once(&two, "reports", 3, write)).unwrap();
    assert_eq!(again, Ran::Done { pages: 3 }, "the next night it is anybody's");
    let pages = report.pages.borrow();
    assert_eq!(pages.iter().map(|(page, _)| *page).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
    assert!(pages[3].1 > pages[2].1, "with a greater token");
}

#[test]
fn a_job_that_lost_its_lease_writes_no_further_page() {
    let world = World::new();
    let store = world.store();
    let report = Report::default();
    let write = async |page, guard: &Guard<'_>| report.write(page, guard).await;
    let mut job = Running::new(&world, run_once(&store, "reports", 3, write));
    assert!(job.go_on(MOMENT).is_none());
    store.pause();
    world.advance(SECOND * 15);
    store.unpause();
    report.go_on.notify_one();
    assert!(job.go_on(SECOND).expect("it ends").is_err());
    assert_eq!(report.pages.borrow().len(), 1, "the guard gave no token for the second page");
}
