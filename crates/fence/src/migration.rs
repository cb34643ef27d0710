//! The tables of a fence as text, for tools that have a client of their own. `Fence::migrate` of each adapter runs the same.

/// Tables and functions of PostgreSQL, to be run as often as you like; the file is `migration.sql`.
pub const POSTGRES: &str = include_str!("postgres/migration.sql");

/// The statements for MySQL and MariaDB.
///
/// Names are bytes: text would be compared by a collation, and even the binary ones ignore spaces at the end.
/// 544 bytes are the longest fence name, and fit the keys of every row format.
pub const MYSQL: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS leasehold_fence (
        name VARBINARY(544) NOT NULL PRIMARY KEY,
        token BIGINT NOT NULL,
        holder VARCHAR(256) CHARACTER SET utf8mb4 NULL
    ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS leasehold_refusal (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        name VARBINARY(544) NOT NULL,
        token BIGINT NOT NULL,
        highest BIGINT NOT NULL,
        holder VARCHAR(256) CHARACTER SET utf8mb4 NULL,
        refused_at DATETIME(3) NOT NULL,
        KEY by_name (name, id)
    ) ENGINE = InnoDB",
];

/// The statements for SQLite.
///
/// Names are compared by their bytes: that is what columns without a collation do here. A table that is there stays as it was made: one without the
/// check of `token > 0` gets it only by being made anew. `Fence` itself never writes such a token; a statement by hand may.
pub const SQLITE: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS leasehold_fence (
        name TEXT NOT NULL PRIMARY KEY COLLATE BINARY,
        token INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token > 0),
        holder TEXT
    ) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS leasehold_refusal (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL COLLATE BINARY,
        token INTEGER NOT NULL,
        highest INTEGER NOT NULL,
        holder TEXT,
        refused_at TEXT NOT NULL
    )",
];
