//! The log on disk: segments of checked blocks, batches, snapshots, recovery.
