//! Disks that are full, or fill up.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use leasehold_core::protocol::ToClient;
use leasehold_core::{Answer, ItemKind, Millis, Refusal, Token};

use crate::caller::{Caller, Member, token_of};
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

/// What is new is refused while there is no space, nothing that was acknowledged is lost, and it goes on by itself.
#[test]
fn a_disk_that_fills_up_refuses_what_is_new_and_goes_on_when_there_is_space_again() {
    let mount = Mount::new("tmpfs", "size=24m");
    let path = mount.path().join("store");
    let server = serve(&path);
    let mut caller = Caller::new(&path);
    let mut member = caller.member(1, TTL);
    let filler = fill(mount.path());
    let mut granted: Vec<(String, Token)> = Vec::new();
    let refused = (0..100_000).find_map(|number| {
        let name = format!("job-{number}");
        match acquire(&mut caller, &mut member, &name) {
            Ok(token) => {
                granted.push((name, token));
                None
            }
            Err(why) => Some(why),
        }
    });
    let why = refused.expect("the disk has no space for so many");
    assert!(why.contains("disk is full"), "{why}");
    assert!(granted.len() > 100, "the segment that was there has room for some");

    std::fs::remove_file(filler).unwrap();
    // What was refused has used up its number: whatever follows in the stream is taken in.
    let again = (0..100).find_map(|_| match acquire(&mut caller, &mut member, "later") {
        Ok(token) => Some(token),
        Err(_) => {
            std::thread::sleep(std::time::Duration::from_millis(100));
            None
        }
    });
    assert!(again.is_some(), "it does not go on");
    assert!(server.stop().is_none());
    let _server = serve(&path);
    let mut caller = Caller::new(&path);
    for (name, token) in &granted {
        assert_eq!(token_of(&caller.lease(name).unwrap_or_else(|| panic!("{name} is lost"))), *token);
    }
    assert!(caller.lease("later").is_some());
}

fn acquire(caller: &mut Caller, member: &mut Member, name: &str) -> Result<Token, String> {
    let request = member.acquire(name, None);
    caller.send(vec![request]);
    match caller.receive() {
        Some(ToClient::Items { items, .. }) => {
            assert_eq!(items.len(), 1);
            member.seen = items[0].number;
            match &items[0].kind {
                ItemKind::Answer { answer: Answer::Granted(grants), .. } => Ok(grants[0].token),
                ItemKind::Answer { answer: Answer::Refused(refusal @ Refusal::NoRoom), .. } => {
                    Err(refusal.to_string())
                }
                _ => panic!("{items:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}
