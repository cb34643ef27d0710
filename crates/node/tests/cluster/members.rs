//! Members are added, promoted and removed, and every one knows them.

use leasehold_core::protocol::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, MemberRole, Query, ReadAnswer, Request,
    Response,
};
use leasehold_node::payload::NodeSnapshot;
use leasehold_node::{CALLS, Fatal, Options};

use crate::actor::{Actor, holder, order, plain_grant};
use crate::world::{World, id_of, is_unknown, member};

fn name(process: usize) -> String {
    format!("n{}", process + 1)
}

fn add(world: &mut World, at: usize, process: usize) -> ClusterReply {
    order(world, at, ClusterCommand::Add(member(process)))
}

fn promote(world: &mut World, at: usize, process: usize) -> ClusterReply {
    order(world, at, ClusterCommand::Promote { name: name(process) })
}

fn remove(world: &mut World, at: usize, process: usize) -> ClusterReply {
    order(world, at, ClusterCommand::Remove { name: name(process) })
}

fn refused(reply: ClusterReply) -> ClusterRefusal {
    match reply {
        ClusterReply::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[track_caller]
fn changed(reply: &ClusterReply) {
    assert!(matches!(reply, ClusterReply::Changed { .. }), "{reply:?}");
}

fn view(world: &mut World, at: usize) -> ClusterView {
    match world.call(at, Request::Read(Query::Cluster)) {
        Response::Read { answer: ReadAnswer::Cluster(view), .. } => view,
        other => panic!("{other:?}"),
    }
}

fn roles(world: &mut World, at: usize) -> Vec<(String, MemberRole)> {
    view(world, at).members.into_iter().map(|view| (view.member.name, view.role)).collect()
}

#[test]
fn one_node_grows_to_three_and_its_tokens_go_on() {
    let mut world = World::cluster(1);
    let mut client = Actor::streamed(&mut world, 0, 1, 9_000);
    let first = client.hold(&mut world, "job");
    for process in [1, 2] {
        assert_eq!(world.add_process(None), process);
        world.run(300);
        assert!(world.node(process).membership().is_blank());
        changed(&add(&mut world, 0, process));
        world.run(300);
        assert_eq!(world.processes[process].replaced, 1, "it begins with a snapshot");
        assert_eq!(roles(&mut world, 0)[process], (name(process), MemberRole::Learner));
        changed(&promote(&mut world, 0, process));
        world.run(100);
        assert_eq!(world.node(process).applied(), world.checks.applied());
    }
    // Any two of three are enough now.
    world.crash(0);
    world.run_until(3_000, |world| world.leader().is_some());
    assert_eq!(holder(&mut world, 1, "job"), Some(first));
    client.attaches(&mut world, 2);
    assert!(client.hold(&mut world, "other") > first);
    for at in [1, 2] {
        let members = world.processes[at].members.clone().expect("it was told");
        assert_eq!(members.members.len(), 3);
        assert!(members.members.iter().all(|(_, role)| *role == MemberRole::Voter));
    }
}

#[test]
fn a_learner_neither_votes_nor_is_waited_for() {
    let mut world = World::cluster(3);
    let learner = world.add_process(None);
    changed(&add(&mut world, 0, learner));
    world.run(500);
    let leader = world.the_leader();
    let others: Vec<usize> = (0..3).filter(|process| *process != leader).collect();
    world.crash(others[0]);
    let plain = Actor::plain(&mut world, learner, 1, 60_000);
    plain.take(&mut world, "job");
    world.crash(others[1]);
    world.run(2_000);
    assert!(world.leader().is_none(), "one of three voters and a learner are no majority");
    assert_ne!(world.node(learner).leader(), Some(id_of(learner)));
}

#[test]
fn a_member_that_is_removed_stops_and_does_not_come_back() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    let gone = world.followers()[0];
    changed(&remove(&mut world, leader, gone));
    world.run(100);
    assert_eq!(world.processes[gone].fatal, Some(Fatal::Removed));
    let stays = 3 - leader - gone;
    assert_eq!(world.node(stays).membership().removed, [id_of(gone)]);
    assert_eq!(refused(add(&mut world, leader, gone)), ClusterRefusal::WasRemoved { name: name(gone) });
    // It comes back with its directory, and nobody counts its votes.
    world.processes[gone].fatal = None;
    world.start(gone);
    world.run(3_000);
    assert_eq!(world.leader(), Some(leader));
    world.crash(stays);
    world.run(1_500);
    assert!(world.leader().is_none(), "it counts for a majority");
}

#[test]
fn whoever_is_left_alone_knows_it_after_a_crash() {
    let mut world = World::cluster(2);
    let (leader, gone) = (world.the_leader(), world.followers()[0]);
    world.disk_delay = (20_000_000, 20_000_000);
    let command = ClusterCommand::Remove { name: name(gone) };
    world.ask(leader, CALLS, Request::Cluster(command));
    // The one that goes will vote no more; the one that stays must not need it.
    world.run_until(2_000, |world| world.processes[gone].fatal == Some(Fatal::Removed));
    world.crash(leader);
    world.start(leader);
    world.run_until(3_000, |world| world.leader() == Some(leader));
    assert_eq!(view(&mut world, leader).members.len(), 1);
}

#[test]
fn a_removed_member_that_has_not_heard_of_it_disturbs_nobody() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    let gone = world.followers()[0];
    world.isolate(gone);
    changed(&remove(&mut world, leader, gone));
    world.net.heal_all();
    let mut stream = Actor::streamed(&mut world, leader, 1, 5_000);
    world.run(3_000);
    stream.renewed(&mut world);
    assert_eq!(world.leader(), Some(leader));
    assert!(!world.is_closed(stream.connection));
}

