//! Elections: who leads, what a new leader knows, and what an old one still says.

use leasehold_core::protocol::{Response, ToClient};
use leasehold_core::{Drift, Millis, Reply};
use leasehold_node::{CALLS, ConnectionId, Input, Options};

use crate::actor::{Actor, holder, look};
use crate::world::{World, id_of, is_unknown, millis};

#[test]
fn a_leader_is_elected_and_every_node_grants() {
    for count in [1, 2, 3, 5] {
        let mut world = World::cluster(count);
        let mut tokens = Vec::new();
        for at in 0..count {
            let mut client = Actor::streamed(&mut world, at, at as u64, 5_000);
            tokens.push(client.hold(&mut world, &format!("job/{at}")));
        }
        assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
        let leader = world.the_leader();
        assert!((0..count).all(|at| world.node(at).leader() == Some(id_of(leader))));
        world.run(200);
        assert!((0..count).all(|at| world.node(at).applied() == world.checks.applied()));
    }
}

#[test]
fn one_seed_decides_a_whole_run() {
    let play = || {
        let mut world = World::founded(5, Options::default(), 77);
        let mut seen = Vec::new();
        for _ in 0..4 {
            world.run_until(5_000, |world| world.leader().is_some());
            seen.push((world.now, world.the_leader()));
            let leader = world.the_leader();
            world.crash(leader);
            world.run(700);
            world.start(leader);
            world.run(100);
        }
        seen
    };
    let first = play();
    for _ in 0..4 {
        assert_eq!(play(), first);
    }
}

#[test]
fn voters_that_lose_a_leader_at_one_moment_do_not_split_the_vote() {
    for (count, seed) in [3, 5].into_iter().flat_map(|count| (0..20).map(move |seed| (count, seed))) {
        let mut world = World::founded(count, Options::default(), seed);
        world.run_until(5_000, |world| world.leader().is_some());
        for _ in 0..6 {
            world.run(300);
            let old = world.the_leader();
            let term = world.processes[old].disk.term();
            world.crash(old);
            world.run_until(5_000, |world| world.leader().is_some());
            let next = world.processes[world.the_leader()].disk.term();
            assert_eq!(next, term + 1, "{count} nodes, seed {seed}: a vote was split");
            world.start(old);
        }
    }
}

#[test]
fn a_new_leader_goes_on_from_the_last_stamp_and_gives_no_fresh_ttl() {
    let ttl = 4_000;
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    let mut dead = Actor::streamed(&mut world, leader, 1, ttl);
    let token = dead.hold(&mut world, "job");
    dead.renewed(&mut world);
    let confirmed = world.now;
    let mut without_leader = 0;
    let mut failovers = 0;
    // Three failovers within one ttl; afterwards the cluster is left alone.
    loop {
        world.hop();
        let nanos = u64::try_from(world.hop.as_nanos()).expect("a hop is short");
        let Some(leader) = world.leader() else {
            without_leader += nanos;
            continue;
        };
        if failovers < 3 && world.now > confirmed + (failovers + 1) * 900_000_000 {
            failovers += 1;
            world.crash(leader);
            for process in 0..3 {
                if process != leader && !world.is_up(process) {
                    world.start(process);
                }
            }
            continue;
        }
        let lease = world.node(leader).table().lease(&crate::actor::name("job"));
        if lease.is_none_or(|lease| lease.holders.iter().all(|holder| holder.token != token)) {
            break;
        }
        assert!(world.now < confirmed + 30_000_000_000, "it never ends");
    }
    assert_eq!(failovers, 3);
    let served = (world.now - confirmed - without_leader) / 1_000_000;
    let least = Drift::DEFAULT.stretch(Millis::new(ttl)).get();
    let most = least + 3 * (ttl / 8).min(1_000) + ttl / 8 + 100;
    assert!((least - 50..=most).contains(&served), "it ended after {served} ms, not {least} to {most}");
}

