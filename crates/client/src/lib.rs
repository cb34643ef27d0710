//! Leases with fencing tokens: sessions, leases, guards and elections.
