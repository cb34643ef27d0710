//! The servers that the fence is tested with: installed if they are missing, and started by nobody but the tests.
//!
//! Promises: no service of the system is started and no cluster of PostgreSQL is made. Packages that do neither are installed, the
//! others only unpacked. What does not come from Debian goes below the target directory, with every version pinned.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::maven;
use crate::packages;
use crate::python;
use crate::run::{exists, target_directory};
use crate::scope::Scope;
use crate::unpack::unpack;

/// Tells the tests in which directory the tools are.
pub(crate) const VARIABLE: &str = "LEASEHOLD_TEST_SERVERS";

/// A program, and the Debian package that has it and starts nothing: the parts of MariaDB that are no service.
const PROGRAMS: [(&str, &str); 3] = [
    ("mariadb", "mariadb-client-core"),
    ("mariadb-install-db", "mariadb-server-core"),
    ("mariadbd", "mariadb-server-core"),
];
/// The versions of moto and all that it needs.
const MOTO: &str = "crates/kit/requirements.txt";

/// Servers that run on Java, and what each of them needs.
const ON_JAVA: [(&str, &str); 3] = [
    ("cassandra", "crates/kit/java/cassandra.xml"),
    ("dynamodb", "crates/kit/java/dynamodb.xml"),
    ("kafka", "crates/kit/java/kafka.xml"),
];

/// Installs what is missing. Gives back the directory of what is not a program of the system.
pub(crate) fn install(scope: Scope) -> Result<PathBuf> {
    let place = target_directory().join("tools").join("receivers");
    packages::install_for(&PROGRAMS)?;
    postgresql()?;
    redis(&place.join("redis"))?;
    python::install("moto", MOTO, &place.join("moto"))?;
    for (server, project) in ON_JAVA.iter().filter(|_| scope == Scope::Everything) {
        maven::install(server, project, &place.join(server))?;
    }
    println!("==> servers for the tests of the fence are here");
    Ok(place)
}

/// Where each version of PostgreSQL has its programs.
const POSTGRESQL: &str = "/usr/lib/postgresql";
/// Asked when the package is installed: whether it shall make a cluster and start it.
const CREATE_CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";

/// The package makes a cluster and starts it, unless its settings say no. They are as before when it is there.
pub(crate) fn postgresql() -> Result<()> {
    let versions = std::fs::read_dir(POSTGRESQL).into_iter().flatten().flatten();
    if versions.map(|version| version.path().join("bin/postgres")).any(|program| program.is_file())
        || exists("postgres")
    {
        return Ok(());
    }
    packages::install(&["postgresql-common"])?;
    let before = std::fs::read_to_string(CREATE_CLUSTER);
    let before = before.with_context(|| format!("{CREATE_CLUSTER} cannot be read"))?;
    let write = |text: &str| {
        std::fs::write(CREATE_CLUSTER, text).with_context(|| format!("{CREATE_CLUSTER} cannot be written"))
    };
    write(&format!("{before}\ncreate_main_cluster = false\n"))?;
    let installed = packages::install(&["postgresql"]);
    write(&before)?;
    installed
}

/// The server's package starts a service. The program itself and its libraries belong to the package of the tools, which does not.
pub(crate) fn redis(place: &Path) -> Result<()> {
    if exists("redis-server") || place.join("usr/bin/redis-server").is_file() {
        return Ok(());
    }
    packages::install_for(&[("redis-cli", "redis-tools")])?;
    unpack(&["redis-server", "redis-tools"], place)
}
