//! A node as a pure machine: consensus, log time and the lease table.