#[test]
fn an_old_leader_does_not_say_that_a_session_is_not_there_which_it_has_not_heard_of() {
    let (mut world, old, leader) = deposed_unheard();
    let mut client = Actor::streamed(&mut world, leader, 1, 60_000);
    // It wakes, and is asked before it can hear that another leads.
    wakes(&mut world, old);
    let connection = world.connection();
    let attach = client.attach();
    world.ask(old, connection, attach.clone());
    let plain = Actor::plain(&mut world, leader, 2, 60_000);
    world.ask(old, CALLS, plain.plain_renew());
    world.run(1_500);
    let said = |to: ConnectionId, world: &World| {
        let answers = world.sent.iter().filter(|(at, connection, _)| (*at, *connection) == (old, to));
        answers.map(|(_, _, message)| format!("{message:?}")).collect::<String>()
    };
    assert!(!said(connection, &world).contains("NotYourSession"), "{}", said(connection, &world));
    assert!(!said(CALLS, &world).contains("NotYourSession"), "{}", said(CALLS, &world));
    // Once it hears from the others, what it could not answer is.
    world.net.heal_all();
    world.run(1_500);
    client.attaches(&mut world, old);
    client.renewed(&mut world);
}

/// A leader that stood still while another was elected, wakes, and hears nothing from the others.
fn deposed_unheard() -> (World, usize, usize) {
    let mut world = World::cluster(3);
    let old = world.the_leader();
    world.processes[old].stalled = true;
    world.run_until(3_000, |world| world.leader().is_some_and(|leader| leader != old));
    let leader = world.the_leader();
    world.isolate(old);
    (world, old, leader)
}

fn wakes(world: &mut World, old: usize) {
    world.processes[old].inbox.retain(|input| !matches!(input, Input::Peer { .. } | Input::PeerLost(_)));
    world.processes[old].stalled = false;
}

#[test]
fn a_call_that_waits_for_a_quorum_goes_with_its_caller() {
    for hangs_up in [true, false] {
        let (mut world, old, leader) = deposed_unheard();
        let holder = Actor::plain(&mut world, leader, 1, 60_000);
        holder.take(&mut world, "job");
        let plain = Actor::plain(&mut world, leader, 2, 60_000);
        wakes(&mut world, old);
        let connection = if hangs_up { world.connection() } else { CALLS };
        let id = world.ask(old, connection, plain.held_acquire("job", 60_000, 1));
        world.run(20);
        let gone =
            if hangs_up { Input::Disconnected(connection) } else { Input::Abandoned { connection, id } };
        world.processes[old].inbox.push(gone);
        world.run(20);
        world.net.heal_all();
        world.run(3_000);
        let queue =
            world.node(leader).table().lease(&"job".parse().unwrap()).map_or(0, |lease| lease.queue.len());
        assert_eq!(queue, 0, "nobody waits, and it was sent on all the same");
    }
}

#[test]
fn a_node_that_stops_does_not_keep_calls_that_wait_for_a_quorum() {
    let (mut world, old, leader) = deposed_unheard();
    let holder = Actor::plain(&mut world, leader, 1, 60_000);
    holder.take(&mut world, "job");
    let plain = Actor::plain(&mut world, leader, 2, 60_000);
    wakes(&mut world, old);
    let call = world.ask(old, CALLS, plain.held_acquire("job", 60_000, 1));
    world.run(20);
    world.processes[old].inbox.push(Input::Drain);
    world.run(20);
    world.net.heal_all();
    world.run(5_000);
    assert!(world.response(call).is_some(), "a caller is told");
    assert!(!world.is_up(old) || world.node(old).is_drained(), "it stops");
}

#[test]
fn few_requests_wait_that_name_sessions_nobody_has_heard_of() {
    let (mut world, old, leader) = deposed_unheard();
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    wakes(&mut world, old);
    let asked: Vec<_> = (0..257).map(|_| world.ask(old, CALLS, plain.plain_renew())).collect();
    world.run(20);
    let refused: Vec<_> = asked.iter().filter_map(|id| world.response(*id)).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(format!("{refused:?}").contains("has not heard of"), "{refused:?}");
}

#[test]
fn an_old_leader_that_stood_still_confirms_nothing_when_it_wakes() {
    let ttl = 2_000;
    let mut world = World::cluster(3);
    let old = world.the_leader();
    let mut first = Actor::streamed(&mut world, old, 1, ttl);
    let token = first.hold(&mut world, "job");
    first.renewed(&mut world);
    world.processes[old].stalled = true;
    // Renewals and a read wait in its sockets.
    let renewals: Vec<_> = (0..5)
        .map(|_| {
            world.run(ttl * 3 / 5);
            let renew = first.renew();
            first.send(&mut world, renew)
        })
        .collect();
    let read = world.ask(old, CALLS, look("job"));
    let new = world.the_leader();
    assert_ne!(new, old);
    let mut second = Actor::streamed(&mut world, new, 2, ttl);
    let later = second.hold(&mut world, "job");
    assert!(later > token);
    // It wakes, and at first hears of nobody else.
    let (mail, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut world.processes[old].inbox)
        .into_iter()
        .partition(|input| matches!(input, Input::Peer { .. } | Input::PeerLost(_)));
    world.processes[old].inbox = waiting;
    world.processes[old].stalled = false;
    world.turn(old);
    world.processes[old].inbox.extend(mail);
    world.run(1_000);
    for id in renewals {
        let response = world.response(id);
        assert!(
            !matches!(response, Some(Response::Reply(Reply::Renewed(_)))),
            "a renewal was confirmed by an old leader: {response:?}"
        );
    }
    assert!(world.is_closed(first.connection));
    // The read was asked again, and tells the truth.
    let Response::Read { revision, .. } = world.wait(read) else { panic!("the read was not answered") };
    assert!(revision.get() >= 4);
    assert_eq!(holder(&mut world, old, "job"), Some(later));
}

