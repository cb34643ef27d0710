//! The controller: one acts, the other is warm; who leads is told.

use std::cell::RefCell;
use std::future::pending;

use leasehold::Leadership;
use leasehold::testing::World;
use leasehold_examples::controller::{candidate, control, narrate};
use tokio::sync::watch;

use super::{Running, SECOND, together};

#[test]
fn the_standby_takes_over_when_it_is_warm_and_everybody_is_told() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let passes = RefCell::new(Vec::new());
    let pass = |who: &'static str| {
        let passes = &passes;
        async move |leadership: &Leadership| {
            passes.borrow_mut().push((who, leadership.token().unwrap()));
            pending::<()>().await;
        }
    };
    let (warm, is_warm) = watch::channel(false);
    let first = candidate(&one, "payments", "10.0.0.1:80", watch::channel(true).1).unwrap();
    let second = candidate(&two, "payments", "10.0.0.2:80", is_warm).unwrap();
    let mut observer = second.observe();
    let said = RefCell::new(Vec::new());
    let mut narrating =
        Running::new(&world, narrate(&mut observer, |line| said.borrow_mut().push(line.to_owned())));
    let mut leads_first = Running::new(&world, control(&first, pass("first")));
    together(&world, &mut [&mut leads_first], SECOND);
    let mut leads_second = Running::new(&world, control(&second, pass("second")));
    together(&world, &mut [&mut leads_first, &mut leads_second], SECOND);
    assert!(narrating.go_on(SECOND).is_none());

    // The leader is cut off before anybody else is warm: nobody leads, and nobody acts.
    one.cut();
    together(&world, &mut [&mut leads_first, &mut leads_second], SECOND * 15);
    assert_eq!(passes.borrow().len(), 1);
    warm.send(true).unwrap();
    together(&world, &mut [&mut leads_first, &mut leads_second], SECOND);
    assert!(narrating.go_on(SECOND).is_none());
    let passes = passes.borrow();
    assert_eq!(passes.iter().map(|(who, _)| *who).collect::<Vec<_>>(), ["first", "second"]);
    assert!(passes[1].1 > passes[0].1);
    let said = said.borrow();
    assert!(said[0].starts_with("10.0.0.1:80 leads with token "), "{said:?}");
    assert!(said.last().unwrap().starts_with("10.0.0.2:80 leads with token "), "{said:?}");
}
