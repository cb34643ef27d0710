//! Servers that go and come back: what was acknowledged is there, and what was not resolves.

use std::path::Path;

use leasehold_core::{Answer, CommandNumber, ItemKind, Millis, Op, Token};

use crate::caller::{Caller, Member, token_of};
use crate::place::{contents, first_segment, serve, size};

const TTL: Millis = Millis::new(60_000);
const WAIT: Option<Millis> = Some(Millis::new(60_000));

fn queued(answer: &Answer) -> bool {
    matches!(answer, Answer::Queued { .. })
}

#[test]
fn sessions_leases_queues_and_tokens_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut members: Vec<Member> = (1..=3).map(|nonce| caller.member(nonce, TTL)).collect();
    let token = caller.take(&mut members[0], "job").token;
    for member in &mut members[1..] {
        assert!(queued(&caller.acquire(member, "job", WAIT)));
    }
    let before = caller.lease("job").unwrap();
    assert!(server.stop().is_none());
    assert!(caller.receive().is_none(), "its connections end with it");

    let _server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let after = caller.lease("job").unwrap();
    assert_eq!(token_of(&after), token);
    let waiters = |lease: &leasehold_core::table::LeaseView| -> Vec<_> {
        lease.queue.iter().map(|waiter| waiter.session).collect()
    };
    assert_eq!(waiters(&after), waiters(&before));
    for member in &mut members {
        assert_eq!(member.attach(&mut caller).get(), member.command);
    }
    // First come, first served, across the restart; tokens go on rising.
    let release = members[0].release("job", token);
    caller.send(vec![release]);
    assert_eq!(caller.answer(&mut members[0]), Answer::Released);
    match caller.item(&mut members[1]).kind {
        ItemKind::WaitGranted { grants, .. } => assert!(grants[0].token > token),
        other => panic!("{other:?}"),
    }
}

/// Commands are sent and the server goes before they are answered: attaching again tells which were applied, their answers
/// follow, and the others are sent again under the same numbers. Each takes effect once.
#[test]
fn commands_that_were_not_answered_resolve_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut member = caller.member(1, TTL);
    let (mut applied, mut sent_again) = (0, 0);
    for round in 0..30_u64 {
        let first = member.command;
        let names: Vec<String> = (0..20).map(|number| format!("job-{round}-{number}")).collect();
        for name in &names {
            let request = member.acquire(name, None);
            caller.send(vec![request]);
        }
        // Later in each round, so that the stop meets the commands at every stage of their way.
        std::thread::sleep(std::time::Duration::from_micros(round * 150));
        assert!(server.stop().is_none());
        server = serve(directory.path());
        caller = Caller::new(directory.path());
        let last: CommandNumber = member.attach(&mut caller);
        applied += last.get() - first;
        sent_again += member.command - last.get();
        member.command = last.get();
        for name in &names[usize::try_from(last.get() - first).unwrap()..] {
            let request = member.acquire(name, None);
            caller.send(vec![request]);
        }
        let mut tokens: Vec<Token> = Vec::new();
        for name in &names {
            let ItemKind::Answer { answer: Answer::Granted(grants), .. } = caller.item(&mut member).kind
            else {
                panic!("every acquire is granted, and granted once");
            };
            assert_eq!(grants[0].resource.as_str(), name);
            tokens.push(grants[0].token);
        }
        assert!(tokens.is_sorted());
    }
    println!("{applied} were applied before the stop, {sent_again} were not");
    assert!(applied > 0 && sent_again > 0, "both happened: {applied} applied, {sent_again} not");
}

/// Fifty thousand commands in more than eight thousand entries: snapshots are taken, and what they cover goes.
#[test]
fn the_log_stays_small_and_a_snapshot_gives_back_the_same_table() {
    // In memory: this is about files that come and go, and not about their syncs.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut member = caller.member(1, Millis::new(300_000));
    let kept: Vec<(String, Token)> = (0..20)
        .map(|number| format!("kept-{number}"))
        .map(|name| (name.clone(), caller.take(&mut member, &name).token))
        .collect();
    let mut token = kept.last().unwrap().1;
    // A release and an acquire at a time, and three things that change nothing but the log.
    for _ in 0..10_000 {
        let mut requests: Vec<_> =
            (0..3).map(|_| member.release("kept-0", Token::from_u64(1 << 40))).collect();
        requests.push(member.acquire("passing", None));
        caller.send(requests);
        for _ in 0..3 {
            assert!(matches!(answer(&mut caller, &mut member), Answer::Refused(_)));
        }
        let Answer::Granted(grants) = answer(&mut caller, &mut member) else { panic!("it is free") };
        assert!(grants[0].token > token);
        token = grants[0].token;
        let release = member.release("passing", token);
        caller.send(vec![release]);
        assert_eq!(caller.answer(&mut member), Answer::Released);
    }
    let applied = caller.applied();
    assert!(applied > 16_384, "{applied} entries are not enough for two snapshots");
    assert!(server.stop().is_none());
    check_files(directory.path());

    let _server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    assert!(caller.applied() > applied);
    for (name, token) in &kept {
        assert_eq!(token_of(&caller.lease(name).unwrap()), *token);
    }
    assert_eq!(member.attach(&mut caller).get(), member.command);
    assert!(caller.take(&mut member, "passing").token > token);
    let set = member.command(Op::Close);
    caller.ask(set);
}

/// The next answer, whichever command it is to.
fn answer(caller: &mut Caller, member: &mut Member) -> Answer {
    match caller.item(member).kind {
        ItemKind::Answer { answer, .. } => answer,
        other => panic!("{other:?}"),
    }
}

fn check_files(store: &Path) {
    const MOST: u64 = 20 * 1024 * 1024;
    let bytes = size(store);
    println!("{} KiB in {} files", bytes / 1024, contents(store).len());
    assert!(bytes < MOST, "{bytes} bytes are left of fifty thousand commands");
    assert!(!first_segment(store).exists(), "what a snapshot covers is removed");
    let snapshots = contents(store).into_keys().filter(|path| path.extension().is_some_and(|e| e == "snap"));
    assert_eq!(snapshots.count(), 1);
}