#[test]
fn a_leader_without_a_majority_says_nothing_and_then_does_not_know() {
    let mut world = World::cluster(3);
    let old = world.the_leader();
    let mut client = Actor::streamed(&mut world, old, 1, 3_000);
    let plain = Actor::plain(&mut world, old, 2, 3_000);
    client.hold(&mut world, "job");
    world.isolate(old);
    let renew = client.renew();
    let renewal = client.send(&mut world, renew);
    let renewed = world.ask(old, CALLS, plain.plain_renew());
    let read = world.ask(old, CALLS, look("job"));
    world.run(2_000);
    assert!(is_unknown(&world.response(renewal).expect("it stepped down")));
    assert!(is_unknown(&world.response(renewed).expect("it stepped down")));
    assert!(world.is_closed(client.connection));
    assert!(world.response(read).is_none(), "a read was answered without a majority");
    assert!(world.leader().is_some_and(|leader| leader != old));
    world.net.heal_all();
    assert!(matches!(world.wait(read), Response::Read { .. }), "the read is repeated");
}

#[test]
fn the_leader_of_an_old_term_whose_clock_has_jumped_moves_no_time() {
    let mut world = World::cluster(3);
    let old = world.the_leader();
    let mut client = Actor::streamed(&mut world, old, 1, 3_000);
    client.hold(&mut world, "job");
    world.processes[old].stalled = true;
    world.run(1_500);
    world.processes[old].clock = world.processes[old].clock.plus(millis(3_600_000));
    world.processes[old].stalled = false;
    // Stamps that outrun real time would be found by the checks.
    world.run(500);
    client.attaches(&mut world, old);
    client.renewed(&mut world);
    let at = world.checks.table.last_at().get();
    assert!(at <= world.now / 1_000_000 + 10, "log time is {at}");
}

#[test]
fn all_of_a_cluster_crashes_and_nothing_acknowledged_is_lost() {
    for kept in [0, 9] {
        let mut world = World::cluster(3);
        let leader = world.the_leader();
        let mut client = Actor::streamed(&mut world, leader, 1, 5_000);
        let token = client.hold(&mut world, "job");
        let renew = client.renew();
        client.send(&mut world, renew);
        world.turn(leader);
        for process in 0..3 {
            world.crash_keeping(process, kept);
        }
        world.run(1_000);
        for process in 0..3 {
            world.start(process);
        }
        world.run_until(3_000, |world| world.leader().is_some());
        assert_eq!(holder(&mut world, 1, "job"), Some(token));
        client.attaches(&mut world, 1);
        client.renewed(&mut world);
    }
}

#[test]
fn a_cluster_of_five_goes_on_without_two_and_stands_still_without_three() {
    let mut world = World::cluster(5);
    let leader = world.the_leader();
    let others = world.followers();
    world.crash(others[0]);
    world.crash(others[1]);
    let plain = Actor::plain(&mut world, others[2], 1, 60_000);
    plain.take(&mut world, "job");
    world.crash(leader);
    let id = world.ask(others[2], CALLS, plain.plain_renew());
    world.run(3_000);
    assert!(world.leader().is_none());
    let told: Vec<_> = world
        .sent
        .iter()
        .filter(|(.., message)| matches!(message, ToClient::Response { response: Response::Reply(_), .. }))
        .collect();
    assert!(told.is_empty(), "without a majority {told:?}");
    world.start(leader);
    // It was on its way to the leader that crashed.
    assert!(is_unknown(&world.wait(id)));
    world.run_until(3_000, |world| world.leader().is_some());
    assert!(matches!(world.call(leader, plain.plain_renew()), Response::Reply(Reply::Renewed(_))));
}
