//! Measurements of Leasehold beside its peers.