#[test]
fn a_member_that_was_down_while_it_was_removed_is_on_every_list_of_the_removed() {
    // No entry reaches it any more: whoever it dials finds it on this list, and says so.
    let mut world = World::cluster(3);
    let (leader, gone) = (world.the_leader(), world.followers()[0]);
    let stays = 3 - leader - gone;
    world.crash(gone);
    let voted = world.checks.votes_of(id_of(gone).0);
    changed(&remove(&mut world, leader, gone));
    let new = world.add_process(None);
    changed(&add(&mut world, leader, new));
    world.run(500);
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    world.start(gone);
    for _ in 0..2 {
        world.run(3_000);
        for process in [leader, stays, new] {
            assert_eq!(world.node(process).membership().removed, [id_of(gone)]);
        }
        assert!(!world.node(gone).is_serving());
        assert_eq!(world.node(gone).membership().removed, [], "it was told nothing");
        // What they know does not depend on who runs.
        for process in [leader, stays, new] {
            world.crash(process);
            world.start(process);
        }
        world.run_until(3_000, |world| world.leader().is_some());
    }
    assert_eq!(world.checks.votes_of(id_of(gone).0), voted, "nobody has asked for its vote");
    plain.take(&mut world, "job");
}

#[test]
fn a_leader_that_is_to_be_removed_hands_over_first() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    let token = plain.take(&mut world, "job");
    let stays = world.followers()[0];
    let refusal = refused(remove(&mut world, stays, leader));
    assert_eq!(refusal, ClusterRefusal::HandingOver { name: name(leader) });
    world.run_until(2_000, |world| world.leader().is_some_and(|now| now != leader));
    changed(&remove(&mut world, stays, leader));
    world.run(100);
    assert_eq!(world.processes[leader].fatal, Some(Fatal::Removed));
    assert_eq!(holder(&mut world, stays, "job"), Some(token));
    assert_eq!(view(&mut world, stays).members.len(), 2);
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    let [one, two] = world.followers()[..] else { panic!("two follow") };
    let nobody = ClusterRefusal::NoSuchMember { name: "n7".into() };
    assert_eq!(refused(promote(&mut world, 0, 6)), nobody);
    assert_eq!(refused(remove(&mut world, 0, 6)), nobody);
    // The same again is what somebody asks who did not hear the answer.
    changed(&add(&mut world, 0, 1));
    let renamed = ClusterCommand::Add(leasehold_core::protocol::Member { name: "x".into(), ..member(1) });
    assert!(matches!(refused(order(&mut world, 0, renamed)), ClusterRefusal::Taken { .. }));
    assert_eq!(refused(promote(&mut world, 0, 1)), ClusterRefusal::IsVoter { name: name(1) });
    // A learner that never showed itself.
    changed(&add(&mut world, 0, 3));
    assert!(matches!(refused(promote(&mut world, 0, 3)), ClusterRefusal::NotCaughtUp { .. }));
    let to = Some(name(3));
    let learner = ClusterRefusal::IsLearner { name: name(3) };
    assert_eq!(refused(order(&mut world, 0, ClusterCommand::Transfer { to })), learner);
    changed(&remove(&mut world, 0, 3));
    world.crash(one);
    world.run(1_000);
    assert!(matches!(refused(remove(&mut world, leader, two)), ClusterRefusal::NoMajorityLeft { .. }));
    changed(&remove(&mut world, leader, one));
    let mut alone = World::cluster(1);
    assert_eq!(refused(remove(&mut alone, 0, 0)), ClusterRefusal::LastVoter { name: name(0) });
}

