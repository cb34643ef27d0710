//! Whether there is such a command: looked up as the system does when it starts one, before anything is waited for.
//!
//! What is said here may change before the command is started; the start says it again then.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::supervise::StartError;

/// Where commands are looked for without PATH, as the C library does.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Finds the file of a command. A name with a slash is a path; any other is looked for in the directories of PATH.
pub(super) fn find(program: &OsStr) -> Result<PathBuf, StartError> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| WITHOUT_PATH.into());
    find_in(program, &path)
}

fn find_in(program: &OsStr, path: &OsStr) -> Result<PathBuf, StartError> {
    let mut refused = None;
    let candidates: Vec<PathBuf> = match program.as_bytes() {
        [] => Vec::new(),
        name if name.contains(&b'/') => vec![program.into()],
        // An empty directory of PATH is the present one.
        _ => std::env::split_paths(path)
            .map(|directory| Path::new(".").join(directory).join(program))
            .collect(),
    };
    for candidate in candidates {
        match usable(&candidate) {
            Ok(()) => return Ok(candidate),
            // The next directory may have one that can be executed.
            Err(Errno::ACCESS) => refused = Some(Errno::ACCESS),
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(why) => StartError::NotExecutable(program.to_owned(), why),
        None => StartError::NotFound(program.to_owned()),
    })
}

fn usable(file: &Path) -> Result<(), Errno> {
    let found = fs::metadata(file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT))?;
    if !found.is_file() {
        return Err(Errno::ACCESS);
    }
    access(file, Access::EXEC_OK)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_command_is_looked_for_as_the_system_does() {
        let root = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| root.path().join(name));
        for directory in [&first, &second] {
            fs::create_dir(directory).unwrap();
        }
        let write = |file: &Path, mode: u32| {
            fs::write(file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        };
        write(&first.join("both"), 0o644);
        write(&second.join("both"), 0o755);
        write(&first.join("text"), 0o644);
        fs::create_dir(first.join("folder")).unwrap();
        let path = std::env::join_paths([&first, &second]).unwrap();
        let find = |program: &str| find_in(OsStr::new(program), &path);
        assert_eq!(find("both").unwrap(), second.join("both"));
        assert!(matches!(find("text"), Err(StartError::NotExecutable(..))));
        assert!(matches!(find("folder"), Err(StartError::NotExecutable(..))));
        for missing in ["nosuch", "", "./nosuch", "/nosuch/x"] {
            assert!(matches!(find(missing), Err(StartError::NotFound(_))), "{missing:?}");
        }
        let whole = second.join("both");
        assert_eq!(find(whole.to_str().unwrap()).unwrap(), whole);
        assert!(matches!(find(first.join("text").to_str().unwrap()), Err(StartError::NotExecutable(..))));
    }
}
