//! A file with the address of a service whose port the system chose.
//!
//! Written aside and renamed, so that whoever waits for it never reads half of an address. It is left behind at the end.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::trouble::Trouble;

/// Writes the address and a line end.
pub(crate) fn write(path: &Path, address: SocketAddr) -> Result<(), Trouble> {
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
            write(&path, address.parse().unwrap()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{address}\n"));
        }
        assert_eq!(directory.path().read_dir().unwrap().count(), 1);
        assert!(write(&directory.path().join("no/port"), "127.0.0.1:1".parse().unwrap()).is_err());
    }
}