#[test]
fn a_healthy_member_is_seen_as_such_at_any_moment() {
    let mut world = World::cluster(3);
    let learner = world.add_process(None);
    changed(&add(&mut world, 0, learner));
    world.run(500);
    world.net.delay = (20_000_000, 20_000_000);
    for _ in 0..40 {
        world.hop();
        let at = world.the_leader();
        let view = view(&mut world, at);
        assert!(view.members.iter().all(|member| member.reachable), "{view:?}");
    }
}

#[test]
fn the_view_of_the_cluster_is_right() {
    let mut world = World::cluster(3);
    let learner = world.add_process(None);
    changed(&add(&mut world, 1, learner));
    let (leader, down) = (world.the_leader(), world.followers()[0]);
    world.run(300);
    world.crash(down);
    let plain = Actor::plain(&mut world, leader, 1, 60_000);
    plain.take(&mut world, "job");
    world.run(900);
    let at = world.followers()[0];
    let view = view(&mut world, at);
    assert_eq!((view.leader, view.members.len()), (id_of(leader), 4));
    assert_eq!(view.incarnation, world.node(at).membership().incarnation);
    assert!(view.incarnation.is_known());
    for member in &view.members {
        let process = crate::world::process_of(member.member.id);
        assert_eq!(member.member, crate::world::member(process));
        let role = if process == learner { MemberRole::Learner } else { MemberRole::Voter };
        assert_eq!(member.role, role);
        assert_eq!(member.reachable, process != down, "{member:?}");
        assert!(!member.receiving_snapshot);
        assert_eq!(member.matched == view.committed, process != down, "{member:?}");
    }
}

#[test]
fn a_change_whose_leader_is_lost_has_an_unknown_outcome() {
    let mut world = World::cluster(3);
    let leader = world.the_leader();
    world.isolate(leader);
    let command = ClusterCommand::Add(member(3));
    let asks = world.ask(leader, CALLS, Request::Cluster(command.clone()));
    let again = world.ask(leader, CALLS, Request::Cluster(command));
    assert!(is_unknown(&world.wait(asks)));
    let response = world.wait(again);
    let under_way = ClusterReply::Refused(ClusterRefusal::ChangeUnderWay);
    assert_eq!(response, Response::Cluster(under_way));
    world.net.heal_all();
    world.run_until(3_000, |world| world.leader().is_some());
    world.run(500);
    assert_eq!(view(&mut world, 0).members.len(), 3, "what was not committed is gone");
}

#[test]
fn members_survive_restarts_and_snapshots() {
    let options = Options { snapshot_entries: 10, ..Options::default() };
    let mut world = World::founded(3, options, 3);
    world.run_until(3_000, |world| world.leader().is_some());
    let learner = world.add_process(None);
    changed(&add(&mut world, 0, learner));
    world.run_until(3_000, |world| !world.node(learner).membership().is_blank());
    let gone = world.followers().into_iter().find(|process| *process != learner).expect("two follow");
    changed(&remove(&mut world, learner, gone));
    let mut client = Actor::streamed(&mut world, learner, 1, 2_000);
    for _ in 0..10 {
        world.run(500);
        client.renewed(&mut world);
    }
    let before = roles(&mut world, learner);
    assert_eq!(before.len(), 3);
    let left: Vec<usize> = (0..4).filter(|process| *process != gone).collect();
    for process in &left {
        assert!(world.processes[*process].disk.covered() > 10, "a snapshot was taken");
        world.crash(*process);
    }
    for process in &left {
        world.start(*process);
        assert_eq!(world.node(*process).membership().removed, [id_of(gone)]);
    }
    world.run_until(3_000, |world| world.leader().is_some());
    assert_eq!(roles(&mut world, learner), before);
}

