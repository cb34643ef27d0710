//! The pure core of Leasehold: names, tokens, time, the lease table, and the holder's machines.
