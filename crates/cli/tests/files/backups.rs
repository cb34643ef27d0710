//! `leasehold backup` against something that answers as a service does, and as a broken one does.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::stage::Stage;

/// What a node says of itself that could give a backup.
const LOCAL: &[u8] = br#"{"name":"n1","id":"1","advertised":"a:1","incarnation":"1","epoch":0,"leader":"n1","ready":true,"applied":"1","members":[{"name":"n1","id":"1","address":"a:1","role":"voter"}]}"#;

/// Answers every request for a backup with these bytes, and gives back its address.
fn answering(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, local) = (listener.local_addr().unwrap(), ok(LOCAL, LOCAL.len()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let looks = request.starts_with(b"POST /v1/cluster/local HTTP/1.1\r\n");
            if looks {
                // Its fields, of which there are none.
                stream.read_exact(&mut [0; 2]).unwrap();
            }
            assert!(looks || request.starts_with(b"GET /v1/backup HTTP/1.1\r\n"));
            stream.write_all(if looks { &local } else { &answer }).unwrap();
        }
    });
    format!("leasehold://{address}")
}

fn ok(body: &[u8], length: usize) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes(), body].concat()
}

#[test]
fn a_backup_is_written_whole_and_reads_back() {
    let stage = Stage::new();
    let made = std::fs::read(stage.backup("made-by-hand")).unwrap();
    let mut chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in made.chunks(100) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    for (name, answer) in [("plain", ok(&made, made.len())), ("chunked", chunked)] {
        let saved = stage.json(&["--store", &answering(answer), "backup", name]);
        assert_eq!(saved["bytes"].as_u64(), Some(made.len() as u64));
        assert_eq!(std::fs::read(stage.path(name)).unwrap(), made);
        assert_eq!(stage.json(&["data", "verify", name])["kind"], "backup");
    }
}

#[test]
fn what_is_no_whole_backup_does_not_replace_one() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let made = std::fs::read(&file).unwrap();
    let mut damaged = made.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let short = &made[..made.len() - 1];
    let answers = [
        (ok(&damaged, damaged.len()), 1, "at byte"),
        (ok(short, short.len()), 1, "leases"),
        (ok(short, made.len()), 122, "its answer ended after"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno".to_vec(), 122, "404 no"),
        (b"what?".to_vec(), 122, "does not speak HTTP"),
    ];
    for (answer, expected, words) in answers {
        let arguments = ["--timeout", "1s", "--store", &answering(answer), "backup", "leases"];
        let (code, said) = stage.run(&arguments);
        assert_eq!((code, said.contains(words)), (Some(expected), true), "{words}: {said}");
        assert_eq!(std::fs::read(&file).unwrap(), made);
    }
}

/// It is the word for `restore --above` where no receiver can be asked.
#[test]
fn the_newest_token_is_shown_to_people_too() {
    let stage = Stage::new();
    stage.backup("leases");
    let newest = stage.json(&["data", "verify", "leases"])["newest"].as_str().unwrap().to_owned();
    let (code, said) = stage.run(&["data", "verify", "leases"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("newest  {newest}, ")), "{said}");
}

#[test]
fn every_damaged_byte_of_a_backup_is_found() {
    let stage = Stage::new();
    let made = std::fs::read(stage.backup("leases")).unwrap();
    // A step that is no divisor of anything; every byte is tried where no process must be started for it.
    for at in (0..made.len()).step_by(37) {
        let mut bad = made.clone();
        bad[at] ^= 0x10;
        std::fs::write(stage.path("bad"), bad).unwrap();
        let (code, said) = stage.run(&["data", "verify", "bad"]);
        assert_eq!((code, said.contains("at byte")), (Some(1), true), "byte {at}: {said}");
        let (code, _) = stage.run(&["data", "restore", "bad", "--data", "new", "--first-restore"]);
        assert_eq!((code, stage.path("new").exists()), (Some(1), false), "byte {at}");
    }
}

#[test]
fn a_directory_of_this_machine_says_that_it_has_no_backup() {
    let stage = Stage::new();
    let (code, said) = stage.run(&["--store", "dir:store", "backup", "file"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("leasehold://"), "{said}");
}