#[test]
fn a_change_that_is_half_way_survives_a_restart_and_is_completed() {
    // Two members have begun to become three, and all of them stopped: found in a snapshot, or in the log behind one.
    let mut world = World::founded(3, Options::default(), 5);
    for process in 0..3 {
        world.crash(process);
        world.processes[process].disk.corrupt(|bytes| {
            let mut read = NodeSnapshot::decode(bytes).expect("it was just written");
            read.voters.outgoing = vec![id_of(0).0, id_of(1).0];
            read.voters.auto_leave = true;
            let changes = read.changes.expect("it has changes");
            NodeSnapshot::encode(
                read.voters,
                &read.roster,
                read.outcomes,
                read.stamped,
                &changes,
                &read.table,
            )
        });
    }
    // Of those before, two are needed.
    world.start(0);
    world.start(2);
    world.run(2_000);
    assert!(world.leader().is_none(), "a majority of those after is not enough");
    world.start(1);
    world.run_until(3_000, |world| world.leader().is_some());
    world.run(300);
    for process in 0..3 {
        let bytes = world.node(process).snapshot().bytes;
        let voters = NodeSnapshot::decode(&bytes).expect("it was just written").voters;
        assert!(voters.outgoing.is_empty() && !voters.auto_leave, "{voters:?}");
        assert_eq!(voters.voters.len(), 3);
    }
    let out = world.followers()[0];
    world.crash(out);
    let leader = world.the_leader();
    let plain = Actor::plain(&mut world, leader, 1, 5_000);
    let acquires = world.ask(plain.at, CALLS, plain.held_acquire("job", 1, 1));
    plain_grant(&world.wait(acquires));
}

#[test]
fn a_new_leader_that_has_not_heard_of_everybody_yet_takes_nobody_for_lost() {
    let mut world = World::cluster(3);
    let (leader, to) = (world.the_leader(), world.followers()[0]);
    let third = 3 - leader - to;
    world.run(1_000);
    assert_eq!(refused(remove(&mut world, to, leader)), ClusterRefusal::HandingOver { name: name(leader) });
    // Asked again at once, while one that only follows says nothing for a moment.
    world.processes[third].stalled = true;
    let again = ClusterCommand::Remove { name: name(leader) };
    let asks = world.ask(to, CALLS, Request::Cluster(again));
    world.run(120);
    world.processes[third].stalled = false;
    let answer = world.wait(asks);
    let refusal = ClusterRefusal::HandingOver { name: name(leader) };
    assert_eq!(answer, Response::Cluster(ClusterReply::Refused(refusal)));
    world.run(100);
    changed(&remove(&mut world, to, leader));
}

#[test]
fn a_leader_that_stood_still_does_not_take_the_others_for_lost() {
    for (phase, stall) in (0..300).step_by(10).flat_map(|phase| [200, 310, 400].map(|stall| (phase, stall))) {
        let mut world = World::cluster(3);
        let (leader, gone) = (world.the_leader(), world.followers()[0]);
        world.run(500 + phase);
        // What arrived first is taken in first; the answers of the others to its heartbeats are behind it.
        world.processes[leader].stalled = true;
        world.run(stall);
        let asks = Request::Cluster(ClusterCommand::Remove { name: name(gone) });
        let id = world.ask(leader, CALLS, asks);
        let request = world.processes[leader].inbox.pop().expect("it was just pushed");
        world.processes[leader].inbox.insert(0, request);
        world.processes[leader].stalled = false;
        world.run(5);
        let response = world.response(id);
        let refused = matches!(response, Some(Response::Cluster(ClusterReply::Refused(_))));
        assert!(!refused, "after {phase} ms, a stall of {stall} ms: {response:?}");
    }
}
