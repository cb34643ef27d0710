//! Disks that are full, or fill up.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use leasehold_core::protocol::ToClient;
use leasehold_core::{Answer, ItemKind, Millis, Token};

use crate::caller::{Caller, token_of};
use crate::place::{Mount, refusal, serve};

const TTL: Millis = Millis::new(300_000);

/// Takes all the space that is left.
fn fill(path: &Path) -> std::path::PathBuf {
    let filler = path.join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    filler
}

#[test]
fn a_full_disk_is_refused_and_leaves_nothing_in_the_way() {
    let mount = Mount::new("tmpfs", "size=512k");
    let path = mount.path().join("store");
    let filler = fill(mount.path());
    for _ in 0..3 {
        let error = refusal(&path);
        assert!(error.to_string().contains("No space left"), "{error}");
    }
    // A little space: the log is begun and not finished.
    let file = File::options().write(true).open(&filler).unwrap();
    file.set_len(file.metadata().unwrap().len() - 100 * 1024).unwrap();
    drop(file);
    let error = refusal(&path);
    assert!(error.to_string().contains("No space left"), "{error}");
    std::fs::remove_file(filler).unwrap();
    let server = serve(&path);
    let mut caller = Caller::new(&path);
    let mut member = caller.member(1, TTL);
    caller.take(&mut member, "job");
    assert!(server.stop().is_none());
}

/// Everything that was acknowledged is there when there is space again, and whatever was not is granted or not, once.
#[test]
fn a_disk_that_fills_up_stops_the_server_and_loses_nothing() {
    let mount = Mount::new("tmpfs", "size=3m");
    let path = mount.path().join("store");
    let server = serve(&path);
    let mut caller = Caller::new(&path);
    let mut member = caller.member(1, TTL);
    let filler = fill(mount.path());
    let mut granted: Vec<(String, Token)> = Vec::new();
    for number in 0..100_000 {
        let name = format!("job-{number}");
        let request = member.acquire(&name, None);
        caller.send(vec![request]);
        let Some(message) = caller.receive() else { break };
        let ToClient::Items { items, .. } = message else { panic!("{message:?}") };
        assert_eq!(items.len(), 1);
        member.seen = items[0].number;
        let ItemKind::Answer { answer: Answer::Granted(grants), .. } = &items[0].kind else {
            panic!("{items:?}");
        };
        granted.push((name, grants[0].token));
    }
    let why = server.stop().expect("it does not stop of its own will");
    println!("{} leases, then: {why}", granted.len());
    assert!(why.contains("no space"), "{why}");
    assert!(granted.len() > 100, "the segment that was there has room for some");

    std::fs::remove_file(filler).unwrap();
    let _server = serve(&path);
    let mut caller = Caller::new(&path);
    for (name, token) in &granted {
        assert_eq!(token_of(&caller.lease(name).unwrap_or_else(|| panic!("{name} is lost"))), *token);
    }
    let last = member.attach(&mut caller).get();
    assert!(last == member.command || last + 1 == member.command, "{last} of {}", member.command);
    let after = caller.lease(&format!("job-{}", granted.len()));
    assert_eq!(after.is_some(), last > granted.len() as u64, "applied and answered, or neither");
}
