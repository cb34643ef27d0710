//! A process of its own that writes once: this program, called again. `strace` ends or stops it at a step of the write.

use std::path::Path;
use std::process::{Command, Stdio};

use leasehold_fence::files::Fence;
use leasehold_fence::{Error, Outcome};

use crate::files::stamp;

const FILE: &str = "LEASEHOLD_TEST_FILE";
const TOKEN: &str = "LEASEHOLD_TEST_TOKEN";

/// What the child is ended or stopped at; names of one group are one call on some machine. What it reads decides nothing that a crash could spoil.
pub(crate) const STEPS: [&str; 10] = [
    "openat",
    "flock",
    "pwrite64",
    "write",
    "fsync",
    "fdatasync",
    "fchmod",
    "link,linkat",
    "unlink,unlinkat",
    "rename,renameat,renameat2",
];

/// A child that writes its token to the file, and gets a signal at its nth call of this kind on the file or beside it.
pub(crate) fn command(file: &Path, token: u64, signal: &str, (step, nth): (&str, usize)) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(file.with_file_name("strace.log"));
    for path in ["", ".fence", ".fence.new"] {
        let mut name = file.as_os_str().to_owned();
        name.push(path);
        command.arg("-P").arg(name);
    }
    command.arg("-P").arg(file.parent().unwrap());
    command.args([
        "-e",
        &format!("trace={step}"),
        "-e",
        &format!("inject={step}:signal={signal}:when={nth}"),
    ]);
    command.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "files::child::a_child_writes",
        "--nocapture",
    ]);
    command.env(FILE, file).env(TOKEN, token.to_string()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// As a test of its own it has nothing to do; as a child it writes and says how that ended.
#[test]
fn a_child_writes() {
    let (Some(file), Ok(token)) = (std::env::var_os(FILE), std::env::var(TOKEN)) else { return };
    let file = Path::new(&file);
    std::fs::write(file.with_file_name("child.pid"), std::process::id().to_string()).unwrap();
    let result =
        Fence::new(file).unwrap().write_blocking(stamp("a", token.parse().unwrap()), token.as_bytes());
    if let Err(Error::Failed { .. } | Error::Unknown { .. }) = &result {
        println!("{result:?}");
    }
    println!("ended: {}", Outcome::of(&result));
}
