//! A file with the address of a service whose port the system chose.
//!
//! Written aside and renamed, so that whoever waits for it never reads half of an address. It is left behind at the end.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::trouble::Trouble;

/// Writes the address and a line end, if a file is wanted.
pub(crate) fn write(path: Option<&Path>, address: SocketAddr) -> Result<(), Trouble> {
    let Some(path) = path else { return Ok(()) };
    let aside = aside(path);
    std::fs::write(&aside, format!("{address}\n"))
        .and_then(|()| std::fs::rename(&aside, path))
        .map_err(|error| Trouble::Service(format!("cannot write the port file {}: {error}", path.display())))
}

fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.new", std::process::id()));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("port");
        for address in ["127.0.0.1:1", "[::1]:2"] {
            write(Some(&path), address.parse().unwrap()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{address}\n"));
        }
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
        let nowhere = directory.path().join("no/port");
        assert!(write(Some(&nowhere), "127.0.0.1:1".parse().unwrap()).is_err());
    }
}
