//! Drivers around the node: files, sockets, clocks; the embedded mode.
